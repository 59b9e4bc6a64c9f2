"""A batch is added to the lake completely or not at all, wherever the process is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_wire.lake.files import LakeFiles
from kraft_wire.lake.protocol import Lake, LakeError, one_command
from tests.support.lake_killer import LakeKiller

FIRST = {
    "leadership/cluster=a/part-00000000-000.parquet": "a0",
    "leadership/cluster=a/open-00000000-000.parquet": "a0 open",
    "leadership/cluster=b/open-00000000-000.parquet": "b0 open",
    "churn/cluster=a/2026-01-00000000-000.parquet": "january",
}
SECOND = {
    "leadership/cluster=a/part-00000000-000.parquet": "a0",
    "leadership/cluster=a/part-00000001-000.parquet": "a1",
    "leadership/cluster=a/part-00000001-001.parquet": "a1 too",
    "leadership/cluster=b/open-00000000-000.parquet": "b0 open",
    "churn/cluster=a/2026-01-00000000-000.parquet": "january",
    "churn/cluster=a/2026-02-00000001-000.parquet": "february",
    "records/cluster=a/part-00000001-000.parquet": "records",
}


def stage(lake: Lake, batch: int, files: dict[str, str]) -> None:
    staging = lake.begin(batch)
    for name, text in files.items():
        path = staging / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def write_first(lake: Lake) -> None:
    files = {
        "leadership/cluster=a/kraft_part=part/x.parquet": "a0",
        "leadership/cluster=a/kraft_part=open/x.parquet": "a0 open",
        "leadership/cluster=b/kraft_part=open/y.parquet": "b0 open",
        "churn/cluster=a/kraft_part=2026-01/x.parquet": "january",
    }
    stage(lake, 0, files)
    lake.commit(0, {"leadership": ["cluster=a", "cluster=b"]}, {"a": 7, "b": 9})


def write_second(lake: Lake) -> None:
    """Write a batch in which the open rows of cluster a end."""
    files = {
        "leadership/cluster=a/kraft_part=part/x.parquet": "a1",
        "leadership/cluster=a/kraft_part=part/y.parquet": "a1 too",
        "churn/cluster=a/kraft_part=2026-02/x.parquet": "february",
        "records/cluster=a/z.parquet": "records",
    }
    stage(lake, 1, files)
    lake.commit(1, {"leadership": ["cluster=a"]}, {"a": 12})


def visible(target: Path) -> dict[str, str]:
    return {
        str(file.relative_to(target)): file.read_text()
        for file in target.rglob("*.parquet")
        if not file.relative_to(target).parts[0].startswith("_")
    }


def known_to_readers(target: Path) -> dict[str, str]:
    """Return what readers see that use the markers, whatever the files' names are, as ``visible``."""
    tables = ("leadership", "churn", "records")
    files = LakeFiles(str(target), tables)
    found = [Path(file) for table in tables for file in files.files(table)]
    return {file.read_text(): f"{table_of(file)}" for file in found}


def table_of(file: Path) -> str:
    """Return TABLE/cluster=ID, also of a staged file."""
    parts = file.parts
    place = next(place for place, part in enumerate(parts) if part.startswith("cluster="))
    return "/".join(parts[place - 1 : place + 1])


def as_readers_know(files: dict[str, str]) -> dict[str, str]:
    return {text: table_of(Path(name)) for name, text in files.items()}


def test_a_batch_adds_what_stays_and_replaces_what_was_open(tmp_path: Path) -> None:
    with Lake(tmp_path) as lake:
        write_first(lake)
        assert visible(tmp_path) == FIRST
        write_second(lake)
        assert visible(tmp_path) == SECOND
    with Lake(tmp_path) as lake:
        assert (lake.last_batch, lake.ends) == (1, {"a": 12, "b": 9})
        assert lake.files("leadership", ["cluster=a", "cluster=b"]) == [
            tmp_path / "leadership/cluster=b/open-00000000-000.parquet"
        ]


