"""The voter set and kraft.version at every offset (Kafka's LogHistory, VoterSetHistory,
KRaftControlRecordStateMachine).

A voter set is used from the moment its record is appended, committed or not, until the record is truncated.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.raft.errors import CannotStart, InvariantViolated
from kraft_wire.raft.membership.voters import KRAFT_VERSION_RANGE, VoterSet, voters_of_record

T = TypeVar("T")


class OffsetHistory(Generic[T]):
    """Values by the offset of the record that set them, ascending. Offset -1 is the 0-0 checkpoint."""

    __slots__ = ("_offsets", "_values")

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._values: list[T] = []

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def last(self) -> tuple[int, T] | None:
        """The newest value and its offset."""
        return (self._offsets[-1], self._values[-1]) if self._offsets else None

    def add(self, offset: int, value: T) -> None:
        """Add the value of a record. Raises InvariantViolated if its offset isn't above all others."""
        if self._offsets and offset <= self._offsets[-1]:
            raise InvariantViolated(f"a value at offset {offset} follows one at {self._offsets[-1]}")
        self._offsets.append(offset)
        self._values.append(value)

    def begins_before(self, offset: int) -> bool:
        """Whether there is a value whose record is below ``offset``."""
        return bool(self._offsets) and self._offsets[0] < offset

    def since(self, end_offset: int) -> list[T]:
        """Return the values from the newest one below ``end_offset`` on, or all if there is none."""
        return self._values[max(0, bisect_left(self._offsets, end_offset) - 1) :]

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the values at ``end_offset`` or after it."""
        keep = bisect_left(self._offsets, end_offset)
        del self._offsets[keep:], self._values[keep:]

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the values that are no longer in effect just before ``start_offset``.

        A record at that offset may still be truncated.
        """
        drop = bisect_left(self._offsets, start_offset) - 1
        if drop > 0:
            del self._offsets[:drop], self._values[:drop]


def unsupported_reason(messages: Iterable[Message]) -> str | None:
    """Return why this implementation doesn't support these control records; None if it does."""
    least, most = KRAFT_VERSION_RANGE
    for message in messages:
        if isinstance(message, KRaftVersionRecord) and not least <= message.kraft_version <= most:
            return (
                f"kraft.version {message.kraft_version} is not supported, only {least} to {most}:"
                " start a newer release"
            )
    return None


class VoterSetHistory:
    """The voter set and kraft.version at every offset. Static voters are used while the log names none."""

    __slots__ = ("_kraft_versions", "_static", "_voters")

    def __init__(self, static: VoterSet = VoterSet()) -> None:  # noqa: B008 - a frozen value
        self._static = static
        self._voters: OffsetHistory[VoterSet] = OffsetHistory()
        self._kraft_versions: OffsetHistory[int] = OffsetHistory()

    @property
    def voters(self) -> VoterSet:
        """The newest voter set, which is the one in effect."""
        last = self._voters.last
        return self._static if last is None else last[1]

    def possible_voters(self, committed_offset: int) -> list[VoterSet]:
        """Return the voter sets that may be in effect on some node: from the last committed one on, the
        newest last. There may be several, because a new leader may put its own entry after a change that
        isn't committed."""
        sets = self._voters.since(committed_offset)
        return sets if self._voters.begins_before(committed_offset) else [self._static, *sets]

    @property
    def voters_offset(self) -> int | None:
        """The offset of the record that set the voters: -1 for the 0-0 checkpoint, None for static voters."""
        last = self._voters.last
        return None if last is None else last[0]

    @property
    def kraft_version(self) -> int:
        last = self._kraft_versions.last
        return 0 if last is None else last[1]

    def apply(self, offset: int, message: Message) -> None:
        """Apply a control record. Records other than VotersRecord and KRaftVersionRecord change nothing.

        Raises CannotStart for a kraft.version that this implementation doesn't support.
        """
        match message:
            case VotersRecord():
                self._voters.add(offset, voters_of_record(message))
            case KRaftVersionRecord(kraft_version=level):
                reason = unsupported_reason([message])
                if reason is not None:
                    raise CannotStart(f"offset {offset}: {reason}")
                self._kraft_versions.add(offset, level)
            case _:
                pass

    def reset_to_snapshot(self, offset: int, messages: Sequence[Message]) -> None:
        """Restart from a snapshot, whose control records get the offset of its last record, ``offset``."""
        self._voters = OffsetHistory()
        self._kraft_versions = OffsetHistory()
        for message in messages:
            self.apply(offset, message)

    def truncate_from_end(self, end_offset: int) -> None:
        """Handle a truncation of the log at ``end_offset``: an older voter set is in effect again."""
        self._voters.truncate_from_end(end_offset)
        self._kraft_versions.truncate_from_end(end_offset)

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget history below ``start_offset``, which a snapshot covers."""
        self._voters.truncate_from_start(start_offset)
        self._kraft_versions.truncate_from_start(start_offset)
