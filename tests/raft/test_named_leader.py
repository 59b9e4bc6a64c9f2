"""The leader that answers name: one without an endpoint would end a Java node that asks."""

from __future__ import annotations

from kraft_wire.protocol.messages.fetch_response import FetchResponse, NodeEndpoint
from kraft_wire.raft.config import DurableState
from kraft_wire.raft.membership.voters import VoterSet, static_voters
from tests.raft.election.vote_requests import answer, vote
from tests.raft.lone_node import LISTENER, LoneNode, config, election, fetch, only

LEADER = 3
FETCH = fetch(0, 0, epoch=5)


def _restarted(voters: VoterSet) -> LoneNode:
    """Return node 1 right after a restart: quorum-state says that node 3 leads epoch 5."""
    bootstrap = [("controller3.example", 9093)]
    return LoneNode(
        config(static=voters, bootstrap_servers=bootstrap), DurableState(election=election(LEADER, 5))
    )


def _voters() -> VoterSet:
    return static_voters(LISTENER, {number: (f"controller{number}.example", 9093) for number in (1, 2, 3)})


def _fetched(node: LoneNode, version: int, listener: str = LISTENER) -> FetchResponse:
    response = node.answer_to(FETCH, version, listener)
    assert isinstance(response, FetchResponse)
    return response


def test_a_leader_whose_address_nobody_knows_is_not_named() -> None:
    node = _restarted(VoterSet())
    response = _fetched(node, 17)
    leader = only(response).current_leader
    assert (leader.leader_id, leader.leader_epoch) == (-1, 5)
    assert response.node_endpoints == []
    named = answer(node, vote(5, pre_vote=True))
    assert (named.leader_id, named.leader_epoch) == (-1, 5)


def test_a_leader_that_is_a_voter_is_named_with_the_voter_sets_address() -> None:
    response = _fetched(_restarted(_voters()), 17)
    assert only(response).current_leader.leader_id == LEADER
    assert response.node_endpoints == [NodeEndpoint(node_id=LEADER, host="controller3.example", port=9093)]


def test_a_leader_is_not_named_on_a_listener_that_it_lacks() -> None:
    response = _fetched(_restarted(_voters()), 17, listener="OTHER")
    assert only(response).current_leader.leader_id == -1
    assert response.node_endpoints == []


def test_versions_without_addresses_name_any_leader_that_is_known() -> None:
    """Their senders have static voters, and look the address up there."""
    response = _fetched(_restarted(VoterSet()), 16)
    assert only(response).current_leader.leader_id == LEADER
