"""Define the effects that the raft core returns. The core's owner executes them in order.

The order is the safety rule: ``PersistElectionState`` is on stable storage before any later effect is
executed. After ``AppendBatch`` the owner flushes the log and reports ``Flushed``; before that, no record
counts as replicated.
"""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraft_wire.raft.membership.change import EntryRefusal
from kraft_wire.raft.membership.voters import Peer, ReplicaKey, VoterSet
from kraft_wire.raft.roles import Role
from kraft_wire.wire.address import Address


class AppendBatch(msgspec.Struct, frozen=True):
    """Append one encoded record batch, byte for byte, to the log."""

    data: bytes
    base_offset: int
    last_offset: int
    epoch: int


class PersistElectionState(msgspec.Struct, frozen=True):
    """Write and flush quorum-state before any later effect is executed.

    ``kraft_version`` decides the file's version; only version 0 of the file contains ``voter_ids``.
    """

    state: ElectionState
    kraft_version: int = 0
    voter_ids: tuple[int, ...] = ()


class Reply(msgspec.Struct, frozen=True):
    """Answer a request."""

    token: Hashable
    response: Message


class ReplyAlike(msgspec.Struct, frozen=True):
    """Answer several requests with the same response."""

    tokens: tuple[Hashable, ...]
    response: Message


class SendRequest(msgspec.Struct, frozen=True):
    """Send a request to a peer. The result comes back as ``ResponseReceived`` or ``RequestFailed`` with this
    id.

    The sender chooses the highest version that both sides support and that can hold the request's fields: a
    Vote with PreVote needs version 2. Fetch and FetchSnapshot have a connection of their own because a peer
    may answer them late. If a connection breaks, the requests in flight on it fail at once with ``LOST``.
    """

    request_id: int
    peer: Peer
    request: Message


class CancelRequest(msgspec.Struct, frozen=True, gc=False):
    """Close the connection that carries this request: the response is late, or not needed any more."""

    request_id: int


class TruncateLog(msgspec.Struct, frozen=True, gc=False):
    """Truncate the log to ``end_offset``, or to the start of the batch that contains it, and report
    ``LogTruncated``. The truncation is on stable storage before any later effect is executed."""

    end_offset: int


class AppendSnapshotBytes(msgspec.Struct, frozen=True):
    """Append the next piece of a fetched snapshot. The piece at position 0 starts the snapshot again."""

    snapshot_id: SnapshotId
    position: int
    data: bytes


class VerifySnapshot(msgspec.Struct, frozen=True, gc=False):
    """Check every batch of a completely fetched snapshot, flush it, and report ``SnapshotVerified`` or
    ``SnapshotRejected``. This may take long; later effects don't wait for it."""

    snapshot_id: SnapshotId


class InstallSnapshot(msgspec.Struct, frozen=True, gc=False):
    """Rename the verified snapshot to its final name and start an empty log at its end offset, on stable
    storage before any later effect is executed. The state machine starts again from the snapshot."""

    snapshot_id: SnapshotId


class AbandonSnapshot(msgspec.Struct, frozen=True, gc=False):
    """Delete the pieces of a snapshot that won't be completed."""

    snapshot_id: SnapshotId


class ReplyRecords(msgspec.Struct, frozen=True):
    """Answer one Fetch or several with whole batches from ``offset`` on, below ``end_offset``: about
    ``max_bytes`` of them, at least one batch. They go into ``records`` of the response's only partition.

    They may not be flushed yet: a follower may hold more than the leader has on stable storage.
    """

    tokens: tuple[Hashable, ...]
    response: FetchResponse
    offset: int
    end_offset: int
    max_bytes: int

    def fill(self, records: bytes) -> FetchResponse:
        """Put the records into the response and return it."""
        self.response.responses[0].partitions[0].records = records
        return self.response


class ReplySnapshotBytes(msgspec.Struct, frozen=True):
    """Answer a FetchSnapshot with up to ``max_bytes`` of the snapshot's file from ``position`` on.

    The bytes go into ``unaligned_records`` of the response's only partition.
    """

    token: Hashable
    response: FetchSnapshotResponse
    snapshot_id: SnapshotId
    position: int
    max_bytes: int

    def fill(self, data: bytes) -> FetchSnapshotResponse:
        """Put the bytes into the response and return it."""
        self.response.topics[0].partitions[0].unaligned_records = data
        return self.response


