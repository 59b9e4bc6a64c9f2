"""Which voters are live, how many may fail, and what a change of the voters does to that. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kraft_wire.client.quorum_description import QuorumDescription, ReplicaDescription
from kraft_wire.raft.majority import majority_of
from kraft_wire.raft.membership.voters import ReplicaKey

LIVE_WITHIN_MS: Final = 3000
"""A voter that hasn't fetched for this long is gone: one and a half times the default of
controller.quorum.fetch.timeout.ms, after which a leader without a majority resigns (KAFKA-15489)."""


class VoterLiveness(msgspec.Struct, frozen=True):
    """Voters, and those among them that keep up with the leader or lead."""

    voters: tuple[ReplicaKey, ...]
    live: frozenset[ReplicaKey]

    @property
    def needed(self) -> int:
        return majority_of(len(self.voters))

    @property
    def may_fail(self) -> int:
        """How many more voters may fail; negative if there is no majority."""
        return len(self.live) - self.needed

    def with_voter(self, key: ReplicaKey) -> VoterLiveness:
        return VoterLiveness((*self.voters, key), self.live | {key})

    def without_voter(self, key: ReplicaKey) -> VoterLiveness:
        return VoterLiveness(tuple(voter for voter in self.voters if voter != key), self.live - {key})


def key_of(replica: ReplicaDescription) -> ReplicaKey:
    return ReplicaKey(replica.id, replica.directory_id)


def liveness_of(described: QuorumDescription) -> VoterLiveness:
    """Return the present voters."""
    live = (voter for voter in described.voters if fetches(described, voter))
    return VoterLiveness(tuple(map(key_of, described.voters)), frozenset(map(key_of, live)))


def fetches(described: QuorumDescription, replica: ReplicaDescription) -> bool:
    """Whether a replica leads, or has fetched not long ago, by the leader's clock."""
    leader = described.leader
    if leader is None or replica is leader:
        return replica is leader
    return replica.last_fetch_ms >= 0 and leader.last_fetch_ms - replica.last_fetch_ms <= LIVE_WITHIN_MS


def change_lines(cluster_id: str, before: VoterLiveness, after: VoterLiveness) -> Iterator[str]:
    """Describe a change."""
    yield f"Cluster       {cluster_id}"
    yield f"Voters now    {_text(before)}"
    yield f"Afterwards    {_text(after)}"


def _text(voters: VoterLiveness) -> str:
    if not voters.voters:
        return "none"
    live = len(voters.live)
    rest = _too_few_text(live) if voters.may_fail < 0 else may_fail_text(voters.may_fail)
    return f"{ids_text(voters.voters)}: the majority is {voters.needed}, {rest}"


def _too_few_text(live: int) -> str:
    match live:
        case 0:
            return "but none of them fetches"
        case 1:
            return "but only 1 of them fetches"
        case _:
            return f"but only {live} of them fetch"


def may_fail_text(number: int) -> str:
    """Say how many more voters may fail."""
    return f"{number or 'no'} more may fail"


def ids_text(keys: Collection[ReplicaKey]) -> str:
    return ", ".join(str(key.id) for key in sorted(keys)) or "none"


def directory_ids_text(keys: Iterable[ReplicaKey]) -> str:
    return ", ".join(str(key.directory_id) for key in keys)


def replicas_of(replicas: Sequence[ReplicaDescription], node_id: int) -> list[ReplicaDescription]:
    """Return the replicas with a node id: a node with a new disk has another directory id."""
    return [replica for replica in replicas if replica.id == node_id]
