"""Many small files become one as part of a batch, wherever the process is killed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kraft_wire.lake.files import LakeFiles
from kraft_wire.lake.folding import MANY, SMALL_BYTES, fold_small_files
from kraft_wire.lake.protocol import Lake
from tests.support.lake_killer import LakeKiller


def write_batch(lake: Lake, batch: int) -> None:
    """Write two rows out of order; later files have one more column."""
    folder = lake.begin(batch) / "records/cluster=a"
    folder.mkdir(parents=True)
    rows = {"offset": [2 * batch + 1, 2 * batch], "epoch": [1, 1]}
    more = {"json": ["odd", "even"]} if batch > 3 else {}
    pq.write_table(pa.table({**rows, **more}), folder / "x.parquet")
    staging = folder.parent.parent
    lake.commit(batch, {}, {"a": 2 * batch + 1}, fold_small_files(lake.target, staging))


def write_next(lake: Lake) -> None:
    write_batch(lake, lake.last_batch + 1)


def offsets(target: Path) -> list[int]:
    dataset = LakeFiles(str(target), ["records"]).dataset("records")
    assert dataset is not None
    return sorted(dataset.to_table(columns=["offset"])["offset"].to_pylist())


def files(target: Path) -> list[str]:
    return sorted(file.name for file in target.glob("records/*/*.parquet"))


def with_batches(target: Path, count: int) -> Path:
    for batch in range(count):
        with Lake(target) as lake:
            write_batch(lake, batch)
    return target


def test_many_small_files_become_one_in_order(tmp_path: Path) -> None:
    with_batches(tmp_path, MANY)
    assert len(files(tmp_path)) == MANY
    with Lake(tmp_path) as lake:
        write_batch(lake, MANY)
    assert files(tmp_path) == [f"part-{MANY:08d}-{number:03d}.parquet" for number in range(2)]
    rows = pq.read_table(tmp_path / "records/cluster=a" / files(tmp_path)[0])
    assert rows["offset"].to_pylist() == list(range(2 * MANY))
    assert rows["json"].to_pylist() == [None] * 8 + ["even", "odd"] * (MANY - 4)


def test_large_files_stay(tmp_path: Path) -> None:
    with_batches(tmp_path, MANY)
    large = tmp_path / "records/cluster=a" / files(tmp_path)[0]
    large.write_bytes(large.read_bytes().ljust(SMALL_BYTES))
    with Lake(tmp_path) as lake:
        write_batch(lake, MANY)
    assert len(files(tmp_path)) == MANY + 1


def test_wherever_it_is_killed_every_row_is_there_once(tmp_path: Path) -> None:
    before = with_batches(tmp_path / "before", MANY)
    outcomes = set()
    with LakeKiller(write_next) as killer:
        for kill_at in range(1, 1000):
            target = shutil.copytree(before, tmp_path / str(kill_at))
            was_killed = killer.kills(target, kill_at)
            seen = offsets(target)
            with Lake(target) as lake:
                outcomes.add(lake.last_batch)
                assert seen == offsets(target) == list(range(2 * (lake.last_batch + 1)))
                if lake.last_batch < MANY:
                    write_next(lake)
            assert offsets(target) == list(range(2 * (MANY + 1)))
            assert len(files(target)) == 2
            if not was_killed:
                break
    assert outcomes == {MANY - 1, MANY}
