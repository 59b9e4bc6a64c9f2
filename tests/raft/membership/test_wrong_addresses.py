"""Voters whose addresses in the log are wrong find each other at bootstrap servers, and correct the log."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.update_raft_voter_request import Listener
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.membership.voters import endpoints_of
from tests.raft.core_quorum import PORT, CoreQuorum, QuorumNode
from tests.raft.lone_node import LISTENER
from tests.raft.membership.reconfiguration import Asked, believing, endpoints, update_request, with_observers

VOTERS = 5


def _nowhere(voter: int) -> str:
    return f"nowhere-{voter}"


def _at_the_next_voter(voter: int) -> str:
    return f"node-{voter % VOTERS + 1}"


WRONG = [_nowhere, _at_the_next_voter]


def _misdirected(wrong_host: Callable[[int], str]) -> CoreQuorum:
    """Return a quorum whose log has wrong addresses of all voters but the leader, which has just ended."""
    quorum = with_observers(VOTERS, 0)
    leader = quorum.leader
    for voter in quorum.followers():
        _tell_wrong_address(quorum, voter, wrong_host(voter.id))
    leader.crash()
    return quorum


def _tell_wrong_address(quorum: CoreQuorum, voter: QuorumNode, host: str) -> None:
    request = update_request(voter, quorum.leader.running.epoch)
    request.listeners = [Listener(name=LISTENER, host=host, port=PORT)]
    with believing():
        assert Asked(quorum.leader, request).error == ErrorCode.NONE
    quorum.run_until(quorum.agree)


def _is_corrected(quorum: CoreQuorum) -> bool:
    return bool(quorum.leaders) and all(
        endpoints(quorum.leader, node.id) == node.config.endpoints
        for node in quorum.nodes.values()
        if node.is_up
    )


@pytest.mark.parametrize("wrong_host", WRONG)
def test_the_others_elect_a_leader_and_correct_their_addresses(wrong_host: Callable[[int], str]) -> None:
    quorum = _misdirected(wrong_host)
    quorum.run_until(lambda: _is_corrected(quorum) and quorum.agree(), within_ms=30_000)


@pytest.mark.parametrize("wrong_host", WRONG)
def test_all_elect_a_leader_after_a_restart(wrong_host: Callable[[int], str]) -> None:
    quorum = _misdirected(wrong_host)
    for node in quorum.nodes.values():
        node.crash()
    for node in quorum.nodes.values():
        node.start()
    quorum.run_until(lambda: _is_corrected(quorum) and quorum.agree(), within_ms=30_000)


def test_a_voter_with_two_addresses_has_one_vote() -> None:
    quorum = _misdirected(_nowhere)
    one, other, *down = (node for node in quorum.nodes.values() if node.is_up)
    for node in down:
        node.crash()
    aliases = endpoints_of([(LISTENER, f"node-{one.id}", PORT), ("ALIAS", "alias", PORT)])
    one.config = msgspec.structs.replace(one.config, endpoints=aliases)
    servers = ((f"node-{one.id}", PORT), ("alias", PORT))
    other.config = msgspec.structs.replace(other.config, bootstrap_servers=servers)
    for node in (one, other):
        node.crash()
        node.start()
    quorum.run_for(20_000)
    assert not quorum.leaders


def test_bootstrap_servers_are_asked_for_votes_only_after_a_lost_election() -> None:
    quorum = _misdirected(_nowhere)
    stood = {node.id: len(node.effects) for node in quorum.nodes.values()}
    quorum.run_for(900)
    asked = [
        effect.peer
        for node in quorum.nodes.values()
        for effect in node.effects[stood[node.id] :]
        if isinstance(effect, SendRequest) and isinstance(effect.request, VoteRequest)
    ]
    assert asked
    assert all(peer.id >= 0 for peer in asked)


def test_a_voter_is_not_searched_where_it_is_asked_anyway() -> None:
    """Its second answer would count instead of the first."""
    quorum = with_observers(VOTERS, 0)
    for node in (quorum.leader, *quorum.followers()[:2]):
        node.crash()
    quorum.run_for(10_000)
    searched = [
        (effect.peer.host, effect.request.voter_id)
        for node in quorum.nodes.values()
        for effect in node.effects
        if isinstance(effect, SendRequest) and isinstance(effect.request, VoteRequest) and effect.peer.id < 0
    ]
    assert searched
    assert not [host for host, voter_id in searched if host == f"node-{voter_id}"]


@pytest.mark.parametrize("is_silent", [False, True], ids=["refuses", "silent"])
def test_a_follower_that_asks_its_leader_at_an_old_address_finds_the_new_one(is_silent: bool) -> None:
    """A node that was away may name the leader at the address that its log has."""
    quorum = with_observers(5, 1)
    nobody, follower = quorum.nodes[6], quorum.followers()[0]
    nobody.crash()
    if is_silent:
        quorum.aliases["old-host"] = nobody.id
        quorum.isolate(nobody.id)
    core = follower.running._quorum
    old = endpoints_of([(LISTENER, "old-host", PORT)])
    core.state = msgspec.structs.replace(core.state, leader_endpoints=old)
    epoch = core.epoch
    quorum.run_for(5_000)
    quorum.leader.propose()
    quorum.run_until(quorum.agree)
    assert core.state.leader_endpoints == quorum.leader.config.endpoints
    assert quorum.leader.running.epoch == epoch
