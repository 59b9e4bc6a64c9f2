"""Files of a lake that other processes add or delete."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_wire.lake.protocol import Lake, LakeError

RECORDS = "records/cluster=a"


def write(staging: Path, name: str) -> None:
    path = staging / RECORDS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(name)


def contents(target: Path) -> set[str]:
    return {file.read_text() for file in target.glob(f"{RECORDS}/*.parquet")}


def test_what_a_killed_pipelines_tasks_still_write_is_no_part_of_the_batch(tmp_path: Path) -> None:
    with Lake(tmp_path) as lake:
        left_behind = lake.begin(0)
    with Lake(tmp_path) as lake:
        staging = lake.begin(0)
        write(left_behind, "late.parquet")
        write(staging, "x.parquet")
        lake.commit(0, {}, {"a": 1})
    assert contents(tmp_path) == {"x.parquet"}
    assert not left_behind.exists()


def test_a_file_of_the_last_batch_that_is_gone_is_an_error_that_names_it(tmp_path: Path) -> None:
    with Lake(tmp_path) as lake:
        write(lake.begin(0), "x.parquet")
        lake.commit(0, {}, {"a": 1})
    (file,) = tmp_path.glob(f"{RECORDS}/*.parquet")
    file.unlink()
    with pytest.raises(LakeError, match=f"{file.name}: the file is missing, but batch 0 wrote it"):
        Lake(tmp_path)
