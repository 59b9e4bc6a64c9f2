"""Who stands first when the leader is gone: turns, yielding, and pre-votes whose answer waits for news."""

from __future__ import annotations

import pytest

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.messages import vote_response
from kraft_wire.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraft_wire.protocol.messages.end_quorum_epoch_request import PartitionData as EndedPartition
from kraft_wire.protocol.messages.end_quorum_epoch_request import TopicData as EndedTopic
from kraft_wire.protocol.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft import effects as raft_effects
from kraft_wire.raft.election import turns
from kraft_wire.raft.election.turns import YIELD_STEPS, successor_wait_ms, turn_of
from kraft_wire.raft.events import Failure, RequestFailed, ResponseReceived, RpcRequest
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.roles import FetchingSnapshot, Follower, Role
from tests.raft.core_quorum import CoreQuorum, QuorumNode
from tests.raft.election.claimed_leaders import resign
from tests.raft.lone_node import CLUSTER_ID, LISTENER, OTHER_DIRECTORY
from tests.raft.quorum_ports import Caller

SEEDS = range(25)
STEP_MS = 10
ROUND_TRIP_MS = 2


def stood(quorum: CoreQuorum, epoch: int) -> list[int]:
    """Return the ids of the nodes that were candidates after ``epoch``, one for each time."""
    return [
        node.id
        for node in quorum.nodes.values()
        for effect in node.effects
        if isinstance(effect, raft_effects.RoleChanged)
        and effect.role is Role.CANDIDATE
        and effect.epoch > epoch
    ]


def first_and_second(quorum: CoreQuorum) -> tuple[QuorumNode, QuorumNode]:
    """Return the two followers in the order of their turns."""
    leader = quorum.leader
    epoch = leader.running.epoch
    followers = sorted(quorum.followers(), key=lambda node: turn_of(node.id, quorum.nodes, leader.id, epoch))
    return followers[0], followers[1]


def sent_pre_votes(node: QuorumNode, epoch: int) -> int:
    """Return how many pre-votes a node has asked for in an epoch."""
    asked = [
        effect.request.topics[0].partitions[0]
        for effect in node.effects
        if isinstance(effect, raft_effects.SendRequest) and isinstance(effect.request, VoteRequest)
    ]
    return sum(each.pre_vote and each.replica_epoch == epoch for each in asked)


def ready(seed: int = 1, voters: int = 3) -> CoreQuorum:
    """Return a quorum with a leader whose log all have."""
    quorum = CoreQuorum(voters, seed=seed).start()
    quorum.elect().propose(b"a")
    quorum.run_until(quorum.agree)
    return quorum


# The order.


def test_every_voter_but_the_leader_has_a_turn_of_its_own() -> None:
    for epoch in range(10):
        turns = [turn_of(id, (1, 2, 3, 4, 5), 3, epoch) for id in (1, 2, 4, 5)]
        assert sorted(turns) == [0, 1, 2, 3]


def test_the_first_turn_goes_round_with_the_epochs() -> None:
    firsts = {id for epoch in range(4) for id in (1, 2, 4, 5) if turn_of(id, (1, 2, 3, 4, 5), 3, epoch) == 0}
    assert firsts == {1, 2, 4, 5}


def test_a_node_that_is_no_voter_comes_last() -> None:
    assert turn_of(9, (1, 2, 3), 3, epoch=7) == 2 + YIELD_STEPS


def test_the_waits_of_successors_grow_with_their_place() -> None:
    keys = [ReplicaKey(node_id) for node_id in range(1, 6)]
    assert [successor_wait_ms(key, keys, 10, 1000) for key in keys] == [0, 50, 100, 150, 200]
    assert successor_wait_ms(keys[4], keys, 10, 120) == 120
    assert successor_wait_ms(ReplicaKey(9), keys, 10, 1000) == 1000


# A leader that was killed.


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_in_its_turn_is_elected_at_once_and_alone(seed: int) -> None:
    quorum = ready(seed)
    first, _ = first_and_second(quorum)
    epoch = quorum.leader.running.epoch
    quorum.leader.crash()
    took_ms = quorum.run_until(lambda: bool(quorum.leaders))
    assert quorum.leader is first
    assert took_ms <= 1 + 2 * ROUND_TRIP_MS, "the news, a pre-vote and a vote"
    quorum.run_until(quorum.agree)
    assert stood(quorum, epoch) == [first.id]


@pytest.mark.parametrize("seed", SEEDS)
def test_if_the_first_is_dead_the_next_ones_stand(seed: int) -> None:
    quorum = ready(seed, voters=5)
    leader = quorum.leader
    epoch = leader.running.epoch
    turns = {id: turn_of(id, quorum.nodes, leader.id, epoch) for id in quorum.nodes if id != leader.id}
    first = quorum.nodes[min(turns, key=lambda id: turns[id])]
    first.crash()
    leader.crash()
    assert quorum.run_until(lambda: bool(quorum.leaders)) < 10 * STEP_MS
    assert turns[quorum.leader.id] == 1


