"""What the raft core wants done. Whoever owns the core executes effects in their order.

Ordering is the safety rule: ``PersistElectionState`` is on stable storage before any later effect is
executed. After a run of ``AppendBatch`` the owner flushes the log and reports ``Flushed``; nothing counts
before that.
"""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.raft.roles import Role
from kraft_wire.raft.voters import Peer


class AppendBatch(msgspec.Struct, frozen=True):
    """Append one encoded record batch, byte for byte, at the end of the log."""

    data: bytes
    base_offset: int
    last_offset: int
    epoch: int


class PersistElectionState(msgspec.Struct, frozen=True):
    """Write and flush quorum-state before anything after this.

    ``kraft_version`` decides the file's version; ``voter_ids`` stand in version 0 of it.
    """

    state: ElectionState
    kraft_version: int = 0
    voter_ids: tuple[int, ...] = ()


class Reply(msgspec.Struct, frozen=True):
    """Answer a request."""

    token: Hashable
    response: Message


class SendRequest(msgspec.Struct, frozen=True):
    """Ask a peer. The answer comes back as ``ResponseReceived`` or ``RequestFailed`` with this id.

    Whoever sends it chooses the highest version that both sides know, and that can say what the request says:
    a Vote with PreVote needs version 2. Fetch and FetchSnapshot, which a peer may answer late, travel on a
    connection of their own. A connection that is gone fails what is in flight on it with ``LOST``, at once.
    """

    request_id: int
    peer: Peer
    request: Message


class CancelRequest(msgspec.Struct, frozen=True, gc=False):
    """No answer came in time, or none is wanted any more: close the connection that carries this request."""

    request_id: int


class TruncateLog(msgspec.Struct, frozen=True, gc=False):
    """Cut the log at ``end_offset``, or at the beginning of the batch that holds it, and report
    ``LogTruncated``. What remains, and that it ends there, is on stable storage before any later effect is
    executed."""

    end_offset: int


class AppendSnapshotBytes(msgspec.Struct, frozen=True):
    """The next piece of a snapshot that is fetched; the piece at position 0 begins it anew."""

    snapshot_id: SnapshotId
    position: int
    data: bytes


class VerifySnapshot(msgspec.Struct, frozen=True, gc=False):
    """All pieces are there: check every batch, flush, and report ``SnapshotVerified`` or
    ``SnapshotRejected``. May take its time."""

    snapshot_id: SnapshotId


class InstallSnapshot(msgspec.Struct, frozen=True, gc=False):
    """Give the verified snapshot its name and begin the log anew, empty, at its end; on stable storage before
    any later effect is executed. The state machine starts over from it."""

    snapshot_id: SnapshotId


class AbandonSnapshot(msgspec.Struct, frozen=True, gc=False):
    """Forget the pieces of a snapshot that won't be completed."""

    snapshot_id: SnapshotId


class ReplyRecords(msgspec.Struct, frozen=True):
    """Answer a Fetch with whole batches from ``offset`` on, below ``end_offset``, about ``max_bytes`` of
    them, at least one batch. The bytes go into the response's only partition's ``records``.

    They may not be flushed yet: a follower may hold more than the leader has on stable storage.
    """

    token: Hashable
    response: Message
    offset: int
    end_offset: int
    max_bytes: int


class ReplySnapshotBytes(msgspec.Struct, frozen=True):
    """Answer a FetchSnapshot with up to ``max_bytes`` of the snapshot's file from ``position`` on.

    The bytes go into the response's only partition's ``unaligned_records``.
    """

    token: Hashable
    response: Message
    snapshot_id: SnapshotId
    position: int
    max_bytes: int


class HighWatermarkAdvanced(msgspec.Struct, frozen=True, gc=False):
    """Everything below ``offset`` is committed."""

    offset: int


class RoleChanged(msgspec.Struct, frozen=True):
    """The node's role, epoch or leader is another. ``leader_id`` is None while nobody is known to lead."""

    role: Role
    epoch: int
    leader_id: int | None


class BadFetch(msgspec.Struct, frozen=True):
    """The leader sent what can't be its log: nothing of it was appended. Worth an operator's attention."""

    leader_id: int
    offset: int
    reason: str


class LeaderLacksCommitted(msgspec.Struct, frozen=True, gc=False):
    """The leader of ``epoch`` has our log end at ``end_offset``, and all below ``committed_offset`` is
    committed. The log was kept, and that leader isn't followed. An operator has to see to it."""

    leader_id: int
    epoch: int
    end_offset: int
    committed_offset: int


class EpochsUsedUp(msgspec.Struct, frozen=True, gc=False):
    """No epoch is left in which this node could stand. It still follows and votes."""

    epoch: int


class BecameLeader(msgspec.Struct, frozen=True, gc=False):
    """This node leads ``epoch``, whose first record is at ``epoch_start_offset``."""

    epoch: int
    epoch_start_offset: int


class LostLeadership(msgspec.Struct, frozen=True, gc=False):
    """This node no longer leads; uncommitted records may never be committed."""

    epoch: int
    leader_id: int


class TrimLog(msgspec.Struct, frozen=True, gc=False):
    """Records below ``start_offset`` are covered by a snapshot: delete the segments that hold nothing else,
    and report ``LogTrimmed`` with their size, also when there were none."""

    start_offset: int


class DeleteSnapshot(msgspec.Struct, frozen=True, gc=False):
    """This snapshot is superseded and past its retention, or below the log's start. Nobody is told of it any
    longer; whoever is still reading it may finish."""

    snapshot_id: SnapshotId


class LossMadeGood(msgspec.Struct, frozen=True, gc=False):
    """What was cut out of the log isn't missed any more: forget ``lost_below_offset``. This node votes."""


class ReadyToStop(msgspec.Struct, frozen=True, gc=False):
    """After ``ShutDown``: everything is flushed and handed over, the node may stop."""


Effect = (
    AppendBatch
    | PersistElectionState
    | TruncateLog
    | SendRequest
    | CancelRequest
    | Reply
    | ReplyRecords
    | ReplySnapshotBytes
    | HighWatermarkAdvanced
    | RoleChanged
    | BecameLeader
    | LostLeadership
    | BadFetch
    | LeaderLacksCommitted
    | EpochsUsedUp
    | AppendSnapshotBytes
    | VerifySnapshot
    | InstallSnapshot
    | AbandonSnapshot
    | LossMadeGood
    | TrimLog
    | DeleteSnapshot
    | ReadyToStop
)
