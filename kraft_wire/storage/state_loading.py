"""From a snapshot on disk to the metadata that it holds."""

from __future__ import annotations

from kraft_wire.log.batch import record_values
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.storage.snapshots import SnapshotReader, SnapshotStore


def load_state(snapshots: SnapshotStore, snapshot_id: SnapshotId) -> MetadataState:
    """The state at a snapshot's end. That of format, which may be missing, holds what is still to be written,
    not a state.

    Raises CorruptSnapshot, ReplayError, OSError.
    """
    if snapshot_id == BOOTSTRAP_SNAPSHOT_ID:
        return MetadataState()
    reader = snapshots.open_reader(snapshot_id)
    try:
        return read_state(reader)
    finally:
        reader.close()


def read_state(snapshot: SnapshotReader) -> MetadataState:
    """The state at the end of a snapshot that is open. Raises what ``load_state`` does."""
    batches = snapshot.batches()
    values = (record_values(batch) for batch in batches if not batch.header.is_control)
    return MetadataState.from_snapshot_values(values, snapshot.id.end_offset - 1)
