"""Write records to the table ``records`` of a lake, as `pipeline run` does (``kraft_wire/lake``), so that
`restore` reads them. A batch is in the lake completely or not at all, and no record comes twice.

The parts of a snapshot wait in ``_kraft/snapshot`` until all of them are there.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from kraft_wire.exporters.arrow_rows import table_of
from kraft_wire.exporters.records import RESYNC_INDEX, ExportBatch, ExportRecord
from kraft_wire.exporters.settings import ExporterSettings
from kraft_wire.exporters.sinks import SinkFailed
from kraft_wire.exporters.sinks.blocking import BlockingSink
from kraft_wire.exporters.sinks.files import FILE_MODE
from kraft_wire.lake.folding import enough_to_fold, fold, is_small
from kraft_wire.lake.formats import DELTA_LOG
from kraft_wire.lake.protocol import CLUSTER_FOLDER, PART, Lake, checkpoint_of
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.tabular.arrow_types import RECORDS_SCHEMA
from kraft_wire.tabular.table_names import RECORDS

PARTS: Final = "_kraft/snapshot"
_SCHEMA: Final = RECORDS_SCHEMA.remove(RECORDS_SCHEMA.get_field_index("cluster"))
"""The cluster is in the folder's name."""
_IDENTITY: Final = ("offset", "epoch", "timestamp", "type", "json")
"""The columns by which a record is told from any other."""


class LakeSettings(msgspec.Struct, frozen=True):
    """The options of this kind of sink (``kinds.py``)."""

    path: str


def make_sink(exporter: ExporterSettings) -> LakeRecordsSink:
    """Return the sink of an exporter."""
    return LakeRecordsSink(msgspec.convert(exporter.options, LakeSettings))


class _Place(NamedTuple):
    """The place of a record. Those of one log ascend, also if committed records were lost in a recovery:
    then a later epoch has other records at the same offsets."""

    epoch: int
    offset: int


NOWHERE: Final = _Place(-1, -1)


