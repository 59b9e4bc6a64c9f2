"""Hold many records in columns. A record becomes an object only when somebody looks at it alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, overload

import msgspec
import numpy as np

from kraft_wire.columnar.metadata import Kind
from kraft_wire.columnar.page import Page
from kraft_wire.exporters.filters import Filter
from kraft_wire.exporters.records import (
    UNKNOWN,
    ExportRecord,
    log_records,
    snapshot_records,
)
from kraft_wire.log.batch import Batch
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.messages import METADATA_RECORDS

if TYPE_CHECKING:
    from kraft_wire.columnar.gather import Positions

FRAME_BYTES: Final = 3
"""The bytes before the body of a record whose type and version take one byte each."""


class SnapshotPart(msgspec.Struct, frozen=True):
    """The place of batches in a snapshot. ``first_indexes`` has the index of each batch's first record."""

    id: SnapshotId
    timestamp_ms: int
    first_indexes: Sequence[int]


class ColumnRecords(Sequence[ExportRecord]):
    """Records in the order of the log. ``kinds`` are the data records by type; their ``rows`` count in the
    arrays. ``control`` are control records, which are few."""

    def __init__(
        self,
        page: Page,
        offsets: Positions,
        indexes: Positions,
        epochs: Positions,
        timestamps_ms: Positions,
        kinds: Sequence[Kind],
        control: Sequence[ExportRecord],
    ) -> None:
        self.chunk = page.chunk
        self.offsets = offsets
        self.indexes = indexes
        self.epochs = epochs
        self.timestamps_ms = timestamps_ms
        self.kinds = kinds
        self.control = control

    def __len__(self) -> int:
        return sum(len(kind.rows) for kind in self.kinds) + len(self.control)

    @overload
    def __getitem__(self, place: int, /) -> ExportRecord: ...
    @overload
    def __getitem__(self, place: slice, /) -> Sequence[ExportRecord]: ...
    def __getitem__(self, place: Any, /) -> Any:
        if place in (0, -1):
            return self._end(place)
        return self._records[place]

    def __iter__(self) -> Iterator[ExportRecord]:
        return iter(self._records)

    def of_kind(self, kind: Kind) -> list[ExportRecord]:
        """Return the records of one type and version."""
        rows, data, name = kind.rows, self.chunk.data, type_of(kind)
        columns = (self.offsets, self.indexes, self.epochs, self.timestamps_ms)
        places = [column[rows].tolist() for column in columns]
        return [
            ExportRecord(offset, index, epoch, timestamp_ms, data[start:end], name, kind.version)
            for offset, index, epoch, timestamp_ms, start, end in zip(
                *places, (kind.starts - FRAME_BYTES).tolist(), kind.ends.tolist(), strict=True
            )
        ]

    def _end(self, place: int) -> ExportRecord:
        """Return the first or the last record, without the others."""
        ends = [self.of_kind(_marked(kind, [place]))[0] for kind in self.kinds]
        ends += [self.control[place]] if self.control else []
        if not ends:
            raise IndexError("there are no records")
        return min(ends, key=_order) if place == 0 else max(ends, key=_order)

    @cached_property
    def _records(self) -> list[ExportRecord]:
        found = [record for kind in self.kinds for record in self.of_kind(kind)]
        return sorted([*found, *self.control], key=_order)


def _order(record: ExportRecord) -> tuple[int, int]:
    return record.offset, record.index


def part_records(batches: Sequence[Batch], part: SnapshotPart) -> Iterator[ExportRecord]:
    """Yield the records of batches of a snapshot one by one. Raises CorruptBatch."""
    for batch, first_index in zip(batches, part.first_indexes, strict=True):
        yield from snapshot_records(batch, part.id, part.timestamp_ms, first_index)


def type_of(kind: Kind) -> str:
    """Return the name of a type; UNKNOWN if this release has none."""
    return METADATA_RECORDS.get(kind.api_key, UNKNOWN)


def log_columns(batches: Sequence[Batch], wanted: Filter, from_offset: int) -> ColumnRecords:
    """Return the wanted records of batches of the log, from an offset on, which may be within the first
    batch. The filter must only ask for types. Raises Malformed for records that aren't as usual, and
    CorruptBatch."""
    page = _page(batches)
    control = [
        record
        for batch in batches
        if batch.header.is_control
        for record in log_records(batch)
        if record.offset >= from_offset and wanted.takes(record)
    ]
    indexes = np.zeros(len(page.offsets), np.int64)
    kinds = [
        _from(kind, page.offsets[kind.rows] >= from_offset)
        for kind in page.kinds
        if wanted.takes_type(type_of(kind))
    ]
    kinds = [kind for kind in kinds if len(kind.rows)]
    return ColumnRecords(page, page.offsets, indexes, page.epochs, page.timestamps_ms, kinds, control)


def snapshot_columns(batches: Sequence[Batch], wanted: Filter, part: SnapshotPart) -> ColumnRecords:
    """Return the wanted records of batches of a snapshot. The filter must only ask for types. Raises
    Malformed for records that aren't as usual, and CorruptBatch."""
    page = _page(batches)
    control: list[ExportRecord] = []
    bases, firsts, counts = [], [], []
    for batch, first_index in zip(batches, part.first_indexes, strict=True):
        if batch.header.is_control:
            found = snapshot_records(batch, part.id, part.timestamp_ms, first_index)
            control += filter(wanted.takes, found)
        else:
            bases.append(batch.header.base_offset)
            firsts.append(first_index)
            counts.append(batch.header.record_count)
    count = len(page.offsets)
    indexes = page.offsets + np.repeat(np.array(firsts, np.int64) - np.array(bases, np.int64), counts)
    return ColumnRecords(
        page,
        np.full(count, part.id.end_offset - 1),
        indexes,
        np.full(count, part.id.epoch),
        np.full(count, part.timestamp_ms),
        [kind for kind in page.kinds if wanted.takes_type(type_of(kind))],
        control,
    )


def _page(batches: Sequence[Batch]) -> Page:
    placed, position = [], 0
    for batch in batches:
        placed.append((position, batch.header))
        position += len(batch.data)
    return Page(b"".join([batch.data for batch in batches]), placed)


def _from(kind: Kind, mask: Any) -> Kind:
    return kind if mask.all() else _marked(kind, mask)


def _marked(kind: Kind, wanted: Any) -> Kind:
    """Return some records of a kind: those of a mask, or of a list of numbers."""
    return Kind(kind.api_key, kind.version, kind.rows[wanted], kind.starts[wanted], kind.ends[wanted])
