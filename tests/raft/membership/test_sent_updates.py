"""A voter tells the leader what its entry should be (KafkaRaftClientReconfigTest)."""

from __future__ import annotations

import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraft_wire.protocol.messages.update_raft_voter_response import CurrentLeader, UpdateRaftVoterResponse
from kraft_wire.raft.effects import SendRequest, UpdateRefused
from kraft_wire.raft.roles import Role
from tests.raft.core_quorum import PORT, CoreQuorum, QuorumNode
from tests.raft.election.claimed_leaders import fetches
from tests.raft.membership.played_leader import ANSWERED_EVERY_MS, EPOCH, PlayedLeader
from tests.raft.membership.reconfiguration import advertise_more, endpoints, known_keys, with_observers


def _sent(node: QuorumNode) -> list[SendRequest]:
    sent = [effect for effect in node.effects if isinstance(effect, SendRequest)]
    return [each for each in sent if isinstance(each.request, UpdateRaftVoterRequest)]


def _moved_follower() -> tuple[CoreQuorum, QuorumNode]:
    """Return a quorum, and its follower that starts again with one more endpoint."""
    quorum = with_observers(3, 0)
    follower = quorum.followers()[0]
    follower.crash()
    advertise_more(follower)
    follower.start()
    return quorum, follower


def test_follower_sends_update_voter() -> None:
    quorum, follower = _moved_follower()
    quorum.run_until(lambda: endpoints(quorum.leader, follower.id) == follower.config.endpoints)
    quorum.run_until(quorum.agree)
    quorum.run_for(10_000)
    (sent,) = _sent(follower)
    assert isinstance(sent.request, UpdateRaftVoterRequest)
    assert sent.request.current_leader_epoch == quorum.leader.running.epoch
    assert [(each.name, each.port) for each in sent.request.listeners] == [
        (each.listener, each.port) for each in follower.config.endpoints
    ]


def test_follower_sends_update_voter_when_different() -> None:
    """A voter whose entry is right sends none, also after many fetch timeouts."""
    quorum = with_observers(3, 0)
    quorum.run_for(10_000)
    assert not [sent for node in quorum.nodes.values() for sent in _sent(node)]


def _leader_of_a_moved_voter(kraft_version: int) -> PlayedLeader:
    """Return the leader of a voter with one more endpoint than its entry has."""
    node = CoreQuorum(3, kraft_version=kraft_version).nodes[1]
    advertise_more(node)
    return PlayedLeader(node)


def _answer_update(leader: PlayedLeader, error: ErrorCode, named: int, epoch: int) -> None:
    """Answer the newest UpdateRaftVoter, and name a leader and its epoch."""
    current = CurrentLeader(leader_id=named, leader_epoch=epoch, host=f"node-{named}", port=PORT)
    answer = UpdateRaftVoterResponse(error_code=error, current_leader=current)
    leader.answer(UpdateRaftVoterRequest, answer)


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION])
def test_follower_sends_update_voter_with_kraft_version_0(error: ErrorCode) -> None:
    """A leader that can't remember the entry isn't asked again, either."""
    leader = _leader_of_a_moved_voter(0)
    leader.lead_for_a_fetch_timeout()
    assert len(leader.asked(UpdateRaftVoterRequest)) == 1
    _answer_update(leader, error, leader.id, leader.epoch)
    for _ in range(10):
        leader.lead_for_a_fetch_timeout()
    assert len(leader.asked(UpdateRaftVoterRequest)) == 1


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION])
def test_follower_sends_update_voter_after_election_with_kraft_version_0(error: ErrorCode) -> None:
    leader = _leader_of_a_moved_voter(0)
    leader.lead_for_a_fetch_timeout()
    _answer_update(leader, error, leader.id, leader.epoch)
    leader.elected_again()
    leader.lead_for_a_fetch_timeout()
    epochs = [update.current_leader_epoch for update in leader.asked(UpdateRaftVoterRequest)]
    assert epochs == [EPOCH, EPOCH + 1]


def test_a_refused_update_is_reported() -> None:
    leader = _leader_of_a_moved_voter(1)
    leader.lead_for_a_fetch_timeout()
    _answer_update(leader, ErrorCode.INVALID_REQUEST, leader.id, leader.epoch)
    refusals = [effect for effect in leader.node.effects if isinstance(effect, UpdateRefused)]
    assert refusals == [UpdateRefused(leader.id, ErrorCode.INVALID_REQUEST)]


@pytest.mark.parametrize("error", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_an_update_that_only_comes_too_early_is_not_reported(error: ErrorCode) -> None:
    leader = _leader_of_a_moved_voter(1)
    leader.lead_for_a_fetch_timeout()
    _answer_update(leader, error, leader.id, leader.epoch)
    assert not any(isinstance(effect, UpdateRefused) for effect in leader.node.effects)


def test_all_voters_tell_the_leader_of_a_quorum_with_kraft_version_0_who_they_are() -> None:
    quorum = with_observers(3, 0, kraft_version=0)
    quorum.run_for(10_000)
    for node in quorum.followers():
        assert len(_sent(node)) == 1
        assert known_keys(quorum.leader)[node.id] == node.config.replica_key


def test_follower_sends_update_voter_if_pending_fetch_during_timeout() -> None:
    """The request doesn't wait until the Fetch is answered: that one has a connection of its own."""
    leader = _leader_of_a_moved_voter(1)
    leader.lead_for(leader.node.config.fetch_timeout_ms - ANSWERED_EVERY_MS)
    assert not leader.asked(UpdateRaftVoterRequest)
    pending = fetches(leader.node.effects)[-1]
    leader.node.quorum.run_for(ANSWERED_EVERY_MS)
    assert fetches(leader.node.effects)[-1] is pending
    assert len(leader.asked(UpdateRaftVoterRequest)) == 1


def test_update_voter_response_causes_epoch_change() -> None:
    leader = _leader_of_a_moved_voter(1)
    leader.lead_for_a_fetch_timeout()
    _answer_update(leader, ErrorCode.NONE, 3, EPOCH + 1)
    node = leader.node
    assert (node.running.role, node.running.leader_id, node.running.epoch) == (Role.FOLLOWER, 3, EPOCH + 1)
    assert fetches(node.effects)[-1].peer.id == 3


def test_an_update_reaches_the_leader_that_is_elected_while_it_is_on_its_way() -> None:
    quorum, follower = _moved_follower()
    quorum.run_until(lambda: bool(_sent(follower)))
    leader = quorum.leader
    quorum.cut((follower.id, leader.id))
    leader.crash()
    quorum.run_until(lambda: bool(quorum.leaders))
    quorum.heal()
    quorum.run_until(lambda: endpoints(quorum.leader, follower.id) == follower.config.endpoints)
