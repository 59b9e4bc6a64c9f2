"""The table ``records`` in Parquet, in files of all kinds, is read in the order of the log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kraft_wire.lake.records import LakeRecords, NoRecords
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.tabular.record_rows import RecordRow, rows_of_batches
from tests.support.java_rows import BUSY, CLUSTER, NODE, log_arrow, log_rows, snapshot_arrow, snapshot_rows

OTHER = "zzzzzzzzzzzzzzzzzzzzzz"


def log_table(folder: Path = BUSY) -> pa.Table:
    return pa.Table.from_batches(log_arrow(folder))


def of_cluster(table: pa.Table, cluster: str) -> pa.Table:
    column = pa.array([cluster] * table.num_rows)
    return table.set_column(table.schema.get_field_index("cluster"), "cluster", column)


def write(lake: Path, name: str, table: pa.Table, rows_a_group: int = 50) -> None:
    """Write as Spark's partitionBy("cluster") does: the cluster is in the folder's name, not in the file."""
    (cluster,) = table.column("cluster").unique().to_pylist()
    folder = lake / "records" / f"cluster={cluster}"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.drop_columns("cluster"), folder / name, row_group_size=rows_a_group)


def read(lake: Path, up_to_offset: int | None = None) -> list[RecordRow]:
    return list(rows_of_batches(LakeRecords(str(lake), CLUSTER).batches(up_to_offset)))


def pieces(table: pa.Table, random: Random, most: int) -> Sequence[pa.Table]:
    cuts = sorted({0, *random.sample(range(table.num_rows), most), table.num_rows})
    return [table.slice(start, end - start) for start, end in pairwise(cuts)]


def test_files_of_a_stream(tmp_path: Path) -> None:
    random = Random(1)
    for number, piece in enumerate(pieces(log_table(), random, 12)):
        write(tmp_path, f"part-{random.randrange(10**6)}-{number}.parquet", piece, rows_a_group=7)
    write(tmp_path, "part-0.parquet", of_cluster(log_table(NODE), OTHER))
    assert read(tmp_path) == list(log_rows(BUSY))


def test_a_lake_below_a_folder_that_is_called_as_a_clusters_is(tmp_path: Path) -> None:
    lake = tmp_path / "cluster=other" / "lake"
    write(lake, "part-0.parquet", log_table())
    assert read(lake) == list(log_rows(BUSY))


@pytest.mark.parametrize("seed", range(5))
def test_files_that_overlap_and_are_in_no_order(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    table = log_table()
    places = list(range(table.num_rows))
    random.shuffle(places)
    for number, piece in enumerate(pieces(table.take(places), random, 5)):
        write(tmp_path, f"{number}.parquet", piece, rows_a_group=random.randrange(20, 200))
    assert read(tmp_path) == list(log_rows(BUSY))


def test_files_that_are_not_in_folders_of_clusters(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    both = pa.concat_tables([of_cluster(log_table(NODE), OTHER), log_table()])
    pq.write_table(both, tmp_path / "records/all.parquet", row_group_size=64)
    assert read(tmp_path) == list(log_rows(BUSY))


def test_files_without_statistics(tmp_path: Path) -> None:
    folder = tmp_path / "records" / f"cluster={CLUSTER}"
    folder.mkdir(parents=True)
    table = log_table().drop_columns("cluster")
    for number in (1, 0):
        half = table.slice(number * 200, 200 if number == 0 else None)
        pq.write_table(half, folder / f"{number}.parquet", row_group_size=30, write_statistics=False)
    assert read(tmp_path) == list(log_rows(BUSY))


def test_rows_up_to_an_offset(tmp_path: Path) -> None:
    write(tmp_path, "0.parquet", log_table())
    assert read(tmp_path, 200) == [row for row in log_rows(BUSY) if row.offset <= 200]


def test_rows_of_an_offset_are_in_the_order_of_epochs(tmp_path: Path) -> None:
    table = log_table(NODE)
    column = pa.array([4] * table.num_rows, pa.int32())
    again = table.set_column(table.schema.get_field_index("epoch"), "epoch", column)
    write(tmp_path, "0.parquet", again.slice(100, 10), rows_a_group=3)
    write(tmp_path, "1.parquet", table, rows_a_group=20)
    rows = read(tmp_path)
    expected = [*log_rows(NODE), *(row._replace(epoch=4) for row in log_rows(NODE)[100:110])]
    assert rows == sorted(expected, key=lambda row: (row.offset, row.epoch))


def test_a_snapshots_rows_follow_its_last_offset_in_an_order_to_replay_them(tmp_path: Path) -> None:
    snapshot_id = SnapshotId(308, 1)
    snapshot = pa.Table.from_batches(snapshot_arrow(BUSY, snapshot_id))
    places = list(range(snapshot.num_rows))
    Random(3).shuffle(places)
    write(tmp_path, "0.parquet", log_table().slice(250), rows_a_group=40)
    for number, piece in enumerate(pieces(snapshot.take(places), Random(4), 4)):
        write(tmp_path, f"snapshot-{number}.parquet", piece, rows_a_group=9)
    rows = read(tmp_path)
    in_log = [row for row in rows if not row.in_snapshot]
    in_snapshot = [row for row in rows if row.in_snapshot]
    assert in_log == list(log_rows(BUSY)[250:])
    assert sorted(in_snapshot) == sorted(snapshot_rows(BUSY, snapshot_id))
    assert rows[308 - 250 : 308 - 250 + len(in_snapshot)] == in_snapshot
    assert (in_snapshot[0].type, in_snapshot[-1].type) == ("SnapshotHeaderRecord", "SnapshotFooterRecord")
    values = [encode_metadata_record(row.message(), row.version) for row in in_snapshot if not row.is_control]
    MetadataState.from_snapshot_values([values], 307)


def test_a_snapshot_behind_all_else(tmp_path: Path) -> None:
    snapshot_id = SnapshotId(410, 1)
    write(tmp_path, "0.parquet", log_table().slice(0, 100))
    write(tmp_path, "1.parquet", pa.Table.from_batches(snapshot_arrow(BUSY, snapshot_id)))
    assert [row.in_snapshot for row in read(tmp_path)][100:] == [True] * len(snapshot_rows(BUSY, snapshot_id))
    assert len(read(tmp_path, 408)) == 100


def test_the_last_offset_of_a_time(tmp_path: Path) -> None:
    write(tmp_path, "0.parquet", log_table())
    lake = LakeRecords(str(tmp_path), CLUSTER)
    rows = log_rows(BUSY)
    for row in rows[::37]:
        time = datetime.fromtimestamp(row.timestamp_ms / 1000, UTC)
        expected = max(other.offset for other in rows if other.timestamp_ms <= row.timestamp_ms)
        assert lake.last_offset_until(time) == expected
    assert lake.last_offset_until(datetime(2099, 1, 1, tzinfo=UTC)) == rows[-1].offset
    with pytest.raises(NoRecords, match="no record of 1999-01-01T00:00:00"):
        lake.last_offset_until(datetime(1999, 1, 1, tzinfo=UTC))


def test_a_lake_without_records_or_the_cluster(tmp_path: Path) -> None:
    with pytest.raises(NoRecords, match="has no table records: give the target"):
        LakeRecords(str(tmp_path), CLUSTER)
    write(tmp_path, "0.parquet", log_table())
    with pytest.raises(NoRecords, match=f"nothing of cluster '{OTHER}'; its clusters: {CLUSTER}"):
        LakeRecords(str(tmp_path), OTHER)
