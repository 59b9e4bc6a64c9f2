"""Read the pipeline's Parquet table ``records`` in the order of a log, without Spark.

Files and their row groups overlap little. Each is opened when its first offset is needed, and only
overlapping ones are in memory together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kraft_wire.lake.files import LakeFiles
from kraft_wire.log.errors import LogError
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.tabular.record_rows import COLUMNS
from kraft_wire.tabular.table_names import RECORDS

_BATCH_ROWS: Final = 16 * 1024
_UNKNOWN: Final = -1
_KEYS: Final = pa.schema([pa.field("offset", pa.int64()), pa.field("epoch", pa.int32())])
_READING: Final = ds.ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)

_SNAPSHOT_ORDER: Final[Sequence[Sequence[str]]] = (
    ("SnapshotHeaderRecord",),
    ("KRaftVersionRecord",),
    ("VotersRecord",),
    ("FeatureLevelRecord",),
    ("RegisterBrokerRecord", "RegisterControllerRecord"),
    ("TopicRecord",),
    ("PartitionRecord",),
    (),
    ("SnapshotFooterRecord",),
)
"""The order in which a snapshot's records can be replayed, because records refer to others; a table doesn't
keep it. ``()`` stands for all other types."""


class NoRecords(LogError):
    """A lake without the records that were asked for. The text says what it has instead."""


class LakeRecords:
    """One cluster's rows, below the folder or address that the pipeline writes to.

    Raises NoRecords, OSError, pyarrow.ArrowInvalid for files that aren't Parquet. FileNotFoundError means
    that a writer replaced files in the meantime: start again.
    """

    def __init__(self, target: str, cluster: str) -> None:
        self._cluster = pc.field("cluster") == cluster
        self._in_snapshots = self._cluster & pc.field("in_snapshot")
        dataset = LakeFiles(target, [RECORDS]).dataset(RECORDS)
        if dataset is None:
            raise NoRecords(f"{target} has no table {RECORDS}: give the target of `pipeline run`")
        self._dataset = dataset
        if not self._dataset.head(1, filter=self._cluster).num_rows:
            known = ", ".join(self._clusters()) or "none"
            raise NoRecords(f"{target} has nothing of cluster {cluster!r}; its clusters: {known}")

    def _clusters(self) -> list[str]:
        found: set[str] = set()
        for batch in self._dataset.to_batches(columns=["cluster"]):
            found.update(batch.column(0).unique().to_pylist())
        return sorted(found)

    def last_offset_until(self, time: datetime) -> int:
        """Return the offset of the last record that was written by this time. Raises NoRecords."""
        written = self._cluster & (pc.field("timestamp") <= pa.scalar(time, pa.timestamp("us", "UTC")))
        last = max(
            (pc.max(batch.column(0)).as_py() for batch in self._scan(["offset"], written)),
            default=None,
        )
        if last is None:
            raise NoRecords(f"there is no record of {time.isoformat()} or before")
        return int(last)

    def batches(self, up_to_offset: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows by offset, and by epoch for equal offsets.

        The rows of a snapshot follow the row of the last offset that it covers, in an order in which they can
        be replayed.
        """
        within = self._up_to(up_to_offset)
        snapshots = self._snapshots(within)
        for batch in self._log_batches(within & ~pc.field("in_snapshot")):
            offsets = batch.column("offset").to_numpy()
            done = 0
            while snapshots and snapshots[0].end_offset <= offsets[-1]:
                end = int(np.searchsorted(offsets, snapshots[0].end_offset))
                yield batch.slice(done, end - done)
                yield from self._snapshot_batches(snapshots.pop(0))
                done = end
            yield batch.slice(done)
        for snapshot_id in snapshots:
            yield from self._snapshot_batches(snapshot_id)

    def _up_to(self, offset: int | None) -> Any:
        return self._cluster if offset is None else self._cluster & (pc.field("offset") <= offset)

    def _scan(self, columns: Sequence[str], rows: Any) -> Iterator[pa.RecordBatch]:
        return (batch for batch in self._dataset.to_batches(**_scan(columns, rows)) if batch.num_rows)

    # --- snapshots

    def _snapshots(self, within: Any) -> list[SnapshotId]:
        found: set[SnapshotId] = set()
        for batch in self._scan(["offset", "epoch"], within & pc.field("in_snapshot")):
            places = np.unique(np.column_stack([column.to_numpy() for column in batch.columns]), axis=0)
            found.update(SnapshotId(offset + 1, epoch) for offset, epoch in places.tolist())
        return sorted(found)

    def _snapshot_batches(self, snapshot_id: SnapshotId) -> Iterator[pa.RecordBatch]:
        place = (pc.field("offset") == snapshot_id.end_offset - 1) & (pc.field("epoch") == snapshot_id.epoch)
        named = [name for names in _SNAPSHOT_ORDER for name in names]
        for names in _SNAPSHOT_ORDER:
            kind = pc.field("type").isin(names) if names else ~pc.field("type").isin(named)
            yield from self._scan(COLUMNS, self._in_snapshots & place & kind)

    # --- the log

    def _log_batches(self, rows: Any) -> Iterator[pa.RecordBatch]:
        """Merge all row groups; each is opened when its first offset is needed."""
        groups = list(self._row_groups(rows))
        waiting = sorted(
            ((_first_offset(group), number) for number, group in enumerate(groups)), reverse=True
        )
        runs: list[tuple[Key, int, _Run]] = []
        while waiting or runs:
            while waiting and (not runs or waiting[-1][0] <= runs[0][0].offset):
                _, number = waiting.pop()
                _push(runs, number, _Run(_sorted_batches(groups[number], self._dataset.schema, rows)))
            if runs:
                _, number, run = heappop(runs)
                yield run.take_up_to(_limit(runs, waiting))
                _push(runs, number, run)

    def _row_groups(self, rows: Any) -> Iterator[Any]:
        for fragment in self._dataset.get_fragments(filter=rows):
            yield from fragment.split_by_row_group(filter=rows, schema=self._dataset.schema)


