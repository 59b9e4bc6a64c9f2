"""What a follower knows while it follows (Kafka's FollowerState), beside its epoch's leader and deadline."""

from __future__ import annotations

import msgspec

from kraft_wire.log.snapshot import SnapshotId


class FetchingSnapshot(msgspec.Struct):
    """A snapshot that is fetched in pieces. ``position`` is how many bytes there are; all of them once
    ``is_complete``, and then it is being verified. By ``next_sign_ms`` leader and follower have to hear of
    each other then."""

    id: SnapshotId
    position: int = 0
    is_complete: bool = False
    next_sign_ms: int = 0


class Following(msgspec.Struct):
    """``has_fetched``: the leader has answered a Fetch in this epoch; it leads, and needs no successor.
    ``leader_is_gone``: it said that it stops, or its connection broke, and it hasn't answered since."""

    has_fetched: bool = False
    leader_is_gone: bool = False
    snapshot: FetchingSnapshot | None = None

    @property
    def wants_successor(self) -> bool:
        """Whether an election is welcome (KIP-996; that a broken connection is a reason is ours)."""
        return self.leader_is_gone or not self.has_fetched
