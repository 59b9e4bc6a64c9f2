"""A starting node trusts some of its files and not others (kraft_wire/log/recovery.py)."""

from __future__ import annotations

import pytest

from kraft_wire.log.recovery import (
    NOTHING_KNOWN,
    Floor,
    committed_end,
    is_ahead,
    is_torn_tail,
    lost_below,
    no_vote_up_to,
    trusted_floor,
)
from kraft_wire.log.snapshot import SnapshotId


@pytest.mark.parametrize("quorum_epoch", [None, 2, 4])
def test_a_floor_of_another_epoch_says_nothing(quorum_epoch: int | None) -> None:
    assert trusted_floor(Floor(10, 3, 9), quorum_epoch) == NOTHING_KNOWN


def test_a_floor_of_this_epoch_counts() -> None:
    assert trusted_floor(Floor(10, 3, 9), 3) == Floor(10, 3, 9)
    assert trusted_floor(None, 3) == NOTHING_KNOWN


@pytest.mark.parametrize(
    ("flushed", "committed", "log_end", "end"), [(10, 8, 12, 8), (10, 12, 12, 10), (10, 10, 7, 7)]
)
def test_committed_is_what_was_flushed_and_is_there(
    flushed: int, committed: int, log_end: int, end: int
) -> None:
    assert committed_end(Floor(flushed, 1, committed), log_end) == end


def test_a_snapshot_is_ahead_by_its_epoch_first() -> None:
    assert is_ahead(SnapshotId(10, 2), 0, 20, 1)
    assert not is_ahead(SnapshotId(10, 2), 0, 20, 2)
    assert is_ahead(SnapshotId(10, 2), 0, 9, 2)
    assert not is_ahead(SnapshotId(10, 2), 10, 10, 0), "the log was reset at its end"


def test_votes_may_have_gone_to_epochs_that_nobody_knows_of() -> None:
    assert no_vote_up_to([3, 7]) > 7


def test_a_tail_is_torn_where_part_of_it_is_missing_and_nothing_durable() -> None:
    def judge(offset: int, **found: bool) -> bool:
        nothing = {"has_hole": False, "is_cut_off": False, "whole_batch_after": False}
        return is_torn_tail(offset, 10, **{**nothing, **found})

    assert judge(10, is_cut_off=True)
    assert judge(10, has_hole=True)
    assert not judge(10)
    assert not judge(9, is_cut_off=True)
    assert not judge(10, is_cut_off=True, whole_batch_after=True)


def test_what_was_there_is_lost() -> None:
    assert (lost_below(10, 12), lost_below(12, 10)) == (12, 12)
