"""Keep the numbers that limit a node's votes after it lost some of its files.

``lost-below``: damage was cut out of the log, which had been durable up to this offset. Until the log holds
as much again, the node's vote could elect a leader that lacks committed records.

``lost-below-unless-alone``: the same, recorded by a repair that couldn't know whether the node has peers.

``no-vote-up-to``: quorum-state was lost, and the node may have voted in any epoch up to this one.

The number stands in the file twice, each with its checksum, because one of them may be damaged.
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


def guard_text(number: int) -> str:
    """Return the file's text."""
    digits = f"{number:0{_DIGITS}d}"
    return f"{digits} {google_crc32c.value(digits.encode()):08x}\n" * 2


def parse_guard(text: str) -> int | None:
    """Return the number; None if neither line is whole."""
    for line in (text[:_LINE_SIZE], text[_LINE_SIZE:]):
        digits = line[:_DIGITS]
        if digits.isdecimal() and digits.isascii() and guard_text(int(digits)) == line * 2:
            return int(digits)
    return None


class VoteGuard:
    """One of the files. ``number`` is None while there is no file, as usual."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self.number = read_guard(path)

    def raise_to(self, number: int) -> None:
        """Write the number to stable storage, unless the file has a higher one. Raises DiskFailed."""
        if self.number is None or number > self.number:
            self._disk.replace(self._path, guard_text(number).encode())
            self.number = number

    def repair(self) -> list[Path]:
        """Rewrite the file if one of its lines is damaged, before the other one is; returns the file then.
        Raises DiskFailed."""
        if self.number is None:
            return []
        whole = guard_text(self.number).encode()
        if self._path.read_bytes() == whole:
            return []
        self._disk.replace(self._path, whole)
        return [self._path]

    def remove(self) -> None:
        """Delete the file. Raises DiskFailed."""
        if self.number is not None:
            self.number = None  # first: ``check_present`` may run in another thread
            self._disk.remove(self._path)
            self._disk.flush_folder(self._path.parent)

    def check_present(self) -> None:
        """Raise FileGone if the file should be there and is not. May run in another thread."""
        if (
            self.number is not None
            and not self._disk.is_present(self._path, None)
            and self.number is not None
        ):
            self._disk.check_present(
                self._path,
                None,
                "if it was deleted, move the whole folder away and format it again, because this node's vote "
                "could lose records; it fetches everything from the leader",
            )


def read_guard(path: Path) -> int | None:
    """Return the file's number; None if there is no such file. Raises CorruptFile."""
    try:
        number = parse_guard(path.read_bytes().decode("latin-1"))
    except FileNotFoundError:
        return None
    if number is None:
        raise CorruptFile(
            path,
            "is damaged, and limits this node's votes; if a majority of the quorum is healthy, move "
            f"{path.parent.parent} away and format it again: the node fetches everything from the leader",
        )
    return number
