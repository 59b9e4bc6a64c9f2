"""Define what raft's effects are executed on: log, snapshots, quorum-state, peers.

The server implements these ports on files and connections, the simulator on its own disks and links, and the
tests in memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol

from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.raft.effects import AppendBatch, Notice
from kraft_wire.raft.membership.voters import Peer


class LogPort(Protocol):
    """The log of ``__cluster_metadata``."""

    def append(self, appends: Sequence[AppendBatch]) -> None:
        """Write the batches at the end of the log, all in one write, and begin a flush, which ends with
        ``Flushed``."""

    def read(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        """Return whole batches from ``offset`` on, below ``end_offset``: about ``max_bytes`` of them, at
        least one batch. They may not be flushed yet."""

    def truncate(self, end_offset: int) -> None:
        """Truncate the log durably, then report ``LogTruncated``."""

    def trim(self, start_offset: int) -> None:
        """Delete the segments that hold only records below ``start_offset``, then report ``LogTrimmed``."""

    def note_committed(self, offset: int) -> None:
        """Remember that everything below ``offset`` is committed."""

    def forget_loss(self) -> None:
        """Forget ``lost_below_offset``: no committed record is missing any more."""


class SnapshotPort(Protocol):
    """The complete snapshots, and the one that is being fetched."""

    def read(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        """Return up to ``max_bytes`` of the snapshot's file, from byte ``position`` on."""

    def append_bytes(self, snapshot_id: SnapshotId, position: int, data: bytes) -> None:
        """Append a piece of a fetched snapshot. The piece at position 0 starts the snapshot again."""

    def verify(self, snapshot_id: SnapshotId) -> None:
        """Check and flush a fetched snapshot, then report ``SnapshotVerified`` or ``SnapshotRejected``."""

    def install(self, snapshot_id: SnapshotId) -> None:
        """Name the verified snapshot and start an empty log at its end, durably."""

    def abandon(self, snapshot_id: SnapshotId) -> None:
        """Delete the pieces of a snapshot that won't be completed."""

    def delete(self, snapshot_id: SnapshotId) -> None:
        """Delete a complete snapshot."""


class ElectionPort(Protocol):
    """quorum-state."""

    def write_election_state(
        self, state: ElectionState, *, kraft_version: int, voter_ids: Iterable[int]
    ) -> None:
        """Write quorum-state; it is on stable storage when this returns."""


class PeerPort(Protocol):
    """Requests to other nodes."""

    def send(self, request_id: int, peer: Peer, request: Message) -> None:
        """Send a request. ``ResponseReceived`` or ``RequestFailed`` reports how it ended."""

    def cancel(self, request_id: int) -> None:
        """Close the connection that carries the request. Nothing is reported of it any more."""


class Ports(Protocol):
    """Everything that raft's effects are executed on."""

    @property
    def log(self) -> LogPort: ...
    @property
    def snapshots(self) -> SnapshotPort: ...
    @property
    def election(self) -> ElectionPort: ...
    @property
    def peers(self) -> PeerPort: ...

    def reply(self, token: Hashable, response: Message) -> None:
        """Answer the request that ``token`` names."""

    def reply_alike(self, tokens: Sequence[Hashable], response: Message) -> None:
        """Answer the requests that ``tokens`` name with the same response."""

    def notice(self, notice: Notice) -> None:
        """Take note of a fact about this node. Nothing has to be done for it to become true."""