def test_wherever_the_writer_is_killed_there_is_one_batch_or_the_other(tmp_path: Path) -> None:
    """Readers see whole batches even before a restart."""
    outcomes = set()
    with LakeKiller(write_second) as killer:
        for kill_at in range(1, 1000):
            target = tmp_path / str(kill_at)
            with Lake(target) as lake:
                write_first(lake)
            was_killed = killer.kills(target, kill_at)
            seen = known_to_readers(target)
            with Lake(target) as lake:
                assert seen == as_readers_know(SECOND if lake.last_batch == 1 else FIRST)
                outcomes.add((lake.last_batch, kill_at > 1))
                assert visible(target) == (SECOND if lake.last_batch == 1 else FIRST)
                if lake.last_batch == 0:
                    write_second(lake)
            assert visible(target) == SECOND
            if not was_killed:
                break
    assert {(0, True), (1, True)} <= outcomes and kill_at > 20


def test_what_a_late_task_leaves_behind_is_no_row_of_a_batch(tmp_path: Path) -> None:
    staged = {
        "records/cluster=a/x.parquet": "rows",
        "records/_temporary/0/cluster=a/y.parquet": "the same rows",
    }
    for target in (tmp_path, tmp_path / "_temporary" / "lake"):
        with Lake(target) as lake:
            stage(lake, 0, staged)
            lake.commit(0, {}, {"a": 7})
        assert visible(target) == {"records/cluster=a/part-00000000-000.parquet": "rows"}


def test_a_target_has_one_command(tmp_path: Path) -> None:
    """Also between batches, when a server applies them and the command holds no lock of the lake."""
    with one_command(tmp_path):
        with pytest.raises(LakeError, match="another pipeline writes there"), one_command(tmp_path):
            pass
        with Lake(tmp_path):
            pass
    with one_command(tmp_path):
        pass


def test_a_target_has_one_writer(tmp_path: Path) -> None:
    with Lake(tmp_path), pytest.raises(LakeError, match="another pipeline writes there"):
        Lake(tmp_path)


def test_a_damaged_marker_is_an_error_that_names_it(tmp_path: Path) -> None:
    with Lake(tmp_path) as lake:
        write_first(lake)
    (tmp_path / "_kraft/batches/00000000.json").write_text("{")
    with pytest.raises(LakeError, match=r"00000000\.json"):
        Lake(tmp_path)


def write(lake: Lake, batch: int, text: str) -> None:
    stage(lake, batch, {"records/cluster=x/log.parquet": text})
    lake.commit(batch, {}, {"x": batch})


def test_batches_go_on_beyond_the_digits_that_their_names_are_filled_up_to(tmp_path: Path) -> None:
    numbers = range(99_999_998, 100_000_002)
    with Lake(tmp_path) as lake:
        lake.last_batch = numbers[0] - 1
        Path(tmp_path, "_kraft/batches", f"{lake.last_batch}.json").write_text("{}")
        for number in numbers:
            write(lake, number, str(number))
        assert [file.read_text() for file in lake.files("records", ["cluster=x"], "part")] == [
            str(number) for number in numbers
        ]
    with Lake(tmp_path) as lake:
        assert (lake.last_batch, lake.ends) == (100_000_001, {"x": 100_000_001})
    assert known_to_readers(tmp_path).keys() == {str(number) for number in numbers}


def test_a_process_that_lost_its_lock_does_not_write_over_another_one_s_batches(tmp_path: Path) -> None:
    """It was suspended, and a network's file system gave the lock to another one."""
    late = Lake(tmp_path)
    write(late, 0, "first")
    stage(late, 1, {"records/cluster=x/log.parquet": "late"})
    (tmp_path / "_kraft/lock").unlink()
    with Lake(tmp_path) as other:
        for number in (1, 2):
            write(other, number, f"other {number}")
        stage(other, 3, {"records/cluster=x/log.parquet": "other 3"})
        with pytest.raises(
            LakeError, match="another process writes there, too: the last batch is 2, and this"
        ):
            late.commit(1, {}, {"x": 1})
        other.commit(3, {}, {"x": 3})
    late.__exit__()
    assert set(visible(tmp_path).values()) == {"first", "other 1", "other 2", "other 3"}
