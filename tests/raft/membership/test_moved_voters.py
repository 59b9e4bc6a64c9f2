"""A voter on another host gets back into the quorum, also if it is in a higher epoch than the leader."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.log.files import ElectionState
from kraft_wire.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.membership.voters import endpoints_of
from tests.raft.core_quorum import PORT, QuorumNode
from tests.raft.lone_node import LISTENER
from tests.raft.membership.reconfiguration import endpoints, with_observers


def _move(voter: QuorumNode, *, epochs_ahead: int) -> None:
    """Restart a voter on another host, in a later epoch than the leader's."""
    voter.crash()
    moved = endpoints_of([(LISTENER, f"new-host-{voter.id}", PORT)])
    voter.config = msgspec.structs.replace(voter.config, endpoints=moved)
    voter.election = ElectionState(leader_epoch=voter.quorum.leader.running.epoch + epochs_ahead)
    voter.start()


@pytest.mark.parametrize("epochs_ahead", [1, 1000])
@pytest.mark.parametrize("refuse_pre_votes", [False, True], ids=["pre-votes", "no-pre-votes"])
def test_a_voter_that_has_moved_comes_back(epochs_ahead: int, refuse_pre_votes: bool) -> None:
    quorum = with_observers(3, 0)
    quorum.refuse_pre_votes = refuse_pre_votes
    voter = quorum.followers()[0]
    _move(voter, epochs_ahead=epochs_ahead)
    quorum.run_until(lambda: quorum.agree() and quorum.leader.running.epoch >= voter.running.epoch)
    assert endpoints(quorum.leader, voter.id) == voter.config.endpoints


def test_a_former_leader_that_has_moved_and_may_not_stand_comes_back() -> None:
    """Nobody finds it at its old address, and it has no election to wait for."""
    quorum = with_observers(3, 0)
    voter = quorum.leader
    voter.crash()
    voter.lose_from(voter.end_offset - 1)
    quorum.run_until(lambda: bool(quorum.leaders))
    moved = endpoints_of([(LISTENER, f"new-host-{voter.id}", PORT)])
    voter.config = msgspec.structs.replace(voter.config, endpoints=moved)
    voter.start()
    quorum.run_until(lambda: endpoints(quorum.leader, voter.id) == voter.config.endpoints)


def test_a_voter_of_a_higher_epoch_at_its_old_address_does_not_change_its_entry() -> None:
    quorum = with_observers(3, 0)
    voter = quorum.followers()[0]
    voter.crash()
    voter.election = ElectionState(leader_epoch=quorum.leader.running.epoch + 5)
    voter.start()
    quorum.run_until(lambda: bool(quorum.leaders) and quorum.agree())
    assert not _sent_updates(voter)


def test_a_voter_that_moved_tells_a_leader_that_does_not_listen_once_in_a_fetch_timeout() -> None:
    quorum = with_observers(3, 0)
    voter, leader = quorum.followers()[0], quorum.leader
    asked_before = len(_sent_updates(voter))
    quorum.isolate(quorum.followers()[1].id)  # the leader can't commit the change
    _move(voter, epochs_ahead=5)
    quorum.run_for(leader.config.fetch_timeout_ms - 100)
    assert len(_sent_updates(voter)) == asked_before + 1


def _sent_updates(node: QuorumNode) -> list[SendRequest]:
    return [
        effect
        for effect in node.effects
        if isinstance(effect, SendRequest) and isinstance(effect.request, UpdateRaftVoterRequest)
    ]


@pytest.mark.parametrize("is_silent", [False, True], ids=["refuses", "silent"])
@pytest.mark.parametrize("settings", [{}, {"request_timeout_ms": 7_000}, {"fetch_timeout_ms": 600}], ids=str)
def test_a_moved_voter_gets_its_entry_whatever_the_timeouts(
    settings: dict[str, int], is_silent: bool
) -> None:
    """A question at a silent address takes a request timeout."""
    quorum = with_observers(3, 1, **settings)
    nobody, voter = quorum.nodes[4], quorum.followers()[0]
    nobody.crash()
    voter.crash()
    moved = endpoints_of([(LISTENER, f"new-host-{voter.id}", PORT)])
    former_host = f"node-{voter.id}"
    voter.config = msgspec.structs.replace(voter.config, endpoints=moved)
    voter.start()
    if is_silent:
        quorum.aliases[former_host] = nobody.id
        quorum.isolate(nobody.id)
    quorum.run_until(lambda: endpoints(quorum.leader, voter.id) == moved, within_ms=60_000)
