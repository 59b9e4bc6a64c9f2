"""Define the events of a node, besides those of raft."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, cast

import msgspec

from kraft_wire.controller.reading.consumer_list_offsets import FoundOffset
from kraft_wire.log.batch import Batch
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.security.principal import Principal


class Caller(msgspec.Struct, frozen=True):
    """The client of a request.

    ``listener`` is the name of the listener that the request came in at, in upper case. If the request
    ``is_forwarded``, the client is connected to a broker, and the broker to the listener.
    """

    listener: str
    address: str = ""
    client_id: str = ""
    principal: Principal = Principal()
    is_forwarded: bool = False


class ApiRequest(msgspec.Struct, frozen=True):
    """A decoded request. The effect that answers it has its ``token``.

    Nothing is begun for it from ``deadline_ms`` on, a monotonic time; None is no deadline.
    """

    token: Hashable
    api_key: int
    version: int
    request: Message
    caller: Caller
    deadline_ms: int | None = None

    def with_deadline(self, now_ms: int) -> ApiRequest:
        """Return a request that has a ``timeout_ms``, which begins now, with its deadline.

        What was begun by then is completed. A time-out of 0 has passed at once, so that nothing is done
        (Kafka's KafkaEventQueue and ControllerRequestContext).
        """
        return msgspec.structs.replace(self, deadline_ms=now_ms + self._timeout_ms)

    def is_overdue(self, now_ms: int) -> bool:
        """Whether the deadline has passed."""
        return self.deadline_ms is not None and self.deadline_ms <= now_ms

    @property
    def overdue_text(self) -> str:
        """What happened to a request whose deadline has passed."""
        return f"the controller didn't begin this within its timeoutMs, {self._timeout_ms}: nothing was done"

    @property
    def _timeout_ms(self) -> int:
        return cast(int, cast(Any, self.request).timeout_ms)


class CommittedBatches(msgspec.Struct, frozen=True):
    """The batches for a ``ReadCommitted``, in offset order. The last one ends at ``end_offset``."""

    batches: Sequence[Batch]
    end_offset: int


class TimestampsFound(msgspec.Struct, frozen=True):
    """What ``FindTimestamps`` found: by timestamp, the first record at or after it, None where there is none.
    For MAX_TIMESTAMP it is the first record with the largest timestamp."""

    found: Mapping[int, FoundOffset | None]


class StateTooNew(msgspec.Struct, frozen=True):
    """The state of an installed snapshot could not be loaded: a record in it is one of a newer release.
    ``reason`` names what isn't known."""

    snapshot_id: SnapshotId
    reason: str


class StateLoaded(msgspec.Struct, frozen=True):
    """The metadata of a snapshot, after ``InstallSnapshot``."""

    snapshot_id: SnapshotId
    metadata: MetadataState


class SnapshotFailed(msgspec.Struct, frozen=True):
    """The snapshot of a ``WriteSnapshot`` could not be made."""

    snapshot_id: SnapshotId


class DigestMade(msgspec.Struct, frozen=True):
    """What ``MakeDigest`` asked for: a digest of ``record_count`` records (``metadata.digest``)."""

    digest: bytes
    record_count: int


class DigestFailed(msgspec.Struct, frozen=True):
    """The digest of a ``MakeDigest`` could not be made."""

    reason: str