def test_the_longer_log_goes_first_whatever_the_turn() -> None:
    quorum = ready()
    first, second = first_and_second(quorum)
    leader = quorum.leader
    quorum.cut((leader.id, first.id))
    leader.propose(b"b")
    quorum.run_until(lambda: second.flushed_offset == leader.end_offset)
    epoch = leader.running.epoch
    quorum.heal()
    leader.crash()
    assert quorum.run_until(lambda: bool(quorum.leaders)) < STEP_MS, "it doesn't wait for its own turn"
    assert quorum.leader is second
    assert stood(quorum, epoch) == [second.id]


@pytest.mark.parametrize("late_ms", range(5))
def test_a_pre_vote_that_comes_before_the_news_of_the_leaders_end_waits_for_it(late_ms: int) -> None:
    quorum = ready()
    first, second = first_and_second(quorum)
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    lose_leader(quorum, leader, first)
    quorum.run_for(1 + late_ms)
    lose_leader(quorum, leader, second)
    quorum.run_until(lambda: first.running.is_leader)
    assert sent_pre_votes(first, epoch) == 2, "one to each voter"
    assert stood(quorum, epoch) == [first.id]


def test_a_follower_that_is_fetching_a_snapshot_comes_last() -> None:
    """Its log is short: it keeps what it has fetched, and the connection may come back."""
    quorum = ready()
    first, _ = first_and_second(quorum)
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    state = first.running._quorum.state
    assert isinstance(state, Follower)
    state.following.snapshot = FetchingSnapshot(SnapshotId(100, epoch))
    lose_leader(quorum, leader, first)
    quorum.run_for(3 * STEP_MS - 1)
    assert role_of(first) is Role.FOLLOWER
    quorum.run_for(1)
    assert role_of(first) is Role.PROSPECTIVE


def test_without_news_the_pre_vote_is_rejected_and_the_leader_stays() -> None:
    quorum = ready()
    first, _ = first_and_second(quorum)
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    quorum.break_connections(leader.id, of=first.id)
    quorum.run_for(10_000)
    assert (quorum.leader, leader.running.epoch) == (leader, epoch)
    assert stood(quorum, epoch) == []


def test_two_that_ask_each_other_at_once_do_not_both_stand() -> None:
    """The step is too short for this network. The second grants its pre-vote and yields."""
    quorum = CoreQuorum(3, failover_step_ms=1).led()
    first, second = first_and_second(quorum)
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    leader.core = None
    lose_leader(quorum, leader, second)
    quorum.run_for(1)
    assert second.running.role is Role.PROSPECTIVE
    lose_leader(quorum, leader, first)
    quorum.run_until(lambda: first.running.is_leader)
    assert stood(quorum, epoch) == [first.id]


