"""Use the filters that Spark passes to a batch, to read less."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from kraft_wire.logs.positions import LogPosition
from kraft_wire.logs.store import LogRange
from kraft_wire.tabular.table_names import CORRUPT, RECORDS


class RowFilter(msgspec.Struct, frozen=True):
    """The rows that are wanted: some clusters or types, None for all; offsets from ``start_offset`` on, below
    ``end_offset``."""

    clusters: frozenset[str] | None = None
    types: frozenset[str] | None = None
    start_offset: int = 0
    end_offset: int | None = None

    def wants(self, cluster: str) -> bool:
        return self.clusters is None or cluster in self.clusters

    def cut(self, wanted: LogRange, end: LogPosition) -> LogRange | None:
        """Return the part of a range that may be wanted, in a log that ends at ``end``; None for no part."""
        cut = msgspec.structs.replace(wanted, start_offset=max(wanted.start_offset, self.start_offset))
        last = end.offset if wanted.end_offset is None else wanted.end_offset
        if self.end_offset is not None and self.end_offset < last:
            cut = msgspec.structs.replace(cut, end_offset=self.end_offset)
            last = self.end_offset
        snapshot_id = wanted.snapshot
        if snapshot_id is not None and not self._wants_offset(snapshot_id.end_offset - 1):
            cut = msgspec.structs.replace(cut, snapshot=None)
        return cut if cut.snapshot is not None or cut.start_offset < last or cut.end_offset is None else None

    def _wants_offset(self, offset: int) -> bool:
        return offset >= self.start_offset and (self.end_offset is None or offset < self.end_offset)


EVERY_ROW: Final = RowFilter()

_Bounds = tuple[int, int | None]
_OFFSETS: Final[dict[type[Filter], Callable[[int], _Bounds]]] = {
    EqualTo: lambda offset: (offset, offset + 1),
    EqualNullSafe: lambda offset: (offset, offset + 1),
    GreaterThan: lambda offset: (offset + 1, None),
    GreaterThanOrEqual: lambda offset: (offset, None),
    LessThan: lambda offset: (0, offset),
    LessThanOrEqual: lambda offset: (0, offset + 1),
}


def pushed(filters: Iterable[Filter], table: str) -> tuple[RowFilter, list[Filter]]:
    """Return the rows that the filters want, and the filters that Spark must still apply."""
    rows, others = EVERY_ROW, []
    for each in filters:
        narrowed, is_done = _narrowed(rows, each, table)
        rows = narrowed or rows
        if not is_done:
            others.append(each)
    return rows, others


def _narrowed(rows: RowFilter, each: Filter, table: str) -> tuple[RowFilter | None, bool]:
    """Add a filter. Returns None for the rows if the filter doesn't narrow them, and whether Spark needn't
    apply it."""
    (column,) = getattr(each, "attribute", ("",))[:1]
    value = getattr(each, "value", None)
    if isinstance(each, IsNotNull):
        return None, column in ("cluster", "offset") or (column == "type" and table == RECORDS)
    if column == "cluster":
        names = _names(each, value)
        return (None, False) if names is None else (_with_clusters(rows, names), True)
    if column == "type" and table == RECORDS:
        names = _names(each, value)
        return (None, False) if names is None else (_with_types(rows, names), True)
    if column == "offset" and table != CORRUPT:
        return _with_offsets(rows, each, value)
    return None, False


def _names(each: Filter, value: Any) -> frozenset[str] | None:
    if isinstance(each, EqualTo | EqualNullSafe) and isinstance(value, str):
        return frozenset([value])
    if isinstance(each, In) and all(isinstance(name, str) for name in value):
        return frozenset(value)
    return None


def _with_clusters(rows: RowFilter, names: frozenset[str]) -> RowFilter:
    return msgspec.structs.replace(rows, clusters=names if rows.clusters is None else rows.clusters & names)


def _with_types(rows: RowFilter, names: frozenset[str]) -> RowFilter:
    return msgspec.structs.replace(rows, types=names if rows.types is None else rows.types & names)


def _with_offsets(rows: RowFilter, each: Filter, value: Any) -> tuple[RowFilter | None, bool]:
    if isinstance(each, In) and value and all(isinstance(offset, int) for offset in value):
        return _between(rows, min(value), max(value) + 1), False
    bounds_of = _OFFSETS.get(type(each))
    if bounds_of is None or not isinstance(value, int):
        return None, False
    return _between(rows, *bounds_of(value)), True


def _between(rows: RowFilter, start_offset: int, end_offset: int | None) -> RowFilter:
    ends = [end for end in (rows.end_offset, end_offset) if end is not None]
    return msgspec.structs.replace(
        rows, start_offset=max(rows.start_offset, start_offset), end_offset=min(ends, default=None)
    )
