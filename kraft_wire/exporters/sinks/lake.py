"""Write records to the table ``records`` of a lake, as `pipeline run` does (``kraft_wire/lake``), so that
`restore` reads them. A batch is in the lake completely or not at all, and no record comes twice.

The parts of a snapshot wait in ``_kraft/snapshot`` until all of them are there.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import trio

from kraft_wire.exporters.arrow_rows import table_of
from kraft_wire.exporters.records import RESYNC_INDEX, ExportBatch, ExportRecord
from kraft_wire.exporters.settings import ExporterSettings
from kraft_wire.exporters.sinks import SinkFailed
from kraft_wire.exporters.sinks.blocking import BlockingSink
from kraft_wire.exporters.sinks.files import FILE_MODE
from kraft_wire.lake.folding import fold_small_files
from kraft_wire.lake.formats import DELTA_LOG
from kraft_wire.lake.protocol import CLUSTER_FOLDER, PART, Lake, checkpoint_of
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.tabular.arrow_types import RECORDS_SCHEMA
from kraft_wire.tabular.table_names import RECORDS

PARTS: Final = "_kraft/snapshot"
_SCHEMA: Final = RECORDS_SCHEMA.remove(RECORDS_SCHEMA.get_field_index("cluster"))
"""The cluster is in the folder's name."""
_IDENTITY: Final = ("offset", "epoch", "type", "json")
"""The columns by which a record is told from any other."""


class LakeSettings(msgspec.Struct, frozen=True, rename={"interval_ms": "interval.ms"}):
    """The options of this kind of sink (``kinds.py``)."""

    path: str
    interval_ms: int


def make_sink(exporter: ExporterSettings) -> LakeRecordsSink:
    """Return the sink of an exporter."""
    return LakeRecordsSink(msgspec.convert(exporter.options, LakeSettings))


class _Place(NamedTuple):
    """The place of a record. Those of one log ascend, also if committed records were lost in a recovery:
    then a later epoch has other records at the same offsets."""

    epoch: int
    offset: int


class LakeRecordsSink(BlockingSink):
    """A ``Sink`` of one lake, which belongs to it while it is open.

    A lake's batch costs some flushes, so there is one in ``interval_ms`` at most.
    """

    def __init__(self, settings: LakeSettings) -> None:
        self._target = Path(settings.path)
        self._interval_s = settings.interval_ms / 1000
        self._not_before_s = 0.0
        self._lake: Lake | None = None
        self._ends: dict[str, _Place] = {}
        self._parts: list[Path] = []
        self._is_checked = False

    async def export(self, batch: ExportBatch) -> None:
        await trio.sleep_until(self._not_before_s)
        await super().export(batch)
        self._not_before_s = trio.current_time() + self._interval_s

    def _open(self) -> None:
        if checkpoint_of(self._target).exists() or next(self._target.glob(f"*/{DELTA_LOG}"), None):
            raise SinkFailed(
                f"{self._target}: a pipeline writes there; give the exporter a folder of its own"
            )
        self._lake = Lake(self._target)
        self._ends = {}
        folder = self._target / PARTS
        for path in folder.glob("*"):
            if path not in self._parts:
                path.unlink()

    def _close(self) -> None:
        if self._lake is not None:
            self._lake.__exit__()
            self._lake = None

    def _export(self, batch: ExportBatch) -> None:
        assert self._lake is not None, "the sink is open"
        last = batch.records[-1]
        if last.index == 0:
            self._export_log(self._lake, batch)
        elif last.index != RESYNC_INDEX and _place_of(last) > self._end_of(self._lake, batch.cluster):
            self._export_snapshot(self._lake, batch)

    def _export_log(self, lake: Lake, batch: ExportBatch) -> None:
        rows, end = _rows(batch), self._end_of(lake, batch.cluster)
        is_new = _is_after(rows, end)
        self._check_known(lake, batch.cluster, rows.filter(pc.invert(is_new)).slice(0, 1))
        rows = rows.filter(is_new)
        if rows.num_rows:
            _write(rows, _staged(lake.begin(lake.last_batch + 1), batch.cluster) / "log.parquet")
            self._commit(lake, batch)

    def _check_known(self, lake: Lake, cluster: str, row: pa.Table) -> None:
        """Check a row that should be in the lake already. Raises SinkFailed if the lake has another one: a
        cluster that was formatted again with the same id has another log."""
        if self._is_checked or not row.num_rows:
            return
        known = ds.dataset(_log_files(lake, cluster), _SCHEMA).to_table(
            filter=(ds.field("offset") == row["offset"][0]) & ~ds.field("in_snapshot")
        )
        wanted = row.select(_IDENTITY).to_pylist()[0]
        if known.num_rows and wanted not in known.select(_IDENTITY).to_pylist():
            raise SinkFailed(
                f"{self._target} has another record at offset {wanted['offset']}: it is of another log; give"
                " the exporter another folder"
            )
        self._is_checked = True

    def _export_snapshot(self, lake: Lake, batch: ExportBatch) -> None:
        """Keep a part of a snapshot. The last one makes all of them the lake's."""
        first = next(record for record in batch.records if record.index > 0)
        if first.index == 1:
            self._forget_parts()
        path = self._target / PARTS / f"{first.offset:020d}-{first.index:012d}.parquet"
        _write(_rows(batch, in_snapshot=True), path)
        if path not in self._parts:
            self._parts.append(path)
        if batch.ends_snapshot:
            staged = _staged(lake.begin(lake.last_batch + 1), batch.cluster)
            _write(_ends_of_snapshot(first), staged / "ends.parquet")
            for part in self._parts:
                os.link(part, staged / part.name)  # they are needed again if the batch fails
            self._commit(lake, batch)
            self._forget_parts()

    def _commit(self, lake: Lake, batch: ExportBatch) -> None:
        folded = fold_small_files(lake.target, lake.staging)
        end = _place_of(batch.records[-1])
        lake.commit(lake.last_batch + 1, {}, {batch.cluster: end.offset}, folded)
        self._ends[batch.cluster] = end

    def _forget_parts(self) -> None:
        shutil.rmtree(self._target / PARTS, ignore_errors=True)
        self._parts = []

    def _end_of(self, lake: Lake, cluster: str) -> _Place:
        """Return the place of the last record that the lake has of a cluster."""
        if cluster not in self._ends:
            epoch = max(map(_last_epoch, _log_files(lake, cluster)), default=-1)
            self._ends[cluster] = _Place(epoch, lake.ends.get(cluster, -1))
        return self._ends[cluster]


