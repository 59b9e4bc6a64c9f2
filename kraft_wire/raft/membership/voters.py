"""Replica keys, endpoints and the voter set (KIP-853; Kafka's VoterSet, ReplicaKey, Endpoints).

All of these are values. The offset of the log decides which voter set is in effect: see ``voter_history``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from kraft_wire.protocol.messages import voters_record
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.uuid import Uuid


class ReplicaKey(NamedTuple):
    """A replica: its node id and the id of its metadata directory, zero if that is unknown."""

    id: int
    directory_id: Uuid = Uuid.ZERO

    def matches(self, other: ReplicaKey) -> bool:
        """Whether ``other`` is this replica. An unknown directory id in this key matches any."""
        return self.id == other.id and (not self.directory_id or self.directory_id == other.directory_id)

    def __str__(self) -> str:
        return f"{self.id} (directory {self.directory_id})" if self.directory_id else str(self.id)


class Endpoint(NamedTuple):
    """An endpoint of a node: the listener's name in upper case, host and port."""

    listener: str
    host: str
    port: int


Endpoints = tuple[Endpoint, ...]
"""A node's endpoints, one per listener, sorted by listener so that equal sets are equal values."""


def endpoints_of(entries: Iterable[tuple[str, str, int]]) -> Endpoints:
    """Return endpoints from (listener, host, port). Listener names are converted to upper case, as Kafka
    does."""
    by_listener = {name.upper(): Endpoint(name.upper(), host, port) for name, host, port in entries}
    return tuple(by_listener[name] for name in sorted(by_listener))


def endpoint_at(endpoints: Endpoints, listener: str) -> Endpoint | None:
    """Return the endpoint of a listener, None if there is none."""
    name = listener.upper()
    return next((endpoint for endpoint in endpoints if endpoint.listener == name), None)


class Peer(NamedTuple):
    """A node that requests can be sent to.

    ``id`` is the node's id. An id below -1 stands for an address of controller.quorum.bootstrap.servers,
    which can be any node.
    """

    id: int
    host: str
    port: int


def peer_at(node_id: int, endpoints: Endpoints, listener: str) -> Peer | None:
    """Return a node's address on this listener; on any other if it has none of that name."""
    endpoint = endpoint_at(endpoints, listener) or next(iter(endpoints), None)
    return None if endpoint is None else Peer(node_id, endpoint.host, endpoint.port)


class VersionRange(NamedTuple):
    """The levels of kraft.version that a node supports, both ends included."""

    min_version: int
    max_version: int


KRAFT_VERSION_RANGE = VersionRange(0, 1)
"""The levels that this implementation supports: static voters (0) and voters in the log (1)."""


class Voter(msgspec.Struct, frozen=True, gc=False):
    """A voter, its endpoints, and the levels of kraft.version that it supports."""

    key: ReplicaKey
    endpoints: Endpoints = ()
    kraft_versions: VersionRange = KRAFT_VERSION_RANGE


class VoterSet(msgspec.Struct, frozen=True, gc=False):
    """The voters, ascending by id, with at most one per id. Use the functions below to build it."""

    voters: tuple[Voter, ...] = ()

    def __len__(self) -> int:
        return len(self.voters)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(voter.key.id for voter in self.voters)

    def get(self, node_id: int) -> Voter | None:
        """Return the voter of this id, None if there is none."""
        for voter in self.voters:
            if voter.key.id == node_id:
                return voter
        return None

    def is_voter(self, key: ReplicaKey) -> bool:
        """Whether ``key`` is a voter: id and directory id must match. Static voters have no directory id; for
        them the id is enough."""
        voter = self.get(key.id)
        return voter is not None and voter.key.matches(key)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        """Whether ``key`` is the only voter."""
        return len(self.voters) == 1 and self.is_voter(key)

    def endpoints_of(self, node_id: int) -> Endpoints:
        """Return a voter's endpoints; empty for a node that isn't a voter."""
        voter = self.get(node_id)
        return () if voter is None else voter.endpoints

    def needs_update(self, voter: Voter) -> bool:
        """Whether this replica is in the set with other endpoints or another version range."""
        known = self.get(voter.key.id)
        return known is not None and known.key.matches(voter.key) and known != voter

    def with_updated(self, voter: Voter) -> VoterSet:
        """Return the set with a voter's entry replaced. Raises KeyError for a replica that isn't in it."""
        if not self.is_voter(voter.key):
            raise KeyError(voter.key)
        return voter_set([voter if known.key.id == voter.key.id else known for known in self.voters])

    def with_learned_key(self, voter: Voter) -> VoterSet:
        """Return the set with the entry of this node id replaced, its directory id included: static voters
        are known by their id alone. Raises KeyError for an id that isn't in it."""
        if self.get(voter.key.id) is None:
            raise KeyError(voter.key)
        return voter_set([*self.voters, voter])

    def with_added(self, voter: Voter) -> VoterSet:
        """Return the set with one more voter. Raises ValueError if it has that node id, with whatever
        directory."""
        if self.get(voter.key.id) is not None:
            raise ValueError(f"node {voter.key.id} is a voter")
        return voter_set([*self.voters, voter])

    def without(self, key: ReplicaKey) -> VoterSet:
        """Return the set without one voter, whose directory id must be the known one.

        Raises KeyError for a replica that isn't in it, and ValueError for the last voter.
        """
        voter = self.get(key.id)
        if voter is None or voter.key != key:
            raise KeyError(key)
        if len(self.voters) == 1:
            raise ValueError(f"{key} is the last voter")
        return voter_set(known for known in self.voters if known.key != key)

    def to_record(self) -> VotersRecord:
        """Return the control record with this voter set."""
        return VotersRecord(
            voters=[
                voters_record.Voter(
                    voter_id=voter.key.id,
                    voter_directory_id=voter.key.directory_id,
                    endpoints=[
                        voters_record.Endpoint(name=endpoint.listener, host=endpoint.host, port=endpoint.port)
                        for endpoint in voter.endpoints
                    ],
                    kraft_version_feature=voters_record.KRaftVersionFeature(
                        min_supported_version=voter.kraft_versions.min_version,
                        max_supported_version=voter.kraft_versions.max_version,
                    ),
                )
                for voter in self.voters
            ]
        )

    def __str__(self) -> str:
        return ", ".join(str(voter.key) for voter in self.voters) or "none"


def voter_set(voters: Iterable[Voter]) -> VoterSet:
    """Return a voter set. Of two voters with the same id the later one is used."""
    by_id = {voter.key.id: voter for voter in voters}
    return VoterSet(tuple(by_id[node_id] for node_id in sorted(by_id)))


def static_voters(listener: str, addresses: Mapping[int, tuple[str, int]]) -> VoterSet:
    """Return the voters of controller.quorum.voters from id to (host, port), on the first controller
    listener.

    Their directory ids are unknown, and they are assumed to support only kraft.version 0.
    """
    return voter_set(
        Voter(ReplicaKey(node_id), endpoints_of([(listener, host, port)]), VersionRange(0, 0))
        for node_id, (host, port) in addresses.items()
    )


def voters_of_record(record: VotersRecord) -> VoterSet:
    """Return the voter set of a control record."""
    return voter_set(
        Voter(
            ReplicaKey(voter.voter_id, voter.voter_directory_id),
            endpoints_of((endpoint.name, endpoint.host, endpoint.port) for endpoint in voter.endpoints),
            VersionRange(
                voter.kraft_version_feature.min_supported_version,
                voter.kraft_version_feature.max_supported_version,
            ),
        )
        for voter in record.voters
    )
