"""Who asks us as a replica, and is not who it should be: of another cluster, a voter's id with another
directory, a node that takes itself for a voter, or two processes that are the same replica.

No I/O and no clock. What was told once is told again when it has changed.
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
from kraft_wire.raft.voters import ReplicaKey, VoterSet
from kraft_wire.server.leader_watch import News

MAX_REPLICAS: Final = 10_000
TWIN_RETURNS: Final = 5
"""A replica that has reconnected doesn't come back to a connection it left; two that take turns do."""

Asker = FetchRequest | FetchSnapshotRequest | VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest
ASKED_API_KEYS: Final = frozenset(kind.API_KEY for kind in get_args(Asker))


class Fetcher(msgspec.Struct):
    """How a replica fetched last, and from where before that."""

    directory_id: Uuid
    address: str
    voters: VoterSet
    address_before: str = ""
    returns: int = 0


def disowned(key: ReplicaKey, voters: VoterSet) -> News | None:
    """What to tell of a node whose id is a voter's, while it isn't that voter."""
    voter = voters.get(key.id)
    if voter is None or voter.key.matches(key):
        return None
    return News(
        True,
        "this node only observes: its id is a voter's, its directory id isn't; give it that voter's folder,"
        " or format it anew with the voter's directory id in --initial-controllers",
        {"directory_id": str(key.directory_id), "voters_directory_id": str(voter.key.directory_id)},
    )


class ReplicaWatch:
    """Fed with every request of raft's that comes in."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._clusters: dict[int, str] = {}
        self._fetchers: dict[int, Fetcher] = {}
        self._strangers: set[int] = set()

    def other_cluster_of(self, node_id: int) -> str | None:
        """The cluster id that this node named, if it isn't ours."""
        return self._clusters.get(node_id)

    def asked(self, request: Message, address: str, voters: VoterSet) -> News | None:
        """Somebody asks, from ``address``."""
        if not isinstance(request, Asker):
            return None
        replica_id = _replica_id(request)
        if replica_id < 0:
            return None
        if request.cluster_id is not None and request.cluster_id != self._cluster_id:
            return self._of_another_cluster(replica_id, request.cluster_id, address)
        if self._clusters:
            self._clusters.pop(replica_id, None)
        if isinstance(request, FetchRequest):
            return self._fetches(replica_id, request, address, voters)
        if isinstance(request, VoteRequest | BeginQuorumEpochRequest):
            return self._acts_as_voter(replica_id, address, voters)
        return None

    def _of_another_cluster(self, replica_id: int, cluster_id: str, address: str) -> News | None:
        if self._clusters.get(replica_id) == cluster_id:
            return None
        if len(self._clusters) >= MAX_REPLICAS:
            self._clusters.clear()
        self._clusters[replica_id] = cluster_id
        return News(
            True,
            "refused a node of another cluster",
            {
                "node_id": replica_id,
                "peer": address,
                "its_cluster_id": cluster_id,
                "cluster_id": self._cluster_id,
            },
        )

    def _acts_as_voter(self, replica_id: int, address: str, voters: VoterSet) -> News | None:
        if not voters.voters or voters.get(replica_id) is not None:
            self._strangers.discard(replica_id)
            return None
        if replica_id in self._strangers or len(self._strangers) >= MAX_REPLICAS:
            return None
        self._strangers.add(replica_id)
        return News(
            True,
            "a node acts as a voter that isn't among the voters known here: compare controller.quorum.voters,"
            " or what the folders were formatted with",
            {"node_id": replica_id, "peer": address, "voters": list(voters.ids)},
        )

    def _fetches(self, replica_id: int, request: FetchRequest, address: str, voters: VoterSet) -> News | None:
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
        return News(
            True,
            "two processes fetch as the same replica: one of them has a copied folder; stop it",
            {
                "node_id": replica_id,
                "directory_id": str(directory_id),
                "peers": [seen.address_before, address],
            },
        )


def _not_the_voter(key: ReplicaKey, address: str, voters: VoterSet) -> News | None:
    voter = voters.get(key.id)
    if voter is None or voter.key.matches(key):
        return None
    return News(
        True,
        "a replica with a voter's id has another directory id: it only observes, and doesn't vote",
        {
            "node_id": key.id,
            "peer": address,
            "its_directory_id": str(key.directory_id),
            "voters_directory_id": str(voter.key.directory_id),
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
