"""A candidate whose log is shorter than another voter's: it must not delay the one that can win."""

from __future__ import annotations

import pytest

from kraft_wire.protocol.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraft_wire.raft.election.known_leader import learn_leader
from kraft_wire.raft.election.turns import YIELD_STEPS
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.outgoing import MAX_BACKOFF_DOUBLINGS
from kraft_wire.raft.roles import Role
from tests.raft.core_quorum import CoreQuorum, QuorumNode
from tests.raft.election.test_turns import (
    ROUND_TRIP_MS,
    STEP_MS,
    become_successor,
    first_and_second,
    ready,
    stood,
)
from tests.raft.lone_node import CLUSTER_ID, LISTENER
from tests.raft.quorum_ports import Caller

SEEDS = range(25)
YIELD_MS = YIELD_STEPS * STEP_MS


def lagging(voters: int, long_logs: int, seed: int) -> tuple[CoreQuorum, list[QuorumNode], list[QuorumNode]]:
    """Return a quorum of whose followers so many have one more record than the others; those with the short
    logs, and those with the long ones."""
    quorum = ready(seed, voters)
    leader, followers = quorum.leader, quorum.followers()
    short, long = followers[:-long_logs], followers[-long_logs:]
    quorum.cut(*((leader.id, node.id) for node in short))
    leader.propose(b"b")
    quorum.run_until(lambda: all(node.flushed_offset == leader.end_offset for node in long))
    quorum.heal()
    return quorum, short, long


def name_short_first(quorum: CoreQuorum, short: list[QuorumNode], long: list[QuorumNode]) -> QuorumNode:
    """Let the leader resign and end. It names those with the short logs first, as it had not heard how far
    the others are. Returns the node that led."""
    leader = quorum.leader
    for node in short + long:
        become_successor(quorum, node, tuple(each.id for each in short + long))
    leader.crash()
    return leader


def vote_request(candidate_id: int, voter: QuorumNode, epoch: int, last: tuple[int, int]) -> VoteRequest:
    """Return the request of a candidate whose log ends with this epoch at this offset."""
    asked = PartitionData(
        replica_id=candidate_id,
        replica_directory_id=voter.quorum.nodes[candidate_id].config.directory_id,
        replica_epoch=epoch,
        voter_directory_id=voter.config.directory_id,
        last_offset_epoch=last[0],
        last_offset=last[1],
    )
    topic = TopicData(topic_name="__cluster_metadata", partitions=[asked])
    return VoteRequest(cluster_id=CLUSTER_ID, voter_id=voter.id, topics=[topic])


def ask(voter: QuorumNode, candidate_id: int, epoch: int, last: tuple[int, int]) -> None:
    caller = Caller(candidate_id, voter.quorum.nodes[candidate_id].life, 1000 + epoch)
    voter.step(RpcRequest(caller, vote_request(candidate_id, voter, epoch, last), 2, LISTENER))


def end_of(node: QuorumNode) -> tuple[int, int]:
    """Return the last epoch of a node's log, and its end offset."""
    return node.batches[-1].header.leader_epoch, node.end_offset


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("voters", "long_logs"), [(3, 1), (4, 1), (4, 2)])
def test_a_successor_with_a_short_log_does_not_delay_the_one_that_can_win(
    voters: int, long_logs: int, seed: int
) -> None:
    quorum, short, long = lagging(voters, long_logs, seed)
    epoch = quorum.leader.running.epoch
    name_short_first(quorum, short, long)
    took_ms = quorum.run_until(lambda: bool(quorum.leaders))
    assert quorum.leader in long
    assert took_ms <= 1 + 2 * ROUND_TRIP_MS, "the short one's request, a pre-vote and a vote"
    quorum.run_until(quorum.agree)
    assert stood(quorum, epoch)[0] == short[0].id
    assert len(stood(quorum, epoch)) == 2


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("long_logs", [2, 3])
def test_where_others_might_elect_it_the_one_that_can_win_waits_for_its_announcement(
    long_logs: int, seed: int
) -> None:
    quorum, short, long = lagging(5, long_logs, seed)
    name_short_first(quorum, short, long)
    assert quorum.run_until(lambda: bool(quorum.leaders)) < YIELD_MS + 4 * ROUND_TRIP_MS
    assert quorum.leader in long


@pytest.mark.parametrize("seed", SEEDS)
def test_a_short_log_that_the_others_elected_is_not_deposed_by_the_longer_one(seed: int) -> None:
    """The longer log's last record is on two voters of five: it isn't committed."""
    quorum, short, long = lagging(5, 1, seed)
    epoch = quorum.leader.running.epoch
    name_short_first(quorum, short, long)
    quorum.run_until(quorum.agree)
    assert stood(quorum, epoch) == [short[0].id]


def test_a_voter_that_had_not_heard_of_the_leaders_end_keeps_to_it_for_the_fetch_timeout() -> None:
    quorum, short, long = lagging(3, 1, seed=1)
    leader = quorum.leader
    quorum.isolate(leader.id)
    become_successor(quorum, short[0], (short[0].id, long[0].id))
    took_ms = quorum.run_until(lambda: long[0].running.is_leader)
    until_it_asks_again_ms = leader.config.retry_backoff_ms << MAX_BACKOFF_DOUBLINGS
    assert took_ms <= leader.config.fetch_timeout_ms + until_it_asks_again_ms + YIELD_MS + 5 * ROUND_TRIP_MS


def test_a_voter_keeps_its_turn_when_the_epoch_rises() -> None:
    quorum = ready()
    first, second = first_and_second(quorum)
    epoch = quorum.leader.running.epoch
    become_successor(quorum, second, (first.id, second.id))
    state = second.running._quorum
    due_ms = state.state.deadline_ms
    assert learn_leader(state, epoch + 1, None, ())
    assert (second.running.role, second.running.epoch) == (Role.UNATTACHED, epoch + 1)
    assert state.state.deadline_ms == due_ms


def test_a_voter_that_granted_its_vote_does_not_stand_soon() -> None:
    quorum, short, long = lagging(3, 1, seed=1)
    voter, other = long[0], short[0]
    epoch, leader_id = quorum.leader.running.epoch, quorum.leader.id
    quorum.isolate(voter.id)
    become_successor(quorum, voter, (other.id, voter.id))
    ask(voter, leader_id, epoch + 1, end_of(voter))
    assert voter.election is not None
    assert voter.election.voted_id == leader_id
    ask(voter, other.id, epoch + 1, end_of(other))
    quorum.run_for(voter.config.election_timeout_ms - 1)
    assert voter.running.role is Role.UNATTACHED


def test_a_candidate_that_is_no_voter_hurries_nobody() -> None:
    quorum = CoreQuorum(3, observers=1).led()
    voter = quorum.followers()[0]
    quorum.isolate(voter.id)
    ask(voter, 4, voter.running.epoch + 1, (0, 0))
    assert voter.running.role is Role.FOLLOWER
    quorum.run_for(2 * YIELD_MS)
    assert voter.running.role is Role.FOLLOWER


def test_a_voter_that_lost_elections_stands_soon_in_the_new_epoch() -> None:
    quorum, short, long = lagging(3, 1, seed=1)
    voter, core = long[0], long[0].running
    quorum.isolate(voter.id)
    quorum.run_until(lambda: core._quorum.lost_elections == 1)
    quorum.run_until(lambda: core.role is Role.PROSPECTIVE)
    ask(voter, short[0].id, core.epoch + 1, end_of(short[0]))
    spread_ms = voter.config.failover_spread_ms << 1
    assert quorum.run_until(lambda: core.role is Role.PROSPECTIVE) < spread_ms
