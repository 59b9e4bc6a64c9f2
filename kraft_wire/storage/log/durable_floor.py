"""Remember beside the log up to which offset it was flushed, and up to which it is committed.

Recovery needs the flushed offset to tell a torn tail, which a crash may leave above the last flush, from
damage to durable records. A starting node needs the committed offset to apply its log before it knows a
leader. The file is written after each flush, but flushed itself only when the floor goes down or the node
stops: it may be lower than the truth, but never higher.

Java's controllers don't know the file. A Java controller that ran on the folder may have truncated the log
below the floor, but only in a later epoch, which it wrote to quorum-state. So the floor has the epoch in
which it was written, and counts only while quorum-state has the same epoch.
"""

from __future__ import annotations

import os
from pathlib import Path

import google_crc32c

from kraft_wire.log.recovery import Floor
from kraft_wire.storage.disk import Disk, identity_of

FILE_NAME = "durable-floor"


def floor_text(floor: Floor) -> str:
    """Return a line of constant length, which can be overwritten in place."""
    numbers = f"{floor.offset:020d} {floor.quorum_epoch:010d} {floor.committed_offset:020d}"
    return f"{numbers} {google_crc32c.value(numbers.encode()):08x}\n"


_TEXT_SIZE = len(floor_text(Floor(0, 0)))


def parse_floor(text: str) -> Floor | None:
    """Parse the line; None unless it is whole and its checksum is right."""
    words = text.split()
    if len(text) != _TEXT_SIZE or len(words) != 4 or not "".join(words[:3]).isdecimal() or not text.isascii():
        return None
    floor = Floor(int(words[0]), int(words[1]), int(words[2]))
    return floor if floor_text(floor) == text else None


def read_floor(folder: Path) -> Floor | None:
    """Return the folder's floor; None if the file is missing or damaged."""
    try:
        return parse_floor((folder / FILE_NAME).read_bytes().decode("latin-1"))
    except FileNotFoundError:
        return None


class DurableFloor:
    """The file, kept open. The thread that flushes the log may call ``write``."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        self._path = folder / FILE_NAME
        self._disk = disk
        self.found = read_floor(folder)
        """The floor when the file was opened; None if there was none."""
        self._is_written = False
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._identity = identity_of(self._fd)

    def write(self, floor: Floor, *, flush: bool = False) -> None:
        """Overwrite the floor. Raises DiskFailed."""
        text = floor_text(floor).encode()
        if self.found is None and not self._is_written:
            self._disk.truncate(self._fd, 0, self._path)  # a damaged file may be too long
        self._disk.write(self._fd, text, 0, self._path)
        self._is_written = True
        if flush:
            self._disk.flush_data(self._fd, self._path)

    def check_present(self) -> None:
        """Raise FileGone if the file is not there any more under its name."""
        self._disk.check_present(self._path, self._identity, "if it was deleted, it is made again")

    def close(self) -> None:
        os.close(self._fd)
