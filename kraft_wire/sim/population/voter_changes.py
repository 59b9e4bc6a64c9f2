"""Simulate an administrator who changes the voters: sends AddRaftVoter and RemoveRaftVoter to controllers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import add_raft_voter_request
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraft_wire.raft.events import RpcRequest, UpgradeKraftVersion
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.sim.network.connections import CLUSTER_ID, LISTENER
from kraft_wire.sim.network.wire import VERSIONS

if TYPE_CHECKING:
    from kraft_wire.sim.machines.cluster import Cluster
    from kraft_wire.sim.machines.node import SimNode

CHANCE_OF_THE_LEADER = 0.8


class VoterChanges:
    """An administrator who doesn't wait for answers."""

    def __init__(self, cluster: Cluster, tokens: Iterator[int]) -> None:
        self._cluster = cluster
        self._tokens = tokens

    def change(self, chance: random.Random) -> None:
        """Ask a controller, mostly the leader, to add some node or to remove a voter."""
        asked = self._whom_to_ask(chance)
        if asked is None:
            return
        target = self.lost_voter(asked) or chance.choice(list(self._cluster.nodes.values()))
        self.ask(asked, target, is_acked_when_committed=chance.random() < 0.7)

    def ask(self, asked: SimNode, target: SimNode, *, is_acked_when_committed: bool = True) -> None:
        """Ask a node to remove the target if it is a voter, otherwise to add it."""
        known = asked.raft.voters.get(target.id)
        if known is None:
            request: Message = _add_request(target, is_acked_when_committed=is_acked_when_committed)
        else:
            request = _remove_request(known.key)
        asked.take(RpcRequest(next(self._tokens), request, VERSIONS[request.API_KEY], LISTENER))

    def upgrade(self, node: SimNode) -> None:
        """Raise kraft.version to 1, if this node leads and the quorum is ready."""
        if node.is_up:
            node.when_free(_upgrade, node)

    def lost_voter(self, asked: SimNode) -> SimNode | None:
        """Return a node whose disk was replaced and whose former self is still a voter. It goes first: each
        other removal could take the majority."""
        for voter in asked.raft.voters.voters:
            node = self._cluster.nodes[voter.key.id]
            if node.config.directory_id != voter.key.directory_id:
                return node
        return None

    def _whom_to_ask(self, chance: random.Random) -> SimNode | None:
        leader = self._cluster.leader
        if leader is not None and leader.is_up and chance.random() < CHANCE_OF_THE_LEADER:
            return leader
        running = [node for node in self._cluster.nodes.values() if node.is_up]
        return chance.choice(running) if running else None


def _upgrade(node: SimNode) -> None:
    if node.raft.kraft_version_problem(1) is None:
        node.take_as_leader(UpgradeKraftVersion(1))


def _add_request(target: SimNode, *, is_acked_when_committed: bool) -> AddRaftVoterRequest:
    config = target.config
    return AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        timeout_ms=1000,
        voter_id=config.node_id,
        voter_directory_id=config.directory_id,
        listeners=[
            add_raft_voter_request.Listener(name=each.listener, host=each.host, port=each.port)
            for each in config.endpoints
        ],
        ack_when_committed=is_acked_when_committed,
    )


def _remove_request(key: ReplicaKey) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter_id=key.id, voter_directory_id=key.directory_id)
