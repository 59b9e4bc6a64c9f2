"""Which observer becomes a voter: a node id may be seen with several directories, and may vote with one."""

from __future__ import annotations

import pytest

from kraft_wire.cli.quorum import Unfit
from kraft_wire.cli.quorum.changes.majorities import LIVE_WITHIN_MS
from kraft_wire.cli.quorum.changes.newcomer import (
    check_no_other_directory_fetches,
    check_no_other_directory_votes,
    observers_of,
)
from kraft_wire.client.quorum_description import QuorumDescription, ReplicaDescription
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import ReplicaKey

NOW_MS = 1_800_000_000_000
OLD, NEW = Uuid(bytes([1] * 16)), Uuid(bytes([2] * 16))


def replica(id: int, directory_id: Uuid, last_fetch_ms: int = NOW_MS) -> ReplicaDescription:
    return ReplicaDescription(id, directory_id, 100, last_fetch_ms, last_fetch_ms)


def quorum(*observers: ReplicaDescription, voters: tuple[ReplicaDescription, ...] = ()) -> QuorumDescription:
    leader = replica(1, Uuid.ZERO)
    return QuorumDescription(ErrorCode.NONE, leader_id=1, voters=(leader, *voters), observers=observers)


def test_a_disk_that_was_replaced_counts_until_it_has_not_fetched_for_a_while() -> None:
    old, new = ReplicaKey(4, OLD), ReplicaKey(4, NEW)
    just_replaced = quorum(replica(4, OLD, NOW_MS - LIVE_WITHIN_MS), replica(4, NEW), replica(5, NEW))
    assert observers_of(just_replaced, 4, None) == [old, new]
    assert observers_of(just_replaced, 4, NEW) == [new]
    later = quorum(replica(4, OLD, NOW_MS - LIVE_WITHIN_MS - 1), replica(4, NEW), replica(5, NEW))
    assert observers_of(later, 4, None) == [new]
    assert observers_of(later, 4, OLD) == []


def test_a_node_that_observes_with_another_directory_is_not_taken_for_a_silent_one() -> None:
    described = quorum(replica(4, OLD))
    check_no_other_directory_fetches(described, 4, OLD)
    check_no_other_directory_fetches(described, 4, None)
    check_no_other_directory_fetches(described, 5, NEW)
    with pytest.raises(Unfit, match=f"node 4 fetches with directory id {OLD}, not {NEW}"):
        check_no_other_directory_fetches(described, 4, NEW)
    later = quorum(replica(4, OLD, NOW_MS - LIVE_WITHIN_MS - 1))
    check_no_other_directory_fetches(later, 4, NEW)


def test_a_node_id_votes_with_one_directory() -> None:
    described = quorum(replica(4, NEW), voters=(replica(4, OLD),))
    check_no_other_directory_votes(described, 4, OLD)
    check_no_other_directory_votes(described, 5, NEW)
    check_no_other_directory_votes(quorum(voters=(replica(4, OLD),)), 4, None)
    for directory_id in (NEW, None):
        with pytest.raises(Unfit, match=f"node 4 votes with directory {OLD}, and {NEW} fetches, too. If the"):
            check_no_other_directory_votes(described, 4, directory_id)
    gone = quorum(replica(4, NEW), voters=(replica(4, OLD, NOW_MS - LIVE_WITHIN_MS - 1),))
    with pytest.raises(Unfit, match=f"run `kraft-wire quorum remove 4 --directory-id {OLD}` first"):
        check_no_other_directory_votes(gone, 4, NEW)


def test_a_voter_that_fetches_isn_t_to_be_removed_for_a_directory_that_doesn_t() -> None:
    """The id may be mistyped."""
    described = quorum(voters=(replica(4, OLD),))
    with pytest.raises(Unfit, match=f"node 4 votes with directory {OLD}, and fetches; {NEW} doesn't: check"):
        check_no_other_directory_votes(described, 4, NEW)
    gone = quorum(voters=(replica(4, OLD, NOW_MS - LIVE_WITHIN_MS - 1),))
    with pytest.raises(Unfit, match=f"run `kraft-wire quorum remove 4 --directory-id {OLD}` first"):
        check_no_other_directory_votes(gone, 4, NEW)
