"""The Delta log beside a lake's files lists the files that exist, batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from kraft_wire.cli.errors import CommandError
from kraft_wire.cli.pipeline import check_extra
from kraft_wire.lake.delta import announce
from kraft_wire.lake.files import LakeFiles
from kraft_wire.lake.formats import open_lake
from kraft_wire.lake.protocol import Lake, LakeError, visible_tables

SCHEMA = pa.schema(
    [
        ("offset", pa.int64()),
        ("version", pa.int16()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("isr", pa.list_(pa.field("element", pa.int32()))),
        ("committed", pa.bool_()),
        ("principal", pa.list_(pa.struct([("name", pa.string()), ("salt", pa.binary())]))),
    ]
)
TIME = datetime(2026, 11, 22, tzinfo=UTC)


def rows(*offsets: int, schema: pa.Schema = SCHEMA) -> pa.Table:
    values = {
        "offset": offsets,
        "version": [1] * len(offsets),
        "timestamp": [TIME] * len(offsets),
        "isr": [[1, 2]] * len(offsets),
        "committed": [None] * len(offsets),
        "principal": [[{"name": "a", "salt": b"\0"}]] * len(offsets),
        "since_then": [7] * len(offsets),
    }
    return pa.table({name: values[name] for name in schema.names}, schema=schema)


def stage(lake: Lake, batch: int, files: dict[str, pa.Table]) -> None:
    staging = lake.begin(batch)
    for name, table in files.items():
        path = staging / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)


def offsets(target: Path, table: str = "leadership") -> Counter[tuple[str, int]]:
    """Return what a reader of Delta sees, by cluster."""
    found = DeltaTable(str(target / table)).to_pyarrow_table().to_pylist()
    return Counter((row["cluster"], row["offset"]) for row in found)


def parquet_offsets(target: Path, table: str = "leadership") -> Counter[tuple[str, int]]:
    return Counter(
        (file.parent.name.partition("=")[2], offset)
        for file in (target / table).glob("cluster=*/*.parquet")
        for offset in pq.ParquetFile(file).read()["offset"].to_pylist()
    )


FIRST = {
    "leadership/cluster=a/kraft_part=part/x.parquet": rows(1, 2),
    "leadership/cluster=a/kraft_part=open/x.parquet": rows(3),
    "leadership/cluster=b/kraft_part=open/x.parquet": rows(9),
    "_kraft/pending/cluster=a/kraft_part=open/x.parquet": rows(4),
}
SECOND = {
    "leadership/cluster=a/kraft_part=part/x.parquet": rows(3),
    "leadership/cluster=a/kraft_part=open/x.parquet": rows(5),
}


def write(lake: Lake, batch: int, files: dict[str, pa.Table]) -> None:
    stage(lake, batch, files)
    lake.commit(batch, {"leadership": ["cluster=a"], "_kraft/pending": ["cluster=a"]}, {"a": batch})


def test_each_batch_is_one_commit_of_a_table(tmp_path: Path) -> None:
    with Lake(tmp_path, partial(announce, tmp_path)) as lake:
        write(lake, 0, FIRST)
        assert offsets(tmp_path) == {("a", 1): 1, ("a", 2): 1, ("a", 3): 1, ("b", 9): 1}
        write(lake, 1, SECOND)
        assert offsets(tmp_path) == {("a", 1): 1, ("a", 2): 1, ("a", 3): 1, ("a", 5): 1, ("b", 9): 1}
    assert offsets(tmp_path) == parquet_offsets(tmp_path)
    assert DeltaTable(str(tmp_path / "leadership")).version() == 1
    assert visible_tables(tmp_path) == ["leadership"]
    assert not DeltaTable.is_deltatable(str(tmp_path / "_kraft" / "pending"))


def test_all_columns_are_as_they_were_written(tmp_path: Path) -> None:
    with Lake(tmp_path, partial(announce, tmp_path)) as lake:
        write(lake, 0, FIRST)
    found = DeltaTable(str(tmp_path / "leadership")).to_pyarrow_table(filters=[("cluster", "=", "b")])
    assert found.select(SCHEMA.names).to_pylist() == rows(9).to_pylist()
    assert [row["num_records"] for row in actions(tmp_path)] == [1, 2, 1]


def actions(target: Path) -> list[dict[str, Any]]:
    found = pa.table(DeltaTable(str(target / "leadership")).get_add_actions(flatten=True)).to_pylist()
    return sorted(found, key=lambda row: row["path"])


def test_announcing_again_changes_nothing(tmp_path: Path) -> None:
    with Lake(tmp_path, partial(announce, tmp_path)) as lake:
        write(lake, 0, FIRST)
    announce(tmp_path, visible_tables(tmp_path))
    assert DeltaTable(str(tmp_path / "leadership")).version() == 0


def test_a_checkpoint_of_deltas_own_is_no_file_of_the_table(tmp_path: Path) -> None:
    """Delta's checkpoint is Parquet as well, and lies in a folder of the table."""
    with Lake(tmp_path, partial(announce, tmp_path)) as lake:
        write(lake, 0, FIRST)
        DeltaTable(str(tmp_path / "leadership")).create_checkpoint()
        before = parquet_offsets(tmp_path)
        announce(tmp_path, ["leadership"])
        assert offsets(tmp_path) == before
    assert DeltaTable(str(tmp_path / "leadership")).version() == 0
    found = LakeFiles(str(tmp_path), ["leadership"]).files("leadership")
    assert {Path(name).parent.name for name in found} == {"cluster=a", "cluster=b"}


