"""A snapshot that comes in pieces from a leader."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.storage.snapshots import SnapshotWriter
from kraft_wire.storage.store import Store


class VerifiedSnapshot(msgspec.Struct, frozen=True):
    """What a whole snapshot says of itself; ``control_records`` are those of kraft.version and the voters."""

    size_bytes: int
    last_contained_log_timestamp_ms: int
    control_records: Sequence[Message]


class IncomingSnapshot:
    """At most one snapshot at a time. All but ``verify`` belong to the thread that owns the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._writer: SnapshotWriter | None = None

    def append(self, snapshot_id: SnapshotId, position: int, data: bytes) -> None:
        """The next piece; that at position 0 begins anew. Raises ValueError for a piece out of turn,
        DiskFailed."""
        if position == 0:
            self.abandon()
            self._writer = self._store.snapshots.create(snapshot_id)
        writer = self._writer
        if writer is None or writer.snapshot_id != snapshot_id or writer.size_bytes != position:
            raise ValueError(f"a piece of snapshot {snapshot_id} at byte {position} comes out of turn")
        writer.append(data)

    def verify(self) -> VerifiedSnapshot:
        """Check every batch; may run in another thread. Raises CorruptSnapshot."""
        assert self._writer is not None
        batches = self._writer.batches()
        control = decode_control_batch(next(batches))
        for _ in batches:
            pass
        header = control[0]
        assert isinstance(header, SnapshotHeaderRecord), "checked by batches()"
        return VerifiedSnapshot(self._writer.size_bytes, header.last_contained_log_timestamp, control[1:])

    def install(self) -> None:
        """Give it its name, and let the log begin at its end; both are on stable storage then. A crash in
        between is mended at the next start. Raises DiskFailed."""
        assert self._writer is not None
        snapshot_id = self._writer.snapshot_id
        self._writer.finish()
        self._writer = None
        self._store.snapshots.add(snapshot_id)
        self._store.log.reset_to(snapshot_id.end_offset)

    def abandon(self) -> None:
        """Remove what there is. Raises OSError."""
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None
