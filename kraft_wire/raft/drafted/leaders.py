"""Move the leader's endpoint: the draft has it in CurrentLeader, Kafka among the node endpoints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class _Endpoint(Protocol):
    host: str
    port: int


class _Node(_Endpoint, Protocol):
    node_id: int


class _CurrentLeader(Protocol):
    leader_id: int

    @property
    def end_point(self) -> _Endpoint: ...


N = TypeVar("N", bound=_Node)
L = TypeVar("L", bound=_CurrentLeader)


def with_end_point(leader: L, nodes: Iterable[_Node]) -> L:
    """Give a drafted CurrentLeader the endpoint of its node, if that is known."""
    for node in nodes:
        if node.node_id == leader.leader_id:
            leader.end_point.host, leader.end_point.port = node.host, node.port
    return leader


def nodes_of(cls: type[N], leaders: Iterable[_CurrentLeader]) -> list[N]:
    """Return Kafka's node endpoints of the drafted leaders whose endpoint is known."""
    nodes: dict[int, N] = {}
    for leader in leaders:
        if leader.end_point.host:
            node = nodes[leader.leader_id] = cls()
            node.node_id = leader.leader_id
            node.host, node.port = leader.end_point.host, leader.end_point.port
    return list(nodes.values())