class HighWatermarkAdvanced(msgspec.Struct, frozen=True, gc=False):
    """The high watermark rose: everything below ``offset`` is committed."""

    offset: int


class RoleChanged(msgspec.Struct, frozen=True):
    """The node's role, epoch or leader has changed. ``leader_id`` is None while, as far as it knows, nobody
    leads (``roles.live_leader_id``)."""

    role: Role
    epoch: int
    leader_id: int | None


class BadFetch(msgspec.Struct, frozen=True):
    """The leader sent records that cannot be its log. None of them was appended. An operator should know."""

    leader_id: int
    offset: int
    reason: str


class LeaderLacksCommitted(msgspec.Struct, frozen=True, gc=False):
    """The leader of ``epoch`` wants this log truncated to ``end_offset``, but everything below
    ``committed_offset`` is committed. The log was kept and that leader isn't followed. An operator has to
    act."""

    leader_id: int
    epoch: int
    end_offset: int
    committed_offset: int


class EpochsUsedUp(msgspec.Struct, frozen=True, gc=False):
    """No epoch is left in which this node could be a candidate. It still follows and votes."""

    epoch: int


class VotersChanged(msgspec.Struct, frozen=True):
    """Other voters count from now on, committed or not. ``offset`` is that of their record, None for static
    voters: the record of the others was truncated."""

    voters: VoterSet
    offset: int | None


class HigherEpochRefused(msgspec.Struct, frozen=True):
    """A request in the name of ``caller`` has a higher epoch, and was not believed. Our epoch stays."""

    caller: ReplicaKey
    epoch: int
    own_epoch: int


class JoinRefused(msgspec.Struct, frozen=True):
    """The leader refused to make this node a voter (controller.quorum.auto.join.enable). An operator has to
    act."""

    leader_id: int
    error: ErrorCode
    text: str


class UpdateRefused(msgspec.Struct, frozen=True):
    """The leader refused this voter's own description: its endpoints, or its levels of kraft.version. An
    operator has to act. The answer has no text."""

    leader_id: int
    error: ErrorCode


class VoterEntryRefused(msgspec.Struct, frozen=True):
    """This leader refused to change a voter's entry, in whose name somebody asked for that. The addresses are
    the voter's present one and the wanted one."""

    voter: ReplicaKey
    present: Address | None
    wanted: Address | None
    reason: EntryRefusal


class BecameLeader(msgspec.Struct, frozen=True, gc=False):
    """This node leads ``epoch``, whose first record is at ``epoch_start_offset``."""

    epoch: int
    epoch_start_offset: int


class LostLeadership(msgspec.Struct, frozen=True, gc=False):
    """This node no longer leads; uncommitted records may never be committed. ``leader_id`` is None while no
    leader is known."""

    epoch: int
    leader_id: int | None


class TrimLog(msgspec.Struct, frozen=True, gc=False):
    """Delete the segments that contain only records below ``start_offset``, which a snapshot covers. Report
    ``LogTrimmed`` with their size, even if there were none."""

    start_offset: int


class DeleteSnapshot(msgspec.Struct, frozen=True, gc=False):
    """Delete a snapshot that is superseded and past its retention, or below the log start offset. It is not
    offered to replicas any more; a replica that is still reading it may finish."""

    snapshot_id: SnapshotId


class LossMadeGood(msgspec.Struct, frozen=True, gc=False):
    """Forget ``lost_below_offset``: the log again contains every committed record that damage had removed, so
    this node may vote."""


class ReadyToStop(msgspec.Struct, frozen=True, gc=False):
    """After ``ShutDown``: the log is flushed and leadership is handed over. The node may stop."""


Notice = (
    RoleChanged
    | BecameLeader
    | LostLeadership
    | BadFetch
    | LeaderLacksCommitted
    | EpochsUsedUp
    | HigherEpochRefused
    | JoinRefused
    | UpdateRefused
    | VoterEntryRefused
    | VotersChanged
    | ReadyToStop
)
"""Facts about this node. They are reported; nothing has to be done for them to become true."""

Effect = (
    AppendBatch
    | PersistElectionState
    | TruncateLog
    | SendRequest
    | CancelRequest
    | Reply
    | ReplyAlike
    | ReplyRecords
    | ReplySnapshotBytes
    | HighWatermarkAdvanced
    | AppendSnapshotBytes
    | VerifySnapshot
    | InstallSnapshot
    | AbandonSnapshot
    | LossMadeGood
    | TrimLog
    | DeleteSnapshot
    | Notice
)
