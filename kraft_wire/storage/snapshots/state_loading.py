"""Load the metadata state from a snapshot on disk."""

from __future__ import annotations

from kraft_wire.log.batch import record_values
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.storage.snapshots.snapshot_store import SnapshotReader, SnapshotStore


def load_state(snapshots: SnapshotStore, snapshot_id: SnapshotId) -> MetadataState:
    """Return the state at a snapshot's end. The snapshot of format, which may be missing, holds records that
    are still to be written, and no state.

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
    """Return the state at the end of an open snapshot. Raises what ``load_state`` raises."""
    batches = snapshot.batches()
    values = (record_values(batch) for batch in batches if not batch.header.is_control)
    return MetadataState.from_snapshot_values(values, snapshot.id.end_offset - 1)
