"""Voters at other addresses than the log says (KIP-1347)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kraft_wire.raft.membership.voters import Endpoint
from kraft_wire.raft.recovery.evidence import KnownVoter
from kraft_wire.raft.recovery.plan import RecoveryError
from kraft_wire.raft.recovery.static_quorum import named


class NewAddress(msgspec.Struct, frozen=True):
    """The host and port that a voter moved to; ``listener`` is None if it has only one."""

    node_id: int
    host: str
    port: int
    listener: str | None = None


def moved_voters(voters: Sequence[KnownVoter], moved: Mapping[int, NewAddress]) -> tuple[KnownVoter, ...]:
    """Return the voters at their new addresses. Raises RecoveryError."""
    check_moved(moved, [voter.id for voter in voters])
    there = tuple(_at(voter, moved[voter.id]) if voter.id in moved else voter for voter in voters)
    check_distinct({voter.id: voter.endpoints for voter in there})
    return there


def check_distinct(points: Mapping[int, Sequence[Endpoint]]) -> None:
    """Raise RecoveryError for two voters at one address. ``points`` are the addresses by voter."""
    owners: dict[tuple[str, int], int] = {}
    for voter_id, endpoints in points.items():
        for point in endpoints:
            owner = owners.setdefault((point.host, point.port), voter_id)
            if owner != voter_id:
                raise RecoveryError(
                    f"voters {owner} and {voter_id} would both be at {point.host}:{point.port}: give each its"
                    " own address with --endpoints"
                )


def check_moved(moved: Mapping[int, NewAddress], ids: Sequence[int]) -> None:
    """Raise RecoveryError for a new address of a node that isn't among the voters."""
    unknown = sorted(set(moved).difference(ids))
    if unknown:
        raise RecoveryError(f"--endpoints names node {unknown[0]}, and the voters are {named(ids)}")


def _at(voter: KnownVoter, address: NewAddress) -> KnownVoter:
    names = [endpoint.listener for endpoint in voter.endpoints]
    listener = names[0] if address.listener is None and len(names) == 1 else address.listener
    if listener not in names:
        example = f"{voter.id}@{names[0]}://HOST:PORT"
        raise RecoveryError(
            f"voter {voter.id} has the listeners {', '.join(names)}: give --endpoints {example}"
        )
    new = Endpoint(listener, address.host, address.port)
    endpoints = tuple(new if point.listener == listener else point for point in voter.endpoints)
    return msgspec.structs.replace(voter, endpoints=endpoints)
