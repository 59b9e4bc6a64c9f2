"""RemoveRaftVoter, also of the leader itself (KafkaRaftClientReconfigTest)."""

from __future__ import annotations

import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.roles import Role
from tests.raft.core_quorum import CoreQuorum, QuorumNode
from tests.raft.membership.reconfiguration import (
    Asked,
    add,
    add_request,
    all_know,
    remove,
    remove_request,
    voters_of,
    with_observers,
)


def _others(quorum: CoreQuorum, node: QuorumNode) -> tuple[int, ...]:
    return tuple(id for id in quorum.nodes if id != node.id)


def test_remove_voter() -> None:
    quorum = with_observers(3, 0)
    gone = quorum.followers()[0]
    assert remove(quorum, gone.id).error is ErrorCode.NONE
    quorum.run_until(lambda: all_know(quorum, *_others(quorum, gone)))
    assert not gone.running.is_voter
    quorum.leader.propose()
    quorum.run_until(quorum.agree), "it goes on as an observer"


def test_remove_voter_is_leader() -> None:
    quorum = with_observers(3, 0)
    leader = quorum.leader
    assert remove(quorum, leader.id).error is ErrorCode.NONE
    quorum.run_until(lambda: bool(quorum.others_than(leader)))
    assert quorum.leader is not leader
    assert quorum.leader.running.voters.ids == _others(quorum, leader)
    quorum.leader.propose()
    quorum.run_until(quorum.agree)
    assert leader.running.role is Role.FOLLOWER


def test_a_removed_leader_leads_until_its_removal_is_committed_and_does_not_count_itself() -> None:
    quorum = with_observers(3, 0)
    leader = quorum.leader
    followers = quorum.followers()
    followers[0].disk_is_stuck = True
    asked = Asked(leader, remove_request(leader))
    quorum.run_for(500)
    assert leader.running.is_leader
    assert not asked.is_answered, "one of the two remaining voters isn't a majority"
    followers[0].free_disk()
    quorum.run_until(lambda: asked.is_answered)
    assert asked.error is ErrorCode.NONE
    assert not leader.running.is_leader


def test_a_leader_that_crashes_before_its_removal_is_committed_can_still_lead() -> None:
    quorum = with_observers(2, 0)
    leader = quorum.leader
    (other,) = quorum.followers()
    quorum.cut((leader.id, other.id))
    Asked(leader, remove_request(leader))
    quorum.run_until(lambda: leader.flushed_offset == leader.end_offset and not leader.running.is_voter)
    other.crash()
    leader.crash()
    quorum.heal()
    other.start()
    leader.start()
    quorum.run_until(lambda: other.running.is_leader)
    quorum.run_until(quorum.agree)
    assert voters_of(leader) == (other.id,)


@pytest.mark.parametrize("cluster_id", ["", "another"])
def test_remove_voter_invalid_cluster_id(cluster_id: str) -> None:
    quorum = with_observers(3, 0)
    voter = quorum.followers()[0]
    asked = Asked(quorum.leader, remove_request(voter, cluster_id=cluster_id))
    assert asked.error is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert voters_of(quorum.leader) == (1, 2, 3)
    assert remove(quorum, voter.id, cluster_id=None).error is ErrorCode.NONE


