"""The leader as answers to peers name it."""

from __future__ import annotations

from typing import NamedTuple

from kraft_wire.raft.membership.voters import Endpoint, endpoint_at
from kraft_wire.raft.quorum_state import QuorumState

NO_LEADER = -1


class NamedLeader(NamedTuple):
    """A leader's id, -1 for none, and its endpoint on the listener that received the request."""

    id: int
    endpoint: Endpoint | None


def named_leader(quorum: QuorumState, listener: str, *, has_endpoints: bool) -> NamedLeader:
    """Return the leader that an answer names on this listener. Like in Java, a node that has resigned names
    itself.

    ``has_endpoints``: the answer's version has a field for the endpoint. Then a leader without an endpoint
    isn't named: a Java node that doesn't find the endpoint in its own voter set either would stop
    (QuorumState.transitionToFollower). The receivers of older versions have static voters.
    """
    leader_id = quorum.state.leader_id
    if leader_id is None:
        return NamedLeader(NO_LEADER, None)
    if not has_endpoints:
        return NamedLeader(leader_id, None)
    endpoints = quorum.state.leader_endpoints or quorum.history.voters.endpoints_of(leader_id)
    endpoint = endpoint_at(endpoints, listener)
    return NamedLeader(NO_LEADER if endpoint is None else leader_id, endpoint)