class Key(NamedTuple):
    """The sort key of a log's rows."""

    offset: int
    epoch: int


class _Run:
    """Sorted rows that are taken bit by bit."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._batch: pa.RecordBatch | None = None
        self._next_batch()

    @property
    def key(self) -> Key | None:
        """The key of the next row; None at the end."""
        return None if self._batch is None else Key(int(self._offsets[0]), int(self._epochs[0]))

    def take_up_to(self, limit: Key | None) -> pa.RecordBatch:
        """Take some rows up to the limit, at least the next one."""
        assert self._batch is not None, "there is a next row"
        count = len(self._offsets) if limit is None else self._count_up_to(limit)
        taken = self._batch.slice(0, count)
        if count < len(self._offsets):
            self._begin(self._batch.slice(count))
        else:
            self._next_batch()
        return taken

    def _count_up_to(self, limit: Key) -> int:
        low, high = np.searchsorted(self._offsets, [limit.offset, limit.offset + 1])
        return int(low + np.searchsorted(self._epochs[low:high], limit.epoch, side="right"))

    def _next_batch(self) -> None:
        following = next((batch for batch in self._batches if batch.num_rows), None)
        if following is None:
            self._batch = None
        else:
            self._begin(following)

    def _begin(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self._offsets, self._epochs = (batch.column(name).to_numpy() for name in Key._fields)


def _push(runs: list[tuple[Key, int, _Run]], number: int, run: _Run) -> None:
    if run.key is not None:
        heappush(runs, (run.key, number, run))


def _limit(runs: list[tuple[Key, int, _Run]], waiting: list[tuple[int, int]]) -> Key | None:
    """Return the first key that another run or row group may have; None if there is no other."""
    firsts = [key for key, _, _ in runs[:1]] + [Key(first, _UNKNOWN) for first, _ in waiting[-1:]]
    return min(firsts, default=None)


def _first_offset(group: Any) -> int:
    """Return the first offset by the row group's statistics. A row group without statistics is opened
    first."""
    statistics = group.row_groups[0].statistics or {}
    return int(statistics.get("offset", {}).get("min", _UNKNOWN))


def _sorted_batches(group: Any, schema: pa.Schema, rows: Any) -> Iterator[pa.RecordBatch]:
    keys = pa.Table.from_batches(_scan_part(group, Key._fields, rows, schema), _KEYS)
    if _is_sorted(keys):
        return _scan_part(group, COLUMNS, rows, schema)
    whole = pa.Table.from_batches(_scan_part(group, COLUMNS, rows, schema))
    by_key = [(name, "ascending") for name in Key._fields]
    batches: list[pa.RecordBatch] = whole.sort_by(by_key).to_batches(_BATCH_ROWS)
    return iter(batches)


def _is_sorted(keys: pa.Table) -> bool:
    offset_steps, epoch_steps = (np.diff(column.to_numpy()) for column in keys.columns)
    return bool(np.all((offset_steps > 0) | ((offset_steps == 0) & (epoch_steps >= 0))))


def _scan_part(group: Any, columns: Sequence[str], rows: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    batches: Iterator[pa.RecordBatch] = group.to_batches(schema=schema, **_scan(columns, rows))
    return batches


def _scan(columns: Sequence[str], rows: Any) -> dict[str, Any]:
    return {
        "columns": list(columns),
        "filter": rows,
        "batch_size": _BATCH_ROWS,
        "batch_readahead": 1,
        "fragment_readahead": 1,
        "fragment_scan_options": _READING,
    }
