"""Small files are put together, in their order, while more are written."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from kraft_wire.exporters.sinks.folding import FOLD, SMALL_BYTES, Folding, SmallFiles

MAX_FILE_BYTES = FOLD**3 * SMALL_BYTES
GIVE_UP_S = 30.0


def paths(*numbers: int) -> list[Path]:
    return [Path(f"{number:03d}") for number in numbers]


def test_as_many_small_files_as_make_a_larger_one_are_due() -> None:
    small = SmallFiles(MAX_FILE_BYTES)
    for path in paths(*range(FOLD - 1)):
        small.add(path, SMALL_BYTES)
        assert small.due() is None
    small.add(Path(f"{FOLD - 1:03d}"), SMALL_BYTES)
    assert small.due() == (0, paths(*range(FOLD)))
    assert small.due() is None


def test_folded_files_go_up_a_level_even_if_they_are_small_until_they_are_large_enough() -> None:
    small = SmallFiles(MAX_FILE_BYTES)
    for path in paths(*range(FOLD)):
        small.add_folded(path, 1, 0)
    assert small.due() == (1, paths(*range(FOLD)))
    for path in paths(*range(FOLD)):
        small.add_folded(path, MAX_FILE_BYTES // FOLD + 1, 1)
    assert small.due() is None


def test_a_large_file_takes_the_smaller_ones_before_it_along() -> None:
    """So the records of a level lie before those of all lower ones."""
    small = SmallFiles(MAX_FILE_BYTES)
    small.add(Path("000"), SMALL_BYTES * FOLD)
    for path in paths(1, 2):
        small.add(path, SMALL_BYTES)
    for path in paths(*range(3, FOLD)):
        small.add(path, SMALL_BYTES * FOLD)
    assert small.due() == (1, paths(*range(FOLD)))


def test_more_files_come_while_some_are_put_together(tmp_path: Path) -> None:
    """They wait: what is put together lies before them."""
    may_end, groups = Event(), list[list[str]]()

    def fold(files: list[Path]) -> Path:
        assert may_end.wait(GIVE_UP_S)
        groups.append([path.name for path in files])
        return files[0]

    folding = Folding(fold, MAX_FILE_BYTES)
    names = [f"{number:03d}" for number in range(3 * FOLD)]
    for name in names:
        path = tmp_path / name
        path.write_bytes(b"")
        folding.add(path)
        folding.go_on()
    assert groups == [], "nobody has waited for it"
    may_end.set()
    folding.finish()
    assert groups == [names[:FOLD], names[FOLD : 2 * FOLD], names[2 * FOLD :]]


def test_what_went_wrong_is_raised_the_next_time(tmp_path: Path) -> None:
    def fold(files: list[Path]) -> Path:
        raise OSError("no room")

    folding = Folding(fold, MAX_FILE_BYTES)
    for number in range(FOLD):
        path = tmp_path / f"{number}"
        path.write_bytes(b"")
        folding.add(path)
    with pytest.raises(OSError, match="no room"):
        folding.finish()
    folding.finish()