def test_remove_voter_to_not_leader() -> None:
    quorum = with_observers(3, 0)
    one, other = quorum.followers()
    assert Asked(one, remove_request(other)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_remove_voter_with_pending_remove_voter() -> None:
    quorum = with_observers(3, 0)
    one, other = quorum.followers()
    first = Asked(quorum.leader, remove_request(one))
    assert Asked(quorum.leader, remove_request(other)).error is ErrorCode.REQUEST_TIMED_OUT
    quorum.run_until(lambda: first.is_answered)
    assert remove(quorum, other.id).error is ErrorCode.NONE


def test_remove_voter_with_pending_add_voter() -> None:
    quorum = with_observers(3, 1)
    quorum.cut((quorum.leader.id, 4))
    Asked(quorum.leader, add_request(quorum.nodes[4]))
    asked = Asked(quorum.leader, remove_request(quorum.followers()[0]))
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT


def test_remove_voter_without_fenced_previous_leaders() -> None:
    quorum = CoreQuorum(3).start()
    quorum.run_until(lambda: bool(quorum.leaders))
    asked = Asked(quorum.leader, remove_request(quorum.nodes[1]))
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT


def test_remove_voter_with_kraft_version_0() -> None:
    quorum = with_observers(3, 0, kraft_version=0)
    asked = Asked(quorum.leader, remove_request(quorum.followers()[0]))
    assert asked.error is ErrorCode.UNSUPPORTED_VERSION


def test_remove_voter_with_none_voter() -> None:
    _check_not_found({"voter_directory_id": Uuid(bytes(range(16)))})


def test_remove_voter_with_none_voter_id() -> None:
    _check_not_found({"voter_id": 9})


def _check_not_found(fields: dict[str, object]) -> None:
    quorum = with_observers(3, 0)
    asked = Asked(quorum.leader, remove_request(quorum.followers()[0], **fields))
    assert asked.error is ErrorCode.VOTER_NOT_FOUND
    assert "is not one of the voters" in asked.text
    assert voters_of(quorum.leader) == (1, 2, 3)


@pytest.mark.parametrize("fields", [{"voter_directory_id": Uuid.ZERO}, {"voter_id": -1}])
def test_remove_voter_without_a_voter(fields: dict[str, object]) -> None:
    quorum = with_observers(3, 0)
    asked = Asked(quorum.leader, remove_request(quorum.followers()[0], **fields))
    assert asked.error is ErrorCode.INVALID_REQUEST


def test_remove_voter_to_empty_voter_set() -> None:
    quorum = with_observers(1, 0)
    asked = Asked(quorum.leader, remove_request(quorum.leader))
    assert asked.error is ErrorCode.VOTER_NOT_FOUND
    assert "is the last voter" in asked.text


def test_remove_voter_timed_out() -> None:
    quorum = with_observers(3, 0)
    leader, (one, other) = quorum.leader, quorum.followers()
    one.disk_is_stuck = other.disk_is_stuck = True
    asked = Asked(leader, remove_request(one))
    quorum.run_until(lambda: asked.is_answered)
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT
    assert voters_of(leader) == tuple(sorted((leader.id, other.id)))


def test_remove_voter_fails_when_losing_leadership() -> None:
    quorum = with_observers(3, 0, request_timeout_ms=5_000)
    leader, (one, other) = quorum.leader, quorum.followers()
    quorum.isolate(leader.id)
    asked = Asked(leader, remove_request(one))
    quorum.run_until(lambda: leader not in quorum.leaders)
    assert asked.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert voters_of(leader) == tuple(sorted((leader.id, other.id))), "the record may still be committed"
    quorum.heal()
    quorum.run_until(lambda: quorum.agree() and len({voters_of(node) for node in quorum.nodes.values()}) == 1)


def test_a_removed_voter_that_could_not_be_reached_is_not_announced_to_again() -> None:
    quorum = with_observers(3, 0)
    gone = quorum.followers()[0]
    quorum.isolate(gone.id)
    quorum.run_for(1500)
    assert remove(quorum, gone.id).error is ErrorCode.NONE
    quorum.run_for(5000)
    assert len(quorum.leaders) == 1


def test_a_quorum_shrinks_to_one_voter_and_grows_again() -> None:
    quorum = with_observers(3, 0)
    for follower in quorum.followers():
        assert remove(quorum, follower.id).error is ErrorCode.NONE
    leader = quorum.leader
    assert voters_of(leader) == (leader.id,)
    for node in quorum.nodes.values():
        if node is not leader:
            assert add(quorum, node.id).error is ErrorCode.NONE
    quorum.run_until(lambda: all_know(quorum, 1, 2, 3))
