"""Define the effects that a node returns in addition to raft's."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import msgspec

from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.work import WorkKey
from kraft_wire.controller.node.events import Caller
from kraft_wire.controller.reading.consumer_fetch import ConsumerRead
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.raft import effects as raft_effects


class ReadCommitted(msgspec.Struct, frozen=True, gc=False):
    """Read the batches in [start_offset, end_offset) and report them as ``CommittedBatches``, in one or more
    events."""

    start_offset: int
    end_offset: int


class ReplyCommitted(msgspec.Struct, frozen=True):
    """Answer a consumer's Fetch with committed batches: see ``ConsumerRead``."""

    token: Hashable
    read: ConsumerRead

    def fill(self, records: bytes) -> FetchResponse:
        """Put the records into the response and return it."""
        self.read.records_of.records = records
        return self.read.response


class FindTimestamps(msgspec.Struct, frozen=True):
    """Look ``timestamps`` up in the log below ``end_offset``."""

    timestamps: tuple[int, ...]
    end_offset: int


class WriteSnapshot(msgspec.Struct, frozen=True):
    """Write a snapshot of everything below ``snapshot_id.end_offset``, outside the event loop. Unless it
    ``is_urgent``, other work on this machine comes first."""

    snapshot_id: SnapshotId
    is_urgent: bool


class MakeDigest(msgspec.Struct, frozen=True):
    """Make a digest of this metadata, as it is below ``end_offset``, and report ``DigestMade`` or
    ``DigestFailed``.

    The metadata may change after this step. What is applied already and isn't below ``end_offset`` can be
    undone: in a copy.
    """

    metadata: MetadataState
    end_offset: int


class FreeState(msgspec.Struct, frozen=True):
    """Free this metadata in many short steps. The node doesn't use it any more."""

    metadata: MetadataState


class SetLogLevels(msgspec.Struct, frozen=True):
    """Give loggers of this process these levels, in Kafka's words; None unsets a level."""

    levels: Mapping[str, str | None]


class Activated(msgspec.Struct, frozen=True, gc=False):
    """This node became the active controller of ``epoch``, ``after_ms`` after raft made it the leader. It
    processes writes from now on."""

    epoch: int
    after_ms: int


class ReplayStopped(msgspec.Struct, frozen=True):
    """The committed record at ``offset`` is one of a newer release, so this node can't apply it. It goes on
    voting and replicating, but doesn't lead. ``reason`` names what isn't known."""

    offset: int
    reason: str


class ReplayContinues(msgspec.Struct, frozen=True, gc=False):
    """The state of a snapshot that covers the unknown record is loaded, so that the node applies records
    again. ``offset`` is the snapshot's end."""

    offset: int


class FirstWrite(msgspec.Struct, frozen=True, gc=False):
    """The first records that this node wrote as the active controller of ``epoch`` are committed,
    ``after_ms`` after raft made it the leader."""

    epoch: int
    after_ms: int


class RecordsAppended(msgspec.Struct, frozen=True):
    """These records were appended and applied. They may still be lost if this node loses leadership.

    ``request`` is the request that they were decided for and ``response`` its response; both are None for a
    decision of the controller itself.
    """

    records: Sequence[VersionedRecord]
    request: Message | None = None
    response: Message | None = None


class RequestRefused(msgspec.Struct, frozen=True):
    """A whole request failed. It was answered with this error."""

    api_key: int
    caller: Caller
    code: ErrorCode
    reason: str


class HandlerFailed(msgspec.Struct, frozen=True):
    """A handler failed with an internal error. Nothing was written; the caller got UNKNOWN_SERVER_ERROR."""

    api_key: int
    version: int
    error: Exception


class WorkFailed(msgspec.Struct, frozen=True):
    """A work failed with an internal error. What it decided before stays; the rest is dropped."""

    key: WorkKey
    error: Exception


class TaskFailed(msgspec.Struct, frozen=True):
    """A run of a periodic task failed with an internal error. Nothing was written; it runs again when it is
    due."""

    task: str
    error: Exception


NodeNotice = (
    raft_effects.Notice
    | Activated
    | FirstWrite
    | ReplayStopped
    | ReplayContinues
    | RecordsAppended
    | RequestRefused
    | HandlerFailed
    | WorkFailed
    | TaskFailed
)
"""Facts about this node. They are reported; nothing has to be done for them to become true."""

NodeEffect = (
    raft_effects.Effect
    | ReadCommitted
    | ReplyCommitted
    | FindTimestamps
    | WriteSnapshot
    | MakeDigest
    | FreeState
    | SetLogLevels
    | NodeNotice
)