def test_one_that_never_wins_delays_the_others_only_once() -> None:
    """The first asks again and again, but hears no answer."""
    quorum = ready()
    first, second = first_and_second(quorum)
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    quorum.isolate(first.id)
    request = pre_vote(first, second)
    lose_leader(quorum, leader, second)
    for nth in range(20):
        second.step(RpcRequest(Caller(first.id, first.life, 1000 + nth), request, 2, LISTENER))
        quorum.run_for(STEP_MS // 2)
    assert sent_pre_votes(second, epoch) > 0


def test_one_that_yields_after_a_fetch_timeout_soon_stands_again() -> None:
    quorum = ready()
    first, second = first_and_second(quorum)
    epoch = quorum.leader.running.epoch
    quorum.isolate(second.id)
    quorum.run_until(lambda: second.running.role is Role.PROSPECTIVE)
    asked = sent_pre_votes(second, epoch)
    caller = Caller(first.id, first.life, 1000)
    second.step(RpcRequest(caller, pre_vote(first, second), 2, LISTENER))
    assert second.running.role is Role.FOLLOWER
    quorum.run_until(lambda: sent_pre_votes(second, epoch) > asked, within_ms=5 * STEP_MS)


def test_nobody_yields_to_a_stranger_with_a_voters_id() -> None:
    quorum = ready()
    first, second = first_and_second(quorum)
    quorum.isolate(second.id)
    quorum.run_until(lambda: second.running.role is Role.PROSPECTIVE)
    request = pre_vote(first, second)
    request.topics[0].partitions[0].replica_directory_id = OTHER_DIRECTORY
    second.step(RpcRequest(Caller(first.id, first.life, 1000), request, 2, LISTENER))
    assert second.running.role is Role.PROSPECTIVE


def pre_vote(candidate: QuorumNode, voter: QuorumNode) -> VoteRequest:
    """Return a pre-vote request of a node whose log is as long as the voter's."""
    core = voter.running
    asked = PartitionData(
        replica_id=candidate.id,
        replica_directory_id=candidate.config.directory_id,
        replica_epoch=core.epoch,
        voter_directory_id=voter.config.directory_id,
        last_offset_epoch=core.epoch_at(core.log_end_offset - 1),
        last_offset=core.log_end_offset,
        pre_vote=True,
    )
    topic = TopicData(topic_name="__cluster_metadata", partitions=[asked])
    return VoteRequest(cluster_id=CLUSTER_ID, voter_id=voter.id, topics=[topic])


def lose_leader(quorum: CoreQuorum, leader: QuorumNode, node: QuorumNode) -> None:
    """Let a node learn now that its connection to the leader broke. The leader answers nobody from now on."""
    quorum.isolate(leader.id)
    fetches = [
        effect.request_id
        for effect in node.effects
        if isinstance(effect, raft_effects.SendRequest) and effect.peer.id == leader.id
    ]
    node.step(RequestFailed(fetches[-1], Failure.LOST))


# A leader that resigned.


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_successor_needs_no_pre_vote(seed: int) -> None:
    quorum = ready(seed)
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    quorum.shut_down(leader)
    quorum.run_until(lambda: bool(quorum.leaders))
    successor = first_named(leader)
    assert quorum.leader.id == successor
    assert stood(quorum, epoch) == [successor]
    assert sum(sent_pre_votes(node, epoch) for node in quorum.nodes.values()) == 0


def test_if_the_first_successor_is_dead_the_second_does_not_wait_for_a_timeout() -> None:
    quorum = ready(voters=5)
    leader = quorum.leader
    first = quorum.nodes[leader.running.voters.ids[0 if leader.id != 1 else 1]]
    first.crash()
    started_ms = quorum.now.monotonic_ms
    quorum.shut_down(leader)
    quorum.run_until(lambda: bool(quorum.leaders))
    assert quorum.now.monotonic_ms - started_ms < 200


def test_a_later_successor_asks_for_pre_votes_even_if_it_does_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "SUCCESSOR_STEPS", 0)
    quorum = ready()
    first, second = first_and_second(quorum)
    become_successor(quorum, second, (first.id, second.id))
    assert role_of(second) is Role.PROSPECTIVE


def test_a_candidate_that_a_majority_rejects_leaves_the_winner_time_to_announce_itself() -> None:
    """It would depose a leader that was elected a moment ago."""
    quorum = ready()
    _, second = first_and_second(quorum)
    quorum.isolate(second.id)
    become_successor(quorum, second, (second.id,))
    assert role_of(second) is Role.CANDIDATE
    for request_id in votes_in_flight(second):
        second.step(ResponseReceived(request_id, rejection(second.running.epoch)))
    quorum.run_for(YIELD_STEPS * STEP_MS - 1)
    assert role_of(second) is Role.CANDIDATE
    quorum.run_for(2 * STEP_MS)
    assert role_of(second) is Role.PROSPECTIVE, "but it doesn't wait for the election timeout"


def role_of(node: QuorumNode) -> Role:
    return node.running.role


def become_successor(quorum: CoreQuorum, node: QuorumNode, named: tuple[int, ...]) -> None:
    """Tell a node that its leader resigned and named these successors."""
    leader = quorum.leader
    resigned = EndedPartition(
        leader_id=leader.id, leader_epoch=leader.running.epoch, preferred_successors=named
    )
    topic = EndedTopic(topic_name="__cluster_metadata", partitions=[resigned])
    request = EndQuorumEpochRequest(cluster_id=CLUSTER_ID, topics=[topic])
    node.step(RpcRequest(Caller(leader.id, leader.life, 1000), request, 0, LISTENER))
    resign(node, leader.id)


def votes_in_flight(node: QuorumNode) -> list[int]:
    """Return the ids of the votes that a candidate has asked for in its epoch."""
    return [
        effect.request_id
        for effect in node.effects
        if isinstance(effect, raft_effects.SendRequest)
        and isinstance(effect.request, VoteRequest)
        and effect.request.topics[0].partitions[0].replica_epoch == node.running.epoch
    ]


def rejection(epoch: int) -> VoteResponse:
    answer = vote_response.PartitionData(leader_id=-1, leader_epoch=epoch, vote_granted=False)
    topic = vote_response.TopicData(topic_name="__cluster_metadata", partitions=[answer])
    return VoteResponse(topics=[topic])


def first_named(leader: QuorumNode) -> int:
    """Return the id of the successor that the leader named first."""
    for effect in leader.effects:
        if isinstance(effect, raft_effects.SendRequest) and isinstance(effect.request, EndQuorumEpochRequest):
            return effect.request.topics[0].partitions[0].preferred_successors[0]
    raise AssertionError("the leader named no successor")
