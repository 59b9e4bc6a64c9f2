"""What the process of the strangers is told, and what it tells when it ends."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import ReplicaKey

ATTACKING: Final = "attacking"
"""What strangers print once all of them attack."""

Kind = Literal["outsiders", "claimants"]
"""Outsiders claim no voter's id and directory id together; claimants do."""


class Target(msgspec.Struct, frozen=True):
    """A controller that is attacked. The directory id is its text in base 64."""

    node_id: int
    directory_id: str
    port: int

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, Uuid.parse(self.directory_id))


class Plan(msgspec.Struct, frozen=True):
    """An attack. ``rate`` is the number of requests a second, to all targets together."""

    kind: Kind
    targets: list[Target]
    cluster_id: str
    rate: float
    seed: int


class Deeds(msgspec.Struct):
    """What strangers did. ``last_request_s`` is on the monotonic clock, which processes share (Linux)."""

    sent: int = 0
    answered: int = 0
    closed: int = 0
    granted: int = 0
    granted_pre_votes: int = 0
    visits: int = 0
    questions: int = 0
    last_request_s: float = 0.0

    def add(self, other: Deeds) -> None:
        """Add the deeds of another connection."""
        for name in ("sent", "answered", "closed", "granted", "granted_pre_votes", "visits", "questions"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.last_request_s = max(self.last_request_s, other.last_request_s)


def read_deeds(output: str) -> Deeds:
    """Return the deeds in the last line that the strangers have printed. Raises ValueError."""
    lines = output.splitlines() or [""]
    try:
        return msgspec.json.decode(lines[-1], type=Deeds)
    except msgspec.DecodeError as error:
        raise ValueError(
            f"the strangers' last line doesn't say what they did ({error}): {lines[-1]!r}; "
            "their log says why they ended"
        ) from None
