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


class ReadyToStop(msgspec.Struct, frozen=True, gc=False):
    """After ``ShutDown``: everything is flushed and handed over, the node may stop."""


Effect = (
    AppendBatch
    | PersistElectionState
    | Reply
    | ReplyRecords
    | ReplySnapshotBytes
    | HighWatermarkAdvanced
    | BecameLeader
    | LostLeadership
    | TrimLog
    | DeleteSnapshot
    | ReadyToStop
)
