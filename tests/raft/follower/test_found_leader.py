"""A voter whose candidate wins: its search for the leader becomes its first Fetch, on the open connection."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import fetch_response
from kraft_wire.raft import effects as raft_effects
from kraft_wire.raft.election.known_leader import learn_leader
from kraft_wire.raft.events import Failure, RequestFailed, ResponseReceived, Tick
from kraft_wire.raft.named_leader import NO_LEADER
from kraft_wire.raft.roles import Follower, Role
from tests.raft.core_quorum import CoreQuorum, QuorumNode
from tests.raft.election.claimed_leaders import fetches, follow
from tests.raft.election.test_short_candidates import ask, end_of
from tests.raft.election.test_turns import first_and_second, ready

TOPIC = "__cluster_metadata"


def voted() -> tuple[CoreQuorum, QuorumNode, QuorumNode]:
    """Return a quorum without a leader, a candidate, and a node that voted for it and hears nobody."""
    quorum = ready()
    candidate, voter = first_and_second(quorum)
    quorum.leader.crash()
    quorum.run_until(lambda: voter.running.live_leader_id is None)
    quorum.isolate(voter.id)
    ask(voter, candidate.id, voter.running.epoch + 1, end_of(voter))
    return quorum, candidate, voter


def announce(
    leader: QuorumNode, voter: QuorumNode, later_epochs: int = 0, host: str = ""
) -> list[raft_effects.Effect]:
    """Let a voter learn that a node leads its epoch, or one that is later by so many. ``host`` is another
    name of it than the one that voters know. Returns the effects of learning it."""
    return follow(voter, leader.id, voter.running.epoch + later_epochs, host=host)


def answer(voter: QuorumNode, request_id: int, error: ErrorCode, leader_id: int) -> list[raft_effects.Effect]:
    leader = fetch_response.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=voter.running.epoch)
    partition = fetch_response.PartitionData(
        error_code=error, high_watermark=voter.high_watermark, records=b"", current_leader=leader
    )
    topic = fetch_response.FetchableTopicResponse(topic=TOPIC, partitions=[partition])
    return voter.step(ResponseReceived(request_id, fetch_response.FetchResponse(responses=[topic])))


def is_gone(voter: QuorumNode) -> bool:
    state = voter.running._quorum.state
    assert isinstance(state, Follower)
    return state.following.leader_is_gone


def test_a_voter_asks_its_candidate_first_who_leads() -> None:
    _, candidate, voter = voted()
    assert fetches(voter.effects)[-1].peer.id == candidate.id


def test_a_search_that_is_in_flight_to_the_leader_is_not_sent_again() -> None:
    _, candidate, voter = voted()
    search = fetches(voter.effects)[-1]
    effects = announce(candidate, voter)
    assert not any(isinstance(effect, raft_effects.CancelRequest) for effect in effects)
    assert fetches(effects) == []
    again = answer(voter, search.request_id, ErrorCode.NONE, candidate.id)
    assert [fetch.peer.id for fetch in fetches(again)] == [candidate.id]


def test_a_search_at_an_old_address_of_the_leader_is_forgotten() -> None:
    """Nobody may ever answer there. The first Fetch goes to the new address at once."""
    _, candidate, voter = voted()
    new = f"node-0{candidate.id}"
    effects = announce(candidate, voter, host=new)
    assert [(fetch.peer.id, fetch.peer.host) for fetch in fetches(effects)] == [(candidate.id, new)]


def test_an_answer_from_before_the_leader_led_says_nothing_of_it() -> None:
    """It would count as a resignation, or cost a backoff."""
    _, candidate, voter = voted()
    search = fetches(voter.effects)[-1]
    announce(candidate, voter)
    effects = answer(voter, search.request_id, ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_LEADER)
    assert [fetch.peer.id for fetch in fetches(effects)] == [candidate.id], "without a backoff"
    assert not is_gone(voter)


def test_the_same_answer_to_a_later_fetch_is_a_resignation() -> None:
    _, candidate, voter = voted()
    announce(candidate, voter)
    for _ in range(2):
        answer(voter, fetches(voter.effects)[-1].request_id, ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_LEADER)
    assert is_gone(voter)


def test_a_leader_whose_connection_breaks_with_the_search_is_gone() -> None:
    _, candidate, voter = voted()
    announce(candidate, voter)
    voter.step(RequestFailed(fetches(voter.effects)[-1].request_id, Failure.LOST))
    assert is_gone(voter)


def test_a_search_at_another_node_is_forgotten_when_the_leader_is_found() -> None:
    """Its connection stays open: a node that doesn't lead answers at once."""
    _, candidate, voter = voted()
    search = fetches(voter.effects)[-1]
    leader = next(node for node in voter.quorum.nodes.values() if node not in (candidate, voter))
    effects = announce(leader, voter)
    assert not any(isinstance(effect, raft_effects.CancelRequest) for effect in effects)
    assert [fetch.peer.id for fetch in fetches(effects)] == [leader.id]
    late = answer(voter, search.request_id, ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_LEADER)
    assert fetches(late) == []
    assert not is_gone(voter)