def test_batches_without_a_log_get_into_it_later(tmp_path: Path) -> None:
    with Lake(tmp_path) as lake:
        write(lake, 0, FIRST)
        write(lake, 1, SECOND)
    announce(tmp_path, visible_tables(tmp_path))
    assert offsets(tmp_path) == parquet_offsets(tmp_path)


class Killed(Exception):
    pass


def test_a_batch_whose_announcement_was_interrupted_is_announced_at_the_start(tmp_path: Path) -> None:
    def kill(tables: Collection[str], leaving: Collection[str]) -> None:
        raise Killed

    with Lake(tmp_path, partial(announce, tmp_path)) as lake:
        write(lake, 0, FIRST)
    with pytest.raises(Killed), Lake(tmp_path) as lake:
        lake._announce = kill
        write(lake, 1, SECOND)
    assert ("a", 5) not in offsets(tmp_path)
    with Lake(tmp_path, partial(announce, tmp_path)) as lake:
        assert lake.last_batch == 1
    assert offsets(tmp_path) == parquet_offsets(tmp_path)


def test_a_file_that_is_about_to_go_counts_no_longer(tmp_path: Path) -> None:
    """A reader never sees a row both among the open rows and among those that stay."""
    seen: list[Counter[tuple[str, int]]] = []

    def look(tables: Collection[str], leaving: Collection[str]) -> None:
        announce(tmp_path, tables, leaving)
        seen.append(offsets(tmp_path))

    with Lake(tmp_path, look) as lake:
        write(lake, 0, FIRST)
        write(lake, 1, SECOND)
    assert seen[1] == parquet_offsets(tmp_path)


def test_a_column_of_a_newer_version_is_added(tmp_path: Path) -> None:
    wider = SCHEMA.append(pa.field("since_then", pa.int32()))
    with Lake(tmp_path, partial(announce, tmp_path)) as lake:
        write(lake, 0, FIRST)
        write(lake, 1, {name: rows(5, schema=wider) for name in SECOND})
    found = DeltaTable(str(tmp_path / "leadership")).to_pyarrow_table().to_pylist()
    assert {(row["offset"], row["since_then"]) for row in found} == {(1, None), (2, None), (5, 7), (9, None)}


@pytest.mark.parametrize("cluster", ["my cluster", "50%", "a=b", "ü"])
def test_a_cluster_of_any_name(tmp_path: Path, cluster: str) -> None:
    folder = f"cluster={quote(cluster, safe=' ')}"  # as Spark escapes it
    with Lake(tmp_path, partial(announce, tmp_path)) as lake:
        for batch in (0, 1):
            stage(lake, batch, {f"leadership/{folder}/kraft_part=open/x.parquet": rows(batch)})
            lake.commit(batch, {"leadership": [folder]}, {cluster: batch})
    assert offsets(tmp_path) == {(cluster, 1): 1}
    announce(tmp_path, ["leadership"])
    assert DeltaTable(str(tmp_path / "leadership")).version() == 1


def test_delta_tables_are_not_left_behind(tmp_path: Path) -> None:
    with Lake(tmp_path, partial(announce, tmp_path)) as lake:
        write(lake, 0, FIRST)
    with pytest.raises(LakeError, match="give --format delta"):
        open_lake(tmp_path, "parquet")


def test_a_missing_extra_is_named() -> None:
    with pytest.raises(CommandError, match=r"nothing_like_it is not installed: install kraft-wire\[delta\]"):
        check_extra("delta", "nothing_like_it")
