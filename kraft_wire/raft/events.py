"""The events of the raft core. Each is passed to ``RaftCore.step`` with the time at which it happened."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum

import msgspec

from kraft_wire.log.batch import FramedRecords
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message


class Now(msgspec.Struct, frozen=True, gc=False):
    """The time of both clocks: ``monotonic_ms`` for deadlines, ``wall_ms`` for timestamps in batches."""

    monotonic_ms: int
    wall_ms: int


class Start(msgspec.Struct, frozen=True, gc=False):
    """The node has started: log and quorum-state are loaded. ``can_lead`` is as in ``CanLead``."""

    can_lead: bool = True


class Tick(msgspec.Struct, frozen=True, gc=False):
    """A deadline may have passed."""


class RpcRequest(msgspec.Struct, frozen=True):
    """A peer or an administrator sent a request, one of ``rpcs.RPCS``.

    ``token`` identifies the request in the effect that answers it. ``listener`` is the listener that received
    it.
    """

    token: Hashable
    request: Message
    version: int
    listener: str


class RequestAbandoned(msgspec.Struct, frozen=True):
    """The peer that sent the request has disconnected; a parked answer to it is dropped."""

    token: Hashable


class Failure(Enum):
    """The reason why a request got no answer."""

    LOST = "the connection was refused, reset or closed"
    """A sign that the peer's process has stopped or restarted."""

    TIMED_OUT = "no answer came in time"
    UNSUPPORTED = "the peer doesn't serve the API in the version that the request needs"
    UNSENDABLE = "the request can't be encoded in a version that the peer serves"
    GARBLED = "the bytes that came are no answer to the request"


class ResponseReceived(msgspec.Struct, frozen=True):
    """A peer answered a ``SendRequest``."""

    request_id: int
    response: Message


class RequestFailed(msgspec.Struct, frozen=True):
    """A ``SendRequest`` got no answer.

    The core checks time-outs itself. ``TIMED_OUT`` comes from outside only for requests that shared the
    connection of a request that the core cancelled.
    """

    request_id: int
    failure: Failure


class Propose(msgspec.Struct, frozen=True):
    """The leader's state machine asks to append these records as one batch.

    ``step`` raises NotLeader or BatchTooLarge if the batch is rejected; then nothing has changed.
    """

    records: FramedRecords


class UpgradeKraftVersion(msgspec.Struct, frozen=True, gc=False):
    """An administrator asks the leader to raise kraft.version.

    ``step`` raises NotLeader, or ChangeRefused if the quorum isn't ready; then nothing has changed.
    """

    level: int


class Flushed(msgspec.Struct, frozen=True, gc=False):
    """Every byte below ``end_offset`` (exclusive) is on stable storage.

    ``generation`` is the core's ``log_generation`` when the flush began. The log may have been truncated
    since and may have grown again, so the flush of an older generation is ignored.
    """

    end_offset: int
    generation: int = 0


class LogTruncated(msgspec.Struct, frozen=True, gc=False):
    """``TruncateLog`` is done.

    The log ends at ``end_offset``, which is lower than requested if the requested offset was within a batch.
    ``deleted_bytes`` were deleted from segments.
    """

    end_offset: int
    deleted_bytes: int


class SnapshotVerified(msgspec.Struct, frozen=True):
    """``VerifySnapshot`` succeeded: a fetched snapshot is complete and on stable storage under its temporary
    name.

    ``control_records`` are its KRaftVersionRecord and VotersRecord, if it has any.
    """

    snapshot_id: SnapshotId
    size_bytes: int
    last_contained_log_timestamp_ms: int
    control_records: Sequence[Message] = ()


class SnapshotRejected(msgspec.Struct, frozen=True):
    """``VerifySnapshot`` failed: the fetched file is not a snapshot and was deleted."""

    snapshot_id: SnapshotId
    reason: str


class SnapshotWritten(msgspec.Struct, frozen=True, gc=False):
    """A snapshot is complete on stable storage; ``size_bytes`` is the length of its file."""

    snapshot_id: SnapshotId
    size_bytes: int
    last_contained_log_timestamp_ms: int


class LogTrimmed(msgspec.Struct, frozen=True, gc=False):
    """``TrimLog`` is done: ``deleted_bytes`` of segments were deleted. Retention then continues."""

    deleted_bytes: int


class CanLead(msgspec.Struct, frozen=True, gc=False):
    """Whether the state machine could do a leader's work. It can't while it is unable to apply a committed
    record. Until it can again, the node begins no election, unless an able voter needs its records, and
    resigns if it is elected."""

    can_lead: bool


class KeepRecords(msgspec.Struct, frozen=True, gc=False):
    """Records from this offset on are wanted elsewhere, by exporters. They are kept beyond the limits of
    retention, up to limits of their own."""

    from_offset: int


class ShutDown(msgspec.Struct, frozen=True, gc=False):
    """The node stops gracefully: a leader hands over to another voter if there is one."""


Event = (
    Start
    | Tick
    | RpcRequest
    | RequestAbandoned
    | ResponseReceived
    | RequestFailed
    | Propose
    | UpgradeKraftVersion
    | Flushed
    | LogTruncated
    | SnapshotVerified
    | SnapshotRejected
    | SnapshotWritten
    | LogTrimmed
    | CanLead
    | KeepRecords
    | ShutDown
)
