"""What happens to the raft core: each event is fed to ``RaftCore.step`` with the time at which it
happened."""

from __future__ import annotations

from collections.abc import Hashable

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


class Propose(msgspec.Struct, frozen=True):
    """The leader's state machine wants these encoded records in the log, as one batch.

    The step raises NotLeader or BatchTooLarge to whoever proposes, and then has changed nothing.
    """

    values: tuple[bytes, ...]


class Flushed(msgspec.Struct, frozen=True, gc=False):
    """Every byte below ``end_offset`` (exclusive) is on stable storage."""

    end_offset: int


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
    Start | Tick | RpcRequest | RequestAbandoned | Propose | Flushed | SnapshotWritten | LogTrimmed | ShutDown
)
