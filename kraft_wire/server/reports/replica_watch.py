"""Detect replicas with a wrong identity among the senders of raft's requests.

These are nodes of another cluster, a voter's id with another directory id, nodes that wrongly act as voters,
and two processes with the same identity. No I/O and no clock. A finding is reported again only if it changes.
"""

from __future__ import annotations

from typing import Any, Final, get_args

import msgspec

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import ReplicaKey, VoterSet
from kraft_wire.server.reports.leader_watch import LogEvent

MAX_REPLICAS: Final = 10_000
MAX_CLUSTER_ID_CHARS: Final = 100
"""As much of another cluster's id is kept and logged. Kafka's own have 22 characters."""
TWIN_RETURNS: Final = 5
"""The number of returns to an earlier connection that reveals two processes: one process never returns."""

Asker = FetchRequest | FetchSnapshotRequest | VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest
ASKED_API_KEYS: Final = frozenset(kind.API_KEY for kind in get_args(Asker))


class Fetcher(msgspec.Struct):
    """The last fetch of a replica, and the address of the fetch before."""

    directory_id: Uuid
    address: str
    voters: VoterSet
    address_before: str = ""
    returns: int = 0


def disowned(key: ReplicaKey, voters: VoterSet) -> LogEvent | None:
    """Return what to log if this node has a voter's id without being that voter."""
    voter = voters.get(key.id)
    if voter is None or voter.key.matches(key):
        return None
    return LogEvent(
        True,
        "node is not the voter with its id",
        {
            "directory_id": str(key.directory_id),
            "voters_directory_id": str(voter.key.directory_id),
            "advice": "it is an observer: give it that voter's folder; if that is lost, and the node doesn't"
            f" join by itself, `kraft-wire quorum remove {key.id} --directory-id {voter.key.directory_id}`,"
            f" then `kraft-wire quorum promote {key.id}`",
        },
    )


def enlisted(key: ReplicaKey, voters: VoterSet) -> LogEvent | None:
    """Return what to log if a node that only observes has the id of a voter, or is one of the voters."""
    voter = voters.get(key.id)
    if voter is None:
        return None
    return LogEvent(
        True,
        "observer has the id of a voter",
        {
            "directory_id": str(key.directory_id),
            "voters_directory_id": str(voter.key.directory_id),
            "advice": f"it never votes: if it was made a voter, `kraft-wire quorum remove {key.id}`;"
            " otherwise move its folder away, and start it with another --node-id",
        },
    )


class ReplicaWatch:
    """A watch on raft's incoming requests."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._clusters: dict[int, str] = {}
        self._fetchers: dict[int, Fetcher] = {}
        self._strangers: set[int] = set()

    def other_cluster_of(self, node_id: int) -> str | None:
        """Return the cluster id that a node has sent, if it isn't ours."""
        return self._clusters.get(node_id)

    def asked(self, request: Message, address: str, voters: VoterSet) -> LogEvent | None:
        """Note a request from ``address``; returns what to log."""
        if not isinstance(request, Asker):
            return None
        replica_id = _replica_id(request)
        if replica_id < 0:
            return None
        if request.cluster_id is not None and request.cluster_id != self._cluster_id:
            return self._of_another_cluster(replica_id, request.cluster_id[:MAX_CLUSTER_ID_CHARS], address)
        if self._clusters:
            self._clusters.pop(replica_id, None)
        if isinstance(request, FetchRequest):
            return self._fetches(replica_id, request, address, voters)
        if isinstance(request, VoteRequest | BeginQuorumEpochRequest):
            return self._acts_as_voter(replica_id, address, voters)
        return None

    def _of_another_cluster(self, replica_id: int, cluster_id: str, address: str) -> LogEvent | None:
        if self._clusters.get(replica_id) == cluster_id:
            return None
        if len(self._clusters) >= MAX_REPLICAS:
            self._clusters.clear()
        self._clusters[replica_id] = cluster_id
        return LogEvent(
            True,
            "node of another cluster refused",
            {
                "node_id": replica_id,
                "peer": address,
                "its_cluster_id": cluster_id,
                "cluster_id": self._cluster_id,
            },
        )

    def _acts_as_voter(self, replica_id: int, address: str, voters: VoterSet) -> LogEvent | None:
        if not voters.voters or voters.get(replica_id) is not None:
            self._strangers.discard(replica_id)
            return None
        if replica_id in self._strangers or len(self._strangers) >= MAX_REPLICAS:
            return None
        self._strangers.add(replica_id)
        return LogEvent(
            True,
            "unknown voter",
            {
                "node_id": replica_id,
                "peer": address,
                "voters": list(voters.ids),
                "advice": "it acts as a voter. If it was removed while it was away, it stops as soon as it"
                " fetches; if not, compare controller.quorum.voters, or the initial controllers of both"
                " folders",
            },
        )

    def _fetches(
        self, replica_id: int, request: FetchRequest, address: str, voters: VoterSet
    ) -> LogEvent | None:
        directory_id = _directory_id(request)
        seen = self._fetchers.get(replica_id)
        if seen is None or seen.directory_id != directory_id or seen.voters is not voters:
            if len(self._fetchers) >= MAX_REPLICAS:
                self._fetchers.clear()
            is_news = seen is None or seen.directory_id != directory_id
            self._fetchers[replica_id] = Fetcher(directory_id, address, voters)
            return _not_the_voter(ReplicaKey(replica_id, directory_id), address, voters) if is_news else None
        if seen.address == address:
            return None
        seen.returns = seen.returns + 1 if address == seen.address_before else 0
        seen.address_before, seen.address = seen.address, address
        if seen.returns != TWIN_RETURNS:
            return None
        return LogEvent(
            True,
            "two processes are the same replica",
            {
                "node_id": replica_id,
                "directory_id": str(directory_id),
                "peers": [seen.address_before, address],
                "advice": "one of them has a copied folder: stop it",
            },
        )


def _not_the_voter(key: ReplicaKey, address: str, voters: VoterSet) -> LogEvent | None:
    voter = voters.get(key.id)
    if voter is None or voter.key.matches(key):
        return None
    return LogEvent(
        True,
        "replica is not the voter with its id",
        {
            "node_id": key.id,
            "peer": address,
            "its_directory_id": str(key.directory_id),
            "voters_directory_id": str(voter.key.directory_id),
            "advice": "it is an observer and doesn't vote",
        },
    )


def _replica_id(request: Asker) -> int:
    match request:
        case FetchRequest():
            return max(request.replica_id, request.replica_state.replica_id)
        case FetchSnapshotRequest():
            return request.replica_id
        case VoteRequest():
            return _first(request.topics, "replica_id")
        case _:
            return _first(request.topics, "leader_id")


def _first(topics: Any, field: str) -> int:
    return next((getattr(each, field) for topic in topics for each in topic.partitions), -1)


def _directory_id(request: FetchRequest) -> Uuid:
    return next(
        (each.replica_directory_id for topic in request.topics for each in topic.partitions), Uuid.ZERO
    )
