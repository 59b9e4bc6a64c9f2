"""Decode rows of the table ``records`` back to records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from kraft_wire.log.errors import LogError
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import METADATA_RECORDS
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.registry import message_class

if TYPE_CHECKING:
    import pyarrow as pa

CONTROL_TYPES: Final = frozenset(
    control.NAME
    for control in (
        LeaderChangeMessage,
        KRaftVersionRecord,
        VotersRecord,
        SnapshotHeaderRecord,
        SnapshotFooterRecord,
    )
)
NO_TIMESTAMP: Final = -1
_TYPES: Final = CONTROL_TYPES | frozenset(METADATA_RECORDS.values())


class BadRow(LogError):
    """A row that is no record of this log. The text says which row, and why."""

    def __init__(self, row: RecordRow, reason: str) -> None:
        super().__init__(row, reason)
        self.row = row
        self.reason = reason

    def __str__(self) -> str:
        where = "the snapshot up to offset" if self.row.in_snapshot else "offset"
        return f"{self.row.cluster}, {where} {self.row.offset}, epoch {self.row.epoch}: {self.reason}"


class NotReached(LogError):
    """A request for a time or an offset that the rows don't reach."""


class RecordRow(NamedTuple):
    """A record of a log or of a snapshot.

    All rows of a snapshot have the last offset that it covers, its epoch, and the timestamp of the last
    record that it covers, or NO_TIMESTAMP.
    """

    cluster: str
    offset: int
    epoch: int
    timestamp_ms: int
    in_snapshot: bool
    type: str
    version: int
    json: str

    @property
    def is_control(self) -> bool:
        return self.type in CONTROL_TYPES

    def message(self) -> Message:
        """Return the record. Raises BadRow."""
        if self.type not in _TYPES:
            raise BadRow(self, f"there is no record {self.type!r}")
        try:
            return message_class(self.type).from_json(msgspec.json.decode(self.json), self.version)
        except (ProtocolError, msgspec.DecodeError) as error:
            raise BadRow(self, f"{self.type}: {error}") from error


COLUMNS: Final = ("cluster", "offset", "epoch", "timestamp", "in_snapshot", "type", "version", "json")
"""The columns of the table that a row is made of."""


def rows_of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[RecordRow]:
    """Yield the rows of Arrow batches."""
    for batch in batches:
        columns = {name: batch.column(name) for name in COLUMNS}
        columns["timestamp"] = _milliseconds(columns["timestamp"])
        yield from map(RecordRow._make, zip(*(columns[name].to_pylist() for name in COLUMNS), strict=True))


def _milliseconds(timestamps: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = pc.cast(timestamps, pa.timestamp("ms", "UTC"))
    return pc.fill_null(pc.cast(whole, pa.int64()), NO_TIMESTAMP)


class AnyRow(Protocol):
    """A Row of Spark, or a mapping."""

    def __getitem__(self, name: str, /) -> Any: ...


def rows_of_rows(rows: Iterable[AnyRow]) -> Iterator[RecordRow]:
    """Yield the rows of ``DataFrame.toLocalIterator``, or of mappings."""
    for row in rows:
        timestamp: datetime | None = row["timestamp"]
        values = {name: row[name] for name in COLUMNS if name != "timestamp"}
        timestamp_ms = NO_TIMESTAMP if timestamp is None else round(timestamp.timestamp() * 1000)
        yield RecordRow(timestamp_ms=timestamp_ms, **values)


def up_to(rows: Iterable[RecordRow], offset: int) -> Iterator[RecordRow]:
    """Yield the rows up to an offset, which is included. Raises NotReached if the rows end before."""
    reached = -1
    for row in rows:
        if row.offset > offset:
            break
        reached = max(reached, row.offset)
        yield row
    if reached < offset:
        known = f"end at offset {reached}" if reached >= 0 else "begin later, or there are none"
        raise NotReached(f"offset {offset} is asked for, and the rows {known}")
