"""Numbers that a node must not forget while something that it lost is being made good.

``lost-below``: damage was cut out of the log, which had been durable up to this offset. Until the log holds
as much again, the node's vote could elect somebody who lacks what is committed.

``lost-below-unless-alone``: the same, by somebody who could not know whether the node has peers.

``no-vote-up-to``: quorum-state was lost, and the node may have voted in any epoch up to this one.

The number stands in the file twice, each with its checksum: one of them may be damaged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import google_crc32c

from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import CorruptFile

LOST_BELOW: Final = "lost-below"
LOST_BELOW_UNLESS_ALONE: Final = "lost-below-unless-alone"
NO_VOTE_UP_TO: Final = "no-vote-up-to"

_DIGITS = 20
_LINE_SIZE = _DIGITS + len(" 01234567\n")


def remembered_text(number: int) -> str:
    """The file's text."""
    digits = f"{number:0{_DIGITS}d}"
    return f"{digits} {google_crc32c.value(digits.encode()):08x}\n" * 2


def parse_remembered(text: str) -> int | None:
    """The number; None where neither line is whole."""
    for line in (text[:_LINE_SIZE], text[_LINE_SIZE:]):
        digits = line[:_DIGITS]
        if digits.isdecimal() and digits.isascii() and remembered_text(int(digits)) == line * 2:
            return int(digits)
    return None


class Remembered:
    """One of the files. ``number`` is None while there is none, as is usual."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self.number = read_remembered(path)

    def remember(self, number: int) -> None:
        """It is on stable storage when this returns, unless a higher one was already. Raises DiskFailed."""
        if self.number is None or number > self.number:
            self._disk.replace(self._path, remembered_text(number).encode())
            self.number = number

    def mend(self) -> list[Path]:
        """Write it anew where one of the lines is damaged, and return it then: the other may be next. Raises
        DiskFailed."""
        if self.number is None:
            return []
        whole = remembered_text(self.number).encode()
        if self._path.read_bytes() == whole:
            return []
        self._disk.replace(self._path, whole)
        return [self._path]

    def forget(self) -> None:
        """Raises DiskFailed."""
        if self.number is not None:
            self._disk.remove(self._path)
            self._disk.flush_folder(self._path.parent)
            self.number = None


def read_remembered(path: Path) -> int | None:
    """The file's number, None where there is no such file. Raises CorruptFile."""
    try:
        number = parse_remembered(path.read_bytes().decode("latin-1"))
    except FileNotFoundError:
        return None
    if number is None:
        raise CorruptFile(
            path,
            "is damaged, and says what this node must not forget; where a majority of the quorum is whole, "
            f"move {path.parent.parent} away and format it anew: the node fetches everything from the leader",
        )
    return number
