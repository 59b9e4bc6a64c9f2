"""How much of the log is known to have been flushed, and how much to be committed, remembered beside it.

Recovery needs the first to tell a torn tail, which a crash may leave above the last flush, from damage to
records that were durable. A node that starts needs the second to apply its log before it knows a leader. The
file is written after each flush and itself not flushed, except when the floor goes down or the node stops: it
may lag behind the truth and never runs ahead of it.

Java's controllers don't know the file. One that ran on the folder may have truncated the log below the
floor, but only in a later epoch, which it wrote to quorum-state: so the floor names the epoch that it was
written in, and counts only while quorum-state says the same.
"""

from __future__ import annotations

import os
from pathlib import Path

import google_crc32c

from kraft_wire.log.recovery import Floor
from kraft_wire.storage.disk import Disk

FILE_NAME = "durable-floor"


def floor_text(floor: Floor) -> str:
    """One line of constant length, so that it can be overwritten in place."""
    numbers = f"{floor.offset:020d} {floor.quorum_epoch:010d} {floor.committed_offset:020d}"
    return f"{numbers} {google_crc32c.value(numbers.encode()):08x}\n"


_TEXT_SIZE = len(floor_text(Floor(0, 0)))


def parse_floor(text: str) -> Floor | None:
    """None for anything but a whole line with the right checksum."""
    words = text.split()
    if len(text) != _TEXT_SIZE or len(words) != 4 or not "".join(words[:3]).isdecimal() or not text.isascii():
        return None
    floor = Floor(int(words[0]), int(words[1]), int(words[2]))
    return floor if floor_text(floor) == text else None


def read_floor(folder: Path) -> Floor | None:
    """What the folder's file says; None where it says nothing."""
    try:
        return parse_floor((folder / FILE_NAME).read_bytes().decode("latin-1"))
    except FileNotFoundError:
        return None


class DurableFloor:
    """The file, kept open. ``write`` may be called from the thread that flushes the log."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        self._path = folder / FILE_NAME
        self._disk = disk
        self.found = read_floor(folder)
        """What the file said when it was opened; None where it said nothing."""
        self._is_written = False
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(self, floor: Floor, *, flush: bool = False) -> None:
        """Raises DiskFailed."""
        text = floor_text(floor).encode()
        if self.found is None and not self._is_written:
            self._disk.truncate(self._fd, 0, self._path)  # it may be longer than it should be
        self._disk.write(self._fd, text, 0, self._path)
        self._is_written = True
        if flush:
            self._disk.flush_data(self._fd, self._path)

    def close(self) -> None:
        os.close(self._fd)
