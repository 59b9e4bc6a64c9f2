"""A lake goes on with the stream that has written it, and with no other."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from kraft_wire.spark.pipeline.formats import open_lake
from kraft_wire.spark.pipeline.lake import Lake, LakeError, checkpoint_of


def complete(target: Path, *batches: int) -> None:
    with Lake(target) as lake:
        for batch in batches:
            lake.begin(batch)
            lake.commit(batch, {}, {"a": batch})


def stream(target: Path, begun: Iterable[int], told: Iterable[int]) -> None:
    """Files where Spark has them: the batches that it has begun, and those that it was told are done."""
    checkpoint = checkpoint_of(target)
    for folder, batches in (("offsets", begun), ("commits", told)):
        checkpoint.joinpath(folder).mkdir(parents=True)
        for batch in batches:
            (checkpoint / folder / str(batch)).touch()
            (checkpoint / folder / f".{batch}.crc").touch()


def test_a_lake_without_batches_begins_a_stream(tmp_path: Path) -> None:
    with open_lake(tmp_path, "parquet") as lake:
        assert lake.last_batch == -1


@pytest.mark.parametrize(("begun", "told"), [(10, 9), (10, 10), (11, 10)])
def test_a_stream_that_was_killed_goes_on(tmp_path: Path, begun: int, told: int) -> None:
    """Before it was told, after it, and in the next batch."""
    complete(tmp_path, 9, 10)
    stream(tmp_path, range(begun + 1), range(told + 1))
    with open_lake(tmp_path, "parquet") as lake:
        assert lake.last_batch == 10


def test_a_stream_that_begins_anew_is_an_error(tmp_path: Path) -> None:
    """Its first batches would be taken for those that are there already."""
    complete(tmp_path, 0, 1)
    for _ in range(2):
        with pytest.raises(LakeError, match=r"tables is 1, .* is -1: they don't belong"):
            open_lake(tmp_path, "parquet")


def test_tables_that_begin_anew_are_an_error(tmp_path: Path) -> None:
    """The stream would go on behind what they lack."""
    complete(tmp_path, 0, 1)
    stream(tmp_path, [0, 1], [0, 1])
    shutil.rmtree(tmp_path / "_kraft/batches")
    with pytest.raises(LakeError, match=r"tables is -1, .* is 1: they don't belong"):
        open_lake(tmp_path, "parquet")
