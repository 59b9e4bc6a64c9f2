"""Epochs and their start offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.errors import MalformedFile
from tests.log.batch_samples import JAVA_PARTITION

CACHE = [(1, 0), (3, 100), (6, 250)]

steps = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=12)


def grown(increments: list[tuple[int, int]]) -> EpochCache:
    cache = EpochCache()
    epoch = offset = 0
    for more_epochs, more_offsets in increments:
        epoch += more_epochs
        offset += more_offsets
        cache.assign(epoch, offset)
    return cache


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (0, (0, 0)),
        (1, (1, 100)),
        (2, (1, 100)),
        (3, (3, 250)),
        (5, (3, 250)),
        (6, (6, 400)),
        (7, (6, 400)),
    ],
)
def test_the_end_of_an_epoch(epoch: int, expected: tuple[int, int]) -> None:
    assert EpochCache(CACHE).end_offset_for_epoch(epoch, 400) == expected


def test_an_empty_cache_ends_at_the_logs_end() -> None:
    assert EpochCache().end_offset_for_epoch(5, 70) == (0, 70)
    assert EpochCache().latest_epoch is None
    assert EpochCache().epoch_of(0) is None


def test_an_epoch_that_is_too_old_ends_where_the_first_begins() -> None:
    assert EpochCache([(4, 90)]).end_offset_for_epoch(2, 100) == (2, 90)


def test_the_same_epoch_again_changes_nothing() -> None:
    cache = EpochCache(CACHE)
    assert not cache.assign(6, 300)
    assert cache.entries == CACHE


def test_an_epoch_without_records_is_forgotten() -> None:
    cache = EpochCache(CACHE)
    assert cache.assign(7, 400) and cache.assign(8, 400) and cache.assign(11, 400)
    assert cache.entries == [*CACHE, (11, 400)]


@pytest.mark.parametrize(("epoch", "offset"), [(5, 300), (6, 249), (7, 249)])
def test_epochs_and_offsets_do_not_go_back(epoch: int, offset: int) -> None:
    with pytest.raises(ValueError, match="cannot follow epoch 6"):
        EpochCache(CACHE).assign(epoch, offset)


@pytest.mark.parametrize(("end", "left"), [(0, 0), (1, 1), (100, 1), (101, 2), (250, 2), (251, 3), (9999, 3)])
def test_truncating_the_end(end: int, left: int) -> None:
    cache = EpochCache(CACHE)
    assert cache.truncate_from_end(end) == (left < 3)
    assert cache.entries == CACHE[:left]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (0, CACHE),
        (1, [(1, 1), (3, 100), (6, 250)]),
        (100, [(3, 100), (6, 250)]),
        (130, [(3, 130), (6, 250)]),
        (260, [(6, 260)]),
    ],
)
def test_truncating_the_start(start: int, expected: list[tuple[int, int]]) -> None:
    cache = EpochCache(CACHE)
    assert cache.truncate_from_start(start) == (expected != CACHE)
    assert cache.entries == expected


def test_a_start_before_everything_known_changes_nothing() -> None:
    cache = EpochCache([(3, 100)])
    assert not cache.truncate_from_start(50)
    assert cache.entries == [(3, 100)]


@pytest.mark.parametrize(("offset", "epoch"), [(0, 1), (99, 1), (100, 3), (249, 3), (250, 6), (10**9, 6)])
def test_the_epoch_of_an_offset(offset: int, epoch: int) -> None:
    assert EpochCache(CACHE).epoch_of(offset) == epoch


@given(steps, st.integers(0, 40))
def test_the_end_of_an_epoch_agrees_with_a_walk_over_all_offsets(
    increments: list[tuple[int, int]], epoch: int
) -> None:
    cache = grown(increments)
    if cache.latest_epoch is None:
        return
    end = cache.entries[-1].start_offset + 5
    epochs = [(offset, cache.epoch_of(offset)) for offset in range(cache.entries[0].start_offset, end)]
    not_above = [offset + 1 for offset, found in epochs if found is not None and found <= epoch]
    expected = not_above[-1] if not_above else cache.entries[0].start_offset
    assert cache.end_offset_for_epoch(epoch, end).end_offset == expected


@given(steps)
def test_the_text_is_read_as_it_was_written(increments: list[tuple[int, int]]) -> None:
    cache = grown(increments)
    assert EpochCache.parse(cache.text()) == cache
    assert cache.copy() == cache and cache.copy() is not cache


def test_the_text_that_java_wrote() -> None:
    text = (JAVA_PARTITION / "leader-epoch-checkpoint").read_text()
    cache = EpochCache.parse(text)
    assert cache.entries == [(1, 0), (2, 47), (3, 81)]
    assert cache.text() == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "ends before"),
        ("0\n", "ends before"),
        ("1\n0\n", "version 1"),
        ("0\n2\n1 0\n", "says 2 entries and holds 1"),
        ("0\n0\n1 0\n", "says 0 entries and holds 1"),
        ("0\n1\n1\n", "line '1'"),
        ("0\n1\n1 x\n", "line '1 x'"),
        ("0\n1\n1 -5\n", "line '1 -5'"),
        ("0\n2\n3 0\n2 5\n", "cannot follow"),
        ("\x00\x00\x00\x00\n1\n", "line"),
    ],
)
def test_a_text_that_says_something_else(text: str, problem: str) -> None:
    with pytest.raises(MalformedFile, match=problem):
        EpochCache.parse(text)