class LakeRecordsSink(BlockingSink):
    """A ``Sink`` of one lake, which belongs to it while it is open."""

    def __init__(self, settings: LakeSettings) -> None:
        self._target = Path(settings.path)
        self._lake: Lake | None = None
        self._ends: dict[str, _Place] = {}
        self._small: dict[str, list[Path]] = {}
        """The small files of each cluster that has got records, oldest first."""
        self._parts: list[Path] = []

    def _open(self) -> None:
        if checkpoint_of(self._target).exists() or next(self._target.glob(f"*/{DELTA_LOG}"), None):
            raise SinkFailed(
                f"{self._target}: a pipeline writes there; give the exporter a folder of its own"
            )
        self._lake = Lake(self._target)
        self._ends, self._small = {}, {}
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
        last, end = batch.records[-1], self._end_of(self._lake, batch.cluster)
        if last.index == 0:
            self._export_log(self._lake, batch, end)
        elif last.index != RESYNC_INDEX and _place_of(last) > end:
            self._check_snapshot(last, end)
            self._export_snapshot(self._lake, batch)

    def _check_snapshot(self, record: ExportRecord, end: _Place) -> None:
        """Raise SinkFailed for a snapshot of a later epoch that ends before the lake does: its log has other
        records than the lake."""
        if record.offset <= end.offset:
            raise self._another_log(
                f"ends with offset {end.offset} and epoch {end.epoch}: the snapshot that ends at "
                f"{record.offset + 1} in epoch {record.epoch} has another past, as after a recovery that "
                "lost records"
            )

    def _export_log(self, lake: Lake, batch: ExportBatch, end: _Place) -> None:
        rows = _rows(batch)
        is_new = _is_after(rows, end)
        new = rows.filter(is_new)
        self._check_epoch(new, end)
        missing = self._missing(lake, batch.cluster, rows.filter(pc.invert(is_new)), end)
        rows = pa.concat_tables([missing, new])
        if rows.num_rows:
            staged = _staged(lake.begin(lake.last_batch + 1), batch.cluster)
            _write(rows, staged / "log.parquet")
            self._commit(lake, batch, staged)

    def _check_epoch(self, new: pa.Table, end: _Place) -> None:
        """Raise SinkFailed if new rows leave out the beginning of their epoch: then a recovery has replaced
        records that the lake has."""
        first = new.slice(0, 1).to_pylist()
        if not first or end == NOWHERE or first[0]["epoch"] == end.epoch:
            return
        if first[0]["type"] != LeaderChangeMessage.NAME:
            raise SinkFailed(
                f"{self._target} ends with epoch {end.epoch}, and offset {first[0]['offset']} is of epoch "
                f"{first[0]['epoch']}, which began before: records were replaced in a recovery. Let the "
                "exporter begin again where both agree: `kraft-wire exporters reset NAME --to OFFSET`"
            )

    def _missing(self, lake: Lake, cluster: str, rows: pa.Table, end: _Place) -> pa.Table:
        """Return the rows, of those before the lake's end, that the lake doesn't have: those of a gap. Raises
        SinkFailed for rows that are not of the lake's log: a cluster that was formatted again with the same
        id has another one."""
        if not rows.num_rows:
            return rows
        offsets = pc.min_max(rows["offset"]).as_py()
        known = ds.dataset(_log_files(lake, cluster), _SCHEMA).to_table(
            columns=list(_IDENTITY),
            filter=(ds.field("offset") >= offsets["min"])
            & (ds.field("offset") <= offsets["max"])
            & ~ds.field("in_snapshot"),
        )
        found = {(row["epoch"], row["offset"]): row for row in known.to_pylist()}
        is_missing = []
        for row in rows.select(_IDENTITY).to_pylist():
            there = found.get((row["epoch"], row["offset"]))
            if there is not None and there != row:
                raise self._another_log(f"has another record at offset {row['offset']}")
            is_missing.append(there is None)
        missing = rows.filter(pa.array(is_missing))
        if missing.num_rows:
            self._check_in_a_gap(lake, cluster, missing, end)
        return missing

    def _check_in_a_gap(self, lake: Lake, cluster: str, missing: pa.Table, end: _Place) -> None:
        begin = min(map(_first_offset, _log_files(lake, cluster)))
        offsets = pc.min_max(missing["offset"]).as_py()
        if offsets["min"] < begin:
            raise self._another_log(f"begins with offset {begin}: offset {offsets['min']} can't be added")
        if offsets["max"] > end.offset:
            raise self._another_log(
                f"ends with offset {end.offset} and epoch {end.epoch}: offset {offsets['max']} is of an "
                "earlier epoch"
            )

    def _another_log(self, what: str) -> SinkFailed:
        return SinkFailed(
            f"{self._target} {what}. If the cluster was formatted again, this is another log: give the "
            "exporter another folder"
        )

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
                shutil.copy(part, staged)  # they are needed again if the batch fails
            self._commit(lake, batch, staged)
            self._forget_parts()

    def _commit(self, lake: Lake, batch: ExportBatch, staged: Path) -> None:
        small = self._small_files(lake, batch.cluster)
        folded = enough_to_fold(small)
        if folded:
            fold(folded, staged)
        end = max(_place_of(batch.records[-1]), self._end_of(lake, batch.cluster))
        new = lake.commit(lake.last_batch + 1, {}, {batch.cluster: end.offset}, folded)
        self._small[batch.cluster] = [*small[len(folded) :], *filter(is_small, new)]
        self._ends[batch.cluster] = end

    def _small_files(self, lake: Lake, cluster: str) -> list[Path]:
        """Return the small files of a cluster. The folder is only listed once: it may have very many."""
        if cluster not in self._small:
            self._small[cluster] = [file for file in _log_files(lake, cluster) if is_small(file)]
        return self._small[cluster]

    def _forget_parts(self) -> None:
        shutil.rmtree(self._target / PARTS, ignore_errors=True)
        self._parts = []

    def _end_of(self, lake: Lake, cluster: str) -> _Place:
        """Return the place of the last record that the lake has of a cluster; ``NOWHERE`` if it has none."""
        if cluster not in self._ends:
            self._ends[cluster] = _end_in(_log_files(lake, cluster), lake.ends.get(cluster, -1))
        return self._ends[cluster]


def _end_in(files: list[Path], end_offset: int) -> _Place:
    """Return the place of the last record. The file that has it is among the newest."""
    for file in reversed(files):
        statistics = _statistics(file)
        if statistics is not None and statistics.offsets.stop > end_offset:
            return _Place(statistics.last_epoch, end_offset)
    return NOWHERE


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


class _Statistics(NamedTuple):
    """The offsets in a file, and its highest epoch."""

    offsets: range
    last_epoch: int


def _statistics(file: Path) -> _Statistics | None:
    """Return what a file says of itself; None for one without rows."""
    metadata = pq.read_metadata(file)
    names = metadata.schema.to_arrow_schema()
    groups = list(map(metadata.row_group, range(metadata.num_row_groups)))
    if not metadata.num_rows:
        return None
    offsets = [group.column(names.get_field_index("offset")).statistics for group in groups]
    epochs = [group.column(names.get_field_index("epoch")).statistics for group in groups]
    first, last = min(each.min for each in offsets), max(each.max for each in offsets)
    return _Statistics(range(first, last + 1), max(each.max for each in epochs))


def _first_offset(file: Path) -> int:
    statistics = _statistics(file)
    assert statistics is not None, "a batch without rows isn't written"
    return statistics.offsets.start


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
