"""Keep the start offset of each leader epoch, as ``leader-epoch-checkpoint`` does (KIP-101,
LeaderEpochFileCache)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from kraft_wire.log.errors import MalformedFile

FILE_NAME = "leader-epoch-checkpoint"
_VERSION = 0


class EpochStart(NamedTuple):
    """An epoch and the offset of its first record."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """An epoch and the offset after its last record."""

    epoch: int
    end_offset: int


class EpochCache:
    """The epochs of a log, ascending in both epoch and start offset."""

    __slots__ = ("_epochs", "_starts")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)

    def __len__(self) -> int:
        return len(self._epochs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EpochCache) and self.entries == other.entries

    __hash__ = None  # type: ignore[assignment]  # a cache changes

    def __repr__(self) -> str:
        return f"EpochCache({[tuple(entry) for entry in self.entries]})"

    @property
    def entries(self) -> list[EpochStart]:
        return [EpochStart(*pair) for pair in zip(self._epochs, self._starts, strict=True)]

    @property
    def latest_epoch(self) -> int | None:
        """The epoch of the last record; None for a log without records."""
        return self._epochs[-1] if self._epochs else None

    def copy(self) -> EpochCache:
        return EpochCache(self.entries)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record that ``epoch`` starts at ``start_offset``; returns whether anything changed.

        The latest epoch again, at its start or after it, changes nothing. An epoch without records, because
        the next one starts at the same offset, is dropped (KAFKA-10706). Raises ValueError for a lower epoch
        or offset.
        """
        if self._epochs:
            latest, start = self._epochs[-1], self._starts[-1]
            if epoch < latest or start_offset < start:
                raise ValueError(
                    f"epoch {epoch} from offset {start_offset} cannot follow epoch {latest} from {start}"
                )
            if epoch == latest:
                return False
            if start_offset == start:
                self._epochs.pop()
                self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        return True

    def truncate_from_end(self, end_offset: int) -> bool:
        """Drop the epochs that start at ``end_offset`` or after it; returns whether there were any."""
        keep = bisect_left(self._starts, end_offset)
        changed = keep < len(self._starts)
        del self._epochs[keep:], self._starts[keep:]
        return changed

    def truncate_from_start(self, start_offset: int) -> bool:
        """Let the log start at ``start_offset``: earlier epochs are dropped, the epoch of that offset starts
        there."""
        spanning = bisect_right(self._starts, start_offset) - 1
        if spanning < 0 or self._starts[0] == start_offset:
            return False
        del self._epochs[:spanning], self._starts[:spanning]
        self._starts[0] = start_offset
        return True

    def epoch_of(self, offset: int) -> int | None:
        """Return the epoch of the record at ``offset``, which must be below the log end offset; None below
        the first epoch."""
        index = bisect_right(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else None

    def end_offset_for_epoch(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Return where the largest epoch not above ``epoch`` ends: the point up to which two logs can agree.

        - ``epoch`` is the latest one, or later: the latest epoch and the log end offset.
        - ``epoch`` is known, or lies between two known epochs: the largest known epoch <= ``epoch``, and the
          start of the next one.
        - ``epoch`` is older than all known epochs: ``epoch`` itself and the first known start.
        - No epoch is known: epoch 0 and the log end offset. The caller may know better from a snapshot.
        """
        if not self._epochs:
            return EpochEnd(0, log_end_offset)
        following = bisect_right(self._epochs, epoch)
        if following == len(self._epochs):
            return EpochEnd(self._epochs[-1], log_end_offset)
        if following == 0:
            return EpochEnd(epoch, self._starts[0])
        return EpochEnd(self._epochs[following - 1], self._starts[following])

    def text(self) -> str:
        """Return the file's text: version, number of entries, one line ``epoch start_offset`` for each
        entry."""
        lines = [str(_VERSION), str(len(self))]
        lines += [f"{epoch} {start}" for epoch, start in self.entries]
        return "\n".join(lines) + "\n"

    @classmethod
    def parse(cls, text: str) -> EpochCache:
        """Parse the file's text. Raises MalformedFile."""
        lines = text.splitlines()
        if len(lines) < 2:
            raise MalformedFile(FILE_NAME, "ends before its number of entries")
        version, count = _numbers(lines[0], 1)[0], _numbers(lines[1], 1)[0]
        if version != _VERSION:
            raise MalformedFile(FILE_NAME, f"version {version} is unknown, expected {_VERSION}")
        if count != len(lines) - 2:
            raise MalformedFile(FILE_NAME, f"says {count} entries and holds {len(lines) - 2}")
        try:
            return cls(tuple(_numbers(line, 2)) for line in lines[2:])  # type: ignore[misc]
        except ValueError as error:
            raise MalformedFile(FILE_NAME, str(error)) from None


def _numbers(line: str, count: int) -> list[int]:
    words = line.split()
    if len(words) != count or not all(word.isascii() and word.isdigit() for word in words):
        raise MalformedFile(FILE_NAME, f"line {line[:80]!r} is not {count} number(s)")
    return [int(word) for word in words]
