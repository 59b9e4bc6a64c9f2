"""From a snapshot on disk to the metadata that it holds."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_wire.log.batch import record_values
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.storage.snapshots import SnapshotStore


def load_state(snapshots: SnapshotStore, snapshot_id: SnapshotId) -> MetadataState:
    """The state at a snapshot's end. That of format holds what is still to be written, not a state.

    Raises CorruptSnapshot, ReplayError, OSError.
    """
    if snapshot_id == BOOTSTRAP_SNAPSHOT_ID:
        return MetadataState()
    return MetadataState.from_snapshot(_records(snapshots, snapshot_id), snapshot_id.end_offset - 1)


def _records(snapshots: SnapshotStore, snapshot_id: SnapshotId) -> Iterator[Message]:
    for batch in snapshots.batches(snapshot_id):
        if not batch.header.is_control:
            for value in record_values(batch):
                yield decode_metadata_record(value)[0]
