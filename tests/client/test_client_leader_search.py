"""The next controller to ask is chosen by the answers so far."""

from __future__ import annotations

import pytest

from kraft_wire.client.leader_search import MAX_PAUSE_MS, LeaderSearch
from kraft_wire.wire.address import Address

A, B, C, D = (Address("host", port) for port in (1, 2, 3, 4))


@pytest.fixture
def search() -> LeaderSearch:
    return LeaderSearch([A, B, C])


def _asked(search: LeaderSearch, count: int, epoch: int | None = None) -> list[Address]:
    """The controllers that it asks while none answers."""
    asked = []
    for _ in range(count):
        step = search.next_step()
        asked.append(step.address)
        search.failed(step.address, "connection refused")
    return asked


def test_each_is_asked_once_before_anybody_is_asked_again(search: LeaderSearch) -> None:
    assert _asked(search, 7) == [A, B, C, A, B, C, A]
    assert search.problems == {A: "connection refused", B: "connection refused", C: "connection refused"}


def test_pauses_are_between_rounds_only_and_grow_up_to_a_limit(search: LeaderSearch) -> None:
    pauses = []
    for _ in range(30):
        step = search.next_step()
        search.failed(step.address, "nothing")
        pauses.append(step.pause_ms)
    between = pauses[3::3]
    assert between[:3] == [50, 100, 200]
    assert between[-1] == MAX_PAUSE_MS
    assert set(pauses) - set(between) == {0}


def test_a_named_leader_is_asked_at_once(search: LeaderSearch) -> None:
    assert search.next_step().address == A
    search.failed(A, "FENCED_LEADER_EPOCH")
    search.learn_leader(7, 3, D)
    assert search.next_step() == (D, 0)
    assert search.epoch == 3
    search.succeeded(D)
    assert search.next_step() == (D, 0)


def test_the_controller_itself_is_asked_again_at_its_newer_epoch(search: LeaderSearch) -> None:
    assert search.next_step().address == A
    search.failed(A, "FENCED_LEADER_EPOCH")
    search.learn_leader(1, 3, A)
    assert search.next_step() == (A, 0)


def test_a_leader_that_is_named_without_an_address_is_looked_for(search: LeaderSearch) -> None:
    assert search.next_step().address == A
    search.failed(A, "FENCED_LEADER_EPOCH")
    search.learn_leader(7, 3)
    assert _asked(search, 3) == [B, C, A]
    search.learn_controllers({7: D, 8: A})
    assert search.next_step() == (D, 0)


def test_a_dead_leader_that_followers_still_name_is_not_asked_again_in_this_round(
    search: LeaderSearch,
) -> None:
    search.learn_leader(2, 3, B)
    assert search.next_step().address == B
    search.failed(B, "connection reset")
    assert search.next_step().address == A
    search.failed(A, "NOT_LEADER_OR_FOLLOWER")
    search.learn_leader(2, 3, B)
    assert search.next_step().address == C
    search.failed(C, "FENCED_LEADER_EPOCH")
    search.learn_leader(3, 4, C)
    assert search.next_step() == (C, 0)


def test_an_older_epoch_is_ignored(search: LeaderSearch) -> None:
    search.learn_leader(2, 5, B)
    search.learn_leader(1, 4, A)
    search.learn_leader(-1, 5)
    assert search.epoch == 5
    assert search.next_step().address == B


def test_an_election_is_known_before_its_result(search: LeaderSearch) -> None:
    search.learn_leader(2, 5, B)
    search.learn_leader(-1, 6)
    assert search.epoch == 6
    assert search.next_step().address == A


def test_success_clears_the_problems(search: LeaderSearch) -> None:
    _asked(search, 2)
    search.next_step()
    search.succeeded(C)
    assert search.problems == {}
    assert search.next_step() == (C, 0)
