"""Store a snapshot that is fetched from the leader, piece by piece.

One thread owns it. Only ``verify`` may run in another thread, while the owner continues, abandons the
snapshot, or starts it again.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import cast

import msgspec

from kraft_wire.log.batch import Batch
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.storage.errors import CorruptSnapshot
from kraft_wire.storage.log.metadata_log import MetadataLog
from kraft_wire.storage.snapshots.snapshot_store import SnapshotReader, SnapshotStore, SnapshotWriter


class VerifiedSnapshot(msgspec.Struct, frozen=True):
    """The facts about a snapshot that raft needs. ``control_records`` are its KRaftVersionRecord and
    VotersRecord."""

    id: SnapshotId
    size_bytes: int
    last_contained_log_timestamp_ms: int
    control_records: tuple[Message, ...]


class IncomingSnapshot:
    """The snapshot that is being fetched. There is at most one."""

    def __init__(self, snapshots: SnapshotStore, log: MetadataLog) -> None:
        self._snapshots = snapshots
        self._log = log
        self._writer: SnapshotWriter | None = None
        self._verified: SnapshotWriter | None = None
        self._lock = threading.Lock()

    def append(self, snapshot_id: SnapshotId, position: int, data: bytes) -> None:
        """Write the next piece; the one at position 0 starts the snapshot again. Raises DiskFailed;
        ValueError for a piece that isn't the next."""
        if position == 0:
            self._forget(self._writer)
            self._writer = self._snapshots.create(snapshot_id)
        writer = self._current(snapshot_id)
        if writer.size_bytes != position:
            raise ValueError(f"{snapshot_id} ends at byte {writer.size_bytes}, the piece is for {position}")
        writer.append(data)

    def verify(self, snapshot_id: SnapshotId) -> VerifiedSnapshot | None:
        """Check every batch and flush the file. Returns None if the owner has abandoned the snapshot, or
        started it again, meanwhile: then there is nothing to report.

        Raises CorruptSnapshot, with the pieces deleted; DiskFailed, OSError.
        """
        with self._lock:
            writer = self._writer
            if writer is None or writer.snapshot_id != snapshot_id:
                return None
            reader = writer.open_reader()
        try:
            verified = _verify_batches(reader)
            reader.flush()
        except CorruptSnapshot:
            if not self._forget(writer):
                return None
            raise
        finally:
            reader.close()
        with self._lock:
            if self._writer is not writer:
                return None
            self._verified = writer
        return verified

    def install(self, snapshot_id: SnapshotId) -> None:
        """Give the verified snapshot its name, and restart the log, empty, at its end. Both are on stable
        storage when this returns; ``Store.open`` finishes what a crash interrupts.

        Raises DiskFailed; ValueError if this snapshot wasn't verified.
        """
        writer = self._current(snapshot_id)
        if writer is not self._verified:
            raise ValueError(f"{snapshot_id} was not verified")
        writer.finish()
        with self._lock:
            self._writer = self._verified = None
        self._snapshots.add(snapshot_id)
        self._log.reset_to(snapshot_id.end_offset)

    def abandon(self, snapshot_id: SnapshotId) -> None:
        """Delete the snapshot's pieces, if there are any. Raises OSError."""
        writer = self._writer
        if writer is not None and writer.snapshot_id == snapshot_id:
            self._forget(writer)

    def close(self) -> None:
        """Delete an incomplete snapshot, because the node stops. Raises OSError."""
        self._forget(self._writer)

    def _current(self, snapshot_id: SnapshotId) -> SnapshotWriter:
        writer = self._writer
        if writer is None or writer.snapshot_id != snapshot_id:
            raise ValueError(f"nothing of {snapshot_id} was fetched")
        return writer

    def _forget(self, writer: SnapshotWriter | None) -> bool:
        """Delete the snapshot, unless the other thread already did; returns whether it was deleted."""
        with self._lock:
            if writer is None or writer is not self._writer:
                return False
            self._writer = self._verified = None
            writer.abandon()
            return True


def _verify_batches(reader: SnapshotReader) -> VerifiedSnapshot:
    """Read all batches. Raises CorruptSnapshot."""
    first: list[Message] = []
    for batch in reader.batches():
        first = first or _control_records(batch, reader.path)
    header = cast(SnapshotHeaderRecord, first[0])  # batches() checks it
    control = tuple(message for message in first if isinstance(message, KRaftVersionRecord | VotersRecord))
    if len({type(message) for message in control}) < len(control):
        raise CorruptSnapshot(reader.path, "has kraft.version or the voters twice")
    return VerifiedSnapshot(
        reader.id,
        reader.size_bytes,
        header.last_contained_log_timestamp,
        control,
    )


def _control_records(batch: Batch, path: Path) -> list[Message]:
    try:
        return decode_control_batch(batch)
    except CorruptBatch as error:
        raise CorruptSnapshot(path, str(error)) from error
