"""The records of one decision: single ones, and those of many partitions in columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias, overload

from kraft_wire.log.batch import MAX_BATCH_SIZE_BYTES
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.message import Message

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.column_changes import PartitionChanges
    from kraft_wire.metadata.partitions.column_creations import NewPartitions
    from kraft_wire.metadata.topic_removals import TopicRemovals

MAX_RECORDS_PER_BATCH: Final = 10_000
"""QuorumController.MAX_RECORDS_PER_USER_OP. A larger decision is split, or rejected if it is atomic."""

MAX_BATCH_BYTES: Final = MAX_BATCH_SIZE_BYTES - 1024
"""The largest size of a batch's records. The rest of Kafka's limit is room for headers."""

VersionedRecord = tuple[Message, int]
"""A metadata record and the version at which it is written."""

Columns: TypeAlias = "PartitionChanges | NewPartitions | TopicRemovals"
"""Records of many partitions or topics, in columns."""


class TooLargeForBatch(ApiError):
    """A whole request is refused: its records must be in one batch, and don't fit (KAFKA-14204)."""

    def __init__(self, record_count: int) -> None:
        super().__init__(
            ErrorCode.POLICY_VIOLATION,
            f"the request needs {record_count} metadata records in one batch; the limits are "
            f"{MAX_RECORDS_PER_BATCH} records and {MAX_BATCH_BYTES} bytes: split the request",
        )


class Records(Sequence[VersionedRecord]):
    """Records in the order in which they are written.

    ``parts`` are what the node writes and applies. Single records of columns are decoded only for those who
    look at them: tests, the simulator, the log.
    """

    def __init__(self, parts: Iterable[Sequence[VersionedRecord] | Columns]) -> None:
        self.parts = tuple(part for part in parts if len(part))

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @overload
    def __getitem__(self, index: int) -> VersionedRecord: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[VersionedRecord]: ...
    def __getitem__(self, index: int | slice) -> VersionedRecord | Sequence[VersionedRecord]:
        return self._all[index]

    def __iter__(self) -> Iterator[VersionedRecord]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all == list(other)

    __hash__ = None  # type: ignore[assignment]  # as for lists

    @property
    def singles(self) -> Iterator[VersionedRecord]:
        """The records that aren't in columns."""
        return (record for part in self.parts if isinstance(part, Sequence) for record in part)

    @cached_property
    def _all(self) -> list[VersionedRecord]:
        return [
            record
            for part in self.parts
            for record in (part if isinstance(part, Sequence) else part.records())
        ]


def parts_of(records: Sequence[VersionedRecord]) -> tuple[Sequence[VersionedRecord] | Columns, ...]:
    """Return the parts of records, which are one part if they aren't ``Records``."""
    return records.parts if isinstance(records, Records) else (records,)


def joined(*records: Sequence[VersionedRecord]) -> Records:
    """Return records after each other."""
    return Records([part for each in records for part in parts_of(each)])