def _log_files(lake: Lake, cluster: str) -> list[Path]:
    return lake.files(RECORDS, [f"{CLUSTER_FOLDER}{cluster}"], PART)


def _place_of(record: ExportRecord) -> _Place:
    return _Place(record.epoch, record.offset)


def _staged(staging: Path, cluster: str) -> Path:
    folder = staging / RECORDS / f"{CLUSTER_FOLDER}{cluster}"
    folder.mkdir(parents=True)
    return folder


def _write(rows: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, compression="zstd")
    path.chmod(FILE_MODE)


def _last_epoch(file: Path) -> int:
    """Return the highest epoch in a file, from its statistics."""
    metadata = pq.read_metadata(file)
    column = metadata.schema.to_arrow_schema().get_field_index("epoch")
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return max((int(group.column(column).statistics.max) for group in groups), default=-1)


def _rows(batch: ExportBatch, *, in_snapshot: bool = False) -> pa.Table:
    """Return the rows of a batch. Raises SinkFailed for a record that can't be decoded: the lake waits until
    the controller was upgraded."""
    table = table_of(batch)
    table = table.filter(pc.not_equal(table["index"], RESYNC_INDEX))
    _check_decoded(table)
    columns = {
        "offset": table["offset"],
        "epoch": table["epoch"],
        "timestamp": pc.cast(table["timestamp"], _SCHEMA.field("timestamp").type),
        "committed": pa.repeat(pa.scalar(True), table.num_rows),
        "in_snapshot": pa.repeat(pa.scalar(in_snapshot), table.num_rows),
        "type": table["type"],
        "version": table["version"],
        "json": table["data"],
    }
    return pa.table({name: columns[name] for name in _SCHEMA.names}, schema=_SCHEMA)


def _check_decoded(table: pa.Table) -> None:
    undecoded = table.filter(pc.is_null(table["data"])).slice(0, 1).to_pylist()
    if undecoded:
        raise SinkFailed(
            f"the record at offset {undecoded[0]['offset']} can't be decoded ({undecoded[0]['undecoded']}):"
            " upgrade this controller"
        )


def _is_after(rows: pa.Table, end: _Place) -> pa.ChunkedArray:
    is_later = pc.greater(rows["epoch"], end.epoch)
    follows = pc.and_(pc.equal(rows["epoch"], end.epoch), pc.greater(rows["offset"], end.offset))
    return pc.or_(is_later, follows)


def _ends_of_snapshot(record: ExportRecord) -> pa.Table:
    """Return the rows of a snapshot's header and footer, which aren't exported."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=record.timestamp_ms)
    ends: list[Message] = [header, SnapshotFooterRecord()]
    rows = [
        {
            "offset": record.offset,
            "epoch": record.epoch,
            "timestamp": record.timestamp_ms * 1000,
            "committed": True,
            "in_snapshot": True,
            "type": end.NAME,
            "version": 0,
            "json": msgspec.json.encode(end.to_json(0)).decode(),
        }
        for end in ends
    ]
    return pa.Table.from_pylist(rows, _SCHEMA)
