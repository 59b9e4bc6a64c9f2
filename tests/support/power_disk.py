"""Create disks whose power can be cut: ext4 file systems on loop devices. Needs root."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

EXT4_IOC_SHUTDOWN = 0x8004587D
WITHOUT_FLUSHING_THE_JOURNAL = (2).to_bytes(4, sys.byteorder)
IN_MEMORY = Path("/dev/shm")


class DiskUnavailable(RuntimeError):
    """Such a disk can't be created on this machine or by this user; the message says what failed."""


class PowerDisk:
    """A disk image and its mount. The image may be in memory: only what ext4 wrote to it survives a power
    cut."""

    def __init__(self, image: Path, mount_point: Path, size_mib: int = 64) -> None:
        self.image, self.mount_point = image, mount_point
        with image.open("wb") as file:
            file.truncate(size_mib << 20)
        _run("mkfs.ext4", "-q", "-E", "lazy_itable_init=1,lazy_journal_init=1", str(image))
        mount_point.mkdir(parents=True)
        self.mount()

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self.image), str(self.mount_point))

    def unmount(self, *options: str) -> None:
        """Unmount the disk. With --lazy, processes that still use it keep it until they end."""
        _run("umount", *options, str(self.mount_point))

    def cut_power(self) -> None:
        """Lose everything that isn't flushed; every access fails until the disk is mounted again."""
        fd = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, WITHOUT_FLUSHING_THE_JOURNAL)
        finally:
            os.close(fd)

    def restore_power(self) -> None:
        """Mount the disk again; no process may be using it.

        A copy of the image is mounted: the mount namespace of another process may hold the mount that has
        failed, and Linux would return to it.
        """
        self.unmount()
        copy = self.image.with_suffix(".copy")
        _run("cp", "--sparse=always", str(self.image), str(copy))
        copy.replace(self.image)
        self.mount()


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise DiskUnavailable(f"no `{error.filename}` on the PATH") from None
    if done.returncode:
        raise DiskUnavailable(f"{' '.join(command)}: {done.stderr.strip()} (are you root?)")
