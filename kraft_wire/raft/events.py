"""What happens to the raft core: each event is fed to ``RaftCore.step`` with the time at which it
happened."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum

import msgspec

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message


class Now(msgspec.Struct, frozen=True, gc=False):
    """One reading of both clocks: ``monotonic_ms`` for deadlines, ``wall_ms`` for timestamps in batches."""

    monotonic_ms: int
    wall_ms: int


class Start(msgspec.Struct, frozen=True, gc=False):
    """The node is up: log and quorum-state are loaded."""


class Tick(msgspec.Struct, frozen=True, gc=False):
    """A deadline may have passed."""


class RpcRequest(msgspec.Struct, frozen=True):
    """A peer asks (Fetch, FetchSnapshot, Vote, BeginQuorumEpoch, EndQuorumEpoch, DescribeQuorum).

    ``token`` names the request in the effect that answers it; ``listener`` is where it came in.
    """

    token: Hashable
    request: Message
    version: int
    listener: str


class RequestAbandoned(msgspec.Struct, frozen=True):
    """The peer that sent the request is gone; a parked answer to it is dropped."""

    token: Hashable


class Failure(Enum):
    """Why a request of ours got no answer."""

    LOST = "the connection was refused, reset or closed"
    """Evidence that the peer's process is gone, or was."""

    TIMED_OUT = "nothing came in time"
    UNSUPPORTED = "the peer doesn't serve the API, or not in the version that this needs"
    UNSENDABLE = "it can't be written: what it should say has no place in it"
    GARBLED = "what came was no answer to it"


class ResponseReceived(msgspec.Struct, frozen=True):
    """A peer answered a ``SendRequest``."""

    request_id: int
    response: Message


class RequestFailed(msgspec.Struct, frozen=True):
    """A ``SendRequest`` gets no answer. Time-outs are the core's own business: ``TIMED_OUT`` comes from
    outside only for what shared the connection of a request that the core has cancelled."""

    request_id: int
    failure: Failure


class Propose(msgspec.Struct, frozen=True):
    """The leader's state machine wants these encoded records in the log, as one batch.

    The step raises NotLeader or BatchTooLarge to whoever proposes, and then has changed nothing.
    """

    values: tuple[bytes, ...]


class Flushed(msgspec.Struct, frozen=True, gc=False):
    """Every byte below ``end_offset`` (exclusive) is on stable storage.

    ``generation`` is the core's ``log_generation`` when the flush began. The log may have been cut since, and
    may have grown again: a flush of an older generation says nothing of what is there now.
    """

    end_offset: int
    generation: int = 0


class LogTruncated(msgspec.Struct, frozen=True, gc=False):
    """``TruncateLog`` is done: the log ends at ``end_offset``, which is lower than asked for where that was
    within a batch; so many bytes of segments are gone."""

    end_offset: int
    deleted_bytes: int


class SnapshotVerified(msgspec.Struct, frozen=True):
    """After ``VerifySnapshot``: a fetched snapshot is whole, and on stable storage under its temporary name.

    ``control_records`` are its KRaftVersionRecord and VotersRecord, where it has any.
    """

    snapshot_id: SnapshotId
    size_bytes: int
    last_contained_log_timestamp_ms: int
    control_records: Sequence[Message] = ()


class SnapshotRejected(msgspec.Struct, frozen=True):
    """After ``VerifySnapshot``: what was fetched isn't a snapshot, and is gone."""

    snapshot_id: SnapshotId
    reason: str


class SnapshotWritten(msgspec.Struct, frozen=True, gc=False):
    """A snapshot is complete on stable storage; ``size_bytes`` is its file's length."""

    snapshot_id: SnapshotId
    size_bytes: int
    last_contained_log_timestamp_ms: int


class LogTrimmed(msgspec.Struct, frozen=True, gc=False):
    """``TrimLog`` is done: so many bytes of segments are gone. Retention goes on with the rest."""

    deleted_bytes: int


class ShutDown(msgspec.Struct, frozen=True, gc=False):
    """The node stops gracefully: a leader hands over if there is anybody to hand over to."""


Event = (
    Start
    | Tick
    | RpcRequest
    | RequestAbandoned
    | ResponseReceived
    | RequestFailed
    | Propose
    | Flushed
    | LogTruncated
    | SnapshotVerified
    | SnapshotRejected
    | SnapshotWritten
    | LogTrimmed
    | ShutDown
)