def test_a_search_at_the_candidate_does_not_close_the_connection_to_it() -> None:
    """The voter asks the others in turn who leads. Then it votes, and asks the candidate."""
    quorum = ready()
    candidate, voter = first_and_second(quorum)
    quorum.isolate(voter.id)
    assert learn_leader(voter.running._quorum, voter.running.epoch + 1, None, ())
    voter.step(Tick())
    if fetches(voter.effects)[-1].peer.id != candidate.id:
        answer(voter, fetches(voter.effects)[-1].request_id, ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_LEADER)
    assert fetches(voter.effects)[-1].peer.id == candidate.id
    begun = len(voter.effects)
    ask(voter, candidate.id, voter.running.epoch + 1, end_of(voter))
    effects = voter.effects[begun:]
    assert not any(isinstance(effect, raft_effects.CancelRequest) for effect in effects)
    assert [fetch.peer.id for fetch in fetches(effects)] == [candidate.id]


def test_a_voter_that_waits_for_its_turn_to_stand_searches_for_no_leader() -> None:
    """The voters that it then asks know who leads. A search would keep them busy while they should elect."""
    quorum = ready()
    _, voter = first_and_second(quorum)
    quorum.isolate(voter.id)
    fetch = fetches(voter.effects)[-1]
    effects = voter.step(RequestFailed(fetch.request_id, Failure.LOST))
    assert is_gone(voter)
    assert fetches(effects) == []


def test_an_observer_that_lost_its_leader_searches_at_once() -> None:
    quorum = CoreQuorum(3, observers=1).start()
    leader = quorum.elect()
    observer = quorum.nodes[4]
    quorum.run_until(lambda: observer.running.live_leader_id == leader.id)
    quorum.isolate(observer.id)
    fetch = fetches(observer.effects)[-1]
    effects = observer.step(RequestFailed(fetch.request_id, Failure.LOST))
    assert is_gone(observer)
    assert len(fetches(effects)) == 1


def test_a_voter_asks_nobody_but_its_candidate_who_leads() -> None:
    _, candidate, voter = voted()
    search = fetches(voter.effects)[-1]
    begun = len(voter.effects)
    answer(voter, search.request_id, ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_LEADER)
    voter.quorum.run_for(voter.config.election_timeout_ms - 1)
    assert {fetch.peer.id for fetch in fetches(voter.effects[begun:])} == {candidate.id}


def test_a_candidate_that_was_not_elected_asks_the_others_who_leads() -> None:
    """Nobody else has its vote, so that none of them would announce itself to it first."""
    quorum = ready()
    voter, _ = first_and_second(quorum)
    quorum.leader.crash()
    quorum.run_until(lambda: voter.running.role is Role.CANDIDATE)
    quorum.isolate(voter.id)
    begun = len(voter.effects)
    quorum.run_until(lambda: voter.running.role is Role.UNATTACHED)
    assert voter.running.voted == voter.config.replica_key
    assert len(fetches(voter.effects[begun:])) == 1


def test_a_voter_also_asks_bootstrap_servers_as_its_candidate_may_have_moved() -> None:
    _, candidate, voter = voted()
    search = fetches(voter.effects)[-1]
    voter.running._quorum.config = msgspec.structs.replace(
        voter.config, bootstrap_servers=(("moved", candidate.config.endpoints[0].port),)
    )
    begun = len(voter.effects)
    answer(voter, search.request_id, ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_LEADER)
    voter.quorum.run_for(voter.config.election_timeout_ms - 1)
    assert "moved" in {fetch.peer.host for fetch in fetches(voter.effects[begun:])}


def test_a_fetch_that_the_last_leader_may_answer_late_is_cancelled() -> None:
    quorum = ready()
    candidate, voter = first_and_second(quorum)
    quorum.isolate(voter.id)
    parked = fetches(voter.effects)[-1]
    effects = follow(voter, candidate.id, voter.running.epoch + 1)
    assert raft_effects.CancelRequest(parked.request_id) in effects


@pytest.mark.parametrize("seed", range(25))
def test_a_failover_opens_no_connection(seed: int) -> None:
    """To cancel a Fetch closes its connection."""
    quorum = ready(seed)
    first, second = first_and_second(quorum)
    quorum.leader.crash()
    quorum.run_until(lambda: second.running.role is Role.UNATTACHED)
    begun = len(second.effects)
    quorum.run_until(quorum.agree)
    assert quorum.leader is first
    assert not any(isinstance(effect, raft_effects.CancelRequest) for effect in second.effects[begun:])


@pytest.mark.parametrize("seed", range(5))
def test_nodes_that_do_not_answer_are_asked_in_turn(seed: int) -> None:
    """Each costs the request timeout. At random, the only one in reach could be asked last by far."""
    quorum = CoreQuorum(7, observers=1, seed=seed).start()
    quorum.elect()
    observer = quorum.nodes[8]
    quorum.isolate(observer.id)
    observer.crash()
    observer.effects.clear()
    observer.start()
    quorum.run_until(lambda: len(fetches(observer.effects)) >= 14, within_ms=60_000)
    asked = [fetch.peer.host for fetch in fetches(observer.effects)]
    assert sorted(asked[:7]) == sorted(asked[7:14]) == [f"node-{id}" for id in range(1, 8)]
