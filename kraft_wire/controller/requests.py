"""What reaches a node from outside raft, and what it wants done beyond raft's own effects."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec

from kraft_wire.controller.consumer_fetch import ConsumerRead, LogView
from kraft_wire.controller.context import Principal, VersionedRecord
from kraft_wire.log.batch import Batch
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.list_offsets_request import ListOffsetsRequest


class Peer(msgspec.Struct, frozen=True):
    """Who is at the other end of a connection, and which listener (upper case) it came through."""

    listener: str
    address: str = ""
    client_id: str = ""
    principal: Principal = Principal()


class ApiRequest(msgspec.Struct, frozen=True):
    """A decoded request; ``token`` names it in the effect that answers it."""

    token: Hashable
    api_key: int
    version: int
    request: Message
    peer: Peer


class CommittedBatches(msgspec.Struct, frozen=True):
    """What ``ReadCommitted`` asked for: batches in offset order, the last one ending at ``end_offset``."""

    batches: Sequence[Batch]
    end_offset: int


class ReadCommitted(msgspec.Struct, frozen=True, gc=False):
    """Read the batches in [start_offset, end_offset) and feed them back as ``CommittedBatches``, in as many
    events as convenient."""

    start_offset: int
    end_offset: int


class StateLoaded(msgspec.Struct, frozen=True):
    """After ``InstallSnapshot``: the state that the snapshot holds."""

    snapshot_id: SnapshotId
    metadata: MetadataState


class ReplyCommitted(msgspec.Struct, frozen=True):
    """Answer a consumer's Fetch with committed batches: see ``ConsumerRead``."""

    token: Hashable
    read: ConsumerRead


class FindTimestamps(msgspec.Struct, frozen=True):
    """Look ``timestamps`` up in the log, then answer with ``consumer_list_offsets.respond``."""

    token: Hashable
    request: ListOffsetsRequest
    version: int
    view: LogView
    timestamps: tuple[int, ...]


class WriteSnapshot(msgspec.Struct, frozen=True):
    """Make a snapshot of everything below ``snapshot_id.end_offset``, away from the event loop."""

    snapshot_id: SnapshotId


class Activated(msgspec.Struct, frozen=True, gc=False):
    """This node is the active controller of ``epoch`` and processes writes from now on, ``after_ms`` after
    raft made it the leader."""

    epoch: int
    after_ms: int


class FirstWrite(msgspec.Struct, frozen=True, gc=False):
    """The first of what this node wrote as the active controller of ``epoch`` is committed, ``after_ms``
    after raft made it the leader."""

    epoch: int
    after_ms: int


class Decided(msgspec.Struct, frozen=True):
    """These records were appended and applied. They may still be lost with this node's leadership."""

    records: Sequence[VersionedRecord]


class Refused(msgspec.Struct, frozen=True):
    """A request failed as a whole, and was answered with this."""

    api_key: int
    peer: Peer
    code: ErrorCode
    reason: str


class HandlerFailed(msgspec.Struct, frozen=True):
    """A handler broke on a request: a defect of ours. Nothing was written; the peer got
    UNKNOWN_SERVER_ERROR.
    """

    api_key: int
    version: int
    error: Exception


class SnapshotFailed(msgspec.Struct, frozen=True):
    """The snapshot that ``WriteSnapshot`` asked for was not made."""

    snapshot_id: SnapshotId
