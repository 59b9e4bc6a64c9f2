"""A lake continues only with the stream that has written it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from kraft_wire.lake.formats import open_lake
from kraft_wire.lake.protocol import Lake, LakeError, checkpoint_of


def complete(target: Path, *batches: int) -> None:
    with Lake(target) as lake:
        for batch in batches:
            lake.begin(batch)
            lake.commit(batch, {}, {"a": batch})


def stream(target: Path, begun: Iterable[int], told: Iterable[int]) -> None:
    """Write Spark's files: the batches that it began, and those that were reported as done."""
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
    """The kill comes before the report, after it, or in the next batch."""
    complete(tmp_path, 9, 10)
    stream(tmp_path, range(begun + 1), range(told + 1))
    with open_lake(tmp_path, "parquet") as lake:
        assert lake.last_batch == 10


def test_a_stream_that_begins_anew_is_an_error(tmp_path: Path) -> None:
    """Its first batches would be taken for those that were applied already."""
    complete(tmp_path, 0, 1)
    for _ in range(2):
        with pytest.raises(LakeError, match=r"tables is 1, .* is -1: they don't match"):
            open_lake(tmp_path, "parquet")


def test_tables_that_begin_anew_are_an_error(tmp_path: Path) -> None:
    """The stream would continue after records that the tables lack."""
    complete(tmp_path, 0, 1)
    stream(tmp_path, [0, 1], [0, 1])
    shutil.rmtree(tmp_path / "_kraft/batches")
    with pytest.raises(LakeError, match=r"tables is -1, .* is 1: they don't match"):
        open_lake(tmp_path, "parquet")
