"""From a snapshot on disk to the metadata that it holds."""

from __future__ import annotations

from kraft_wire.log.batch import record_values
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.storage.snapshots import SnapshotStore


def load_state(snapshots: SnapshotStore, snapshot_id: SnapshotId) -> MetadataState:
    """The state at a snapshot's end. That of format holds what is still to be written, not a state.

    Raises CorruptSnapshot, ReplayError, OSError.
    """
    if snapshot_id == BOOTSTRAP_SNAPSHOT_ID:
        return MetadataState()
    batches = snapshots.batches(snapshot_id)
    values = (record_values(batch) for batch in batches if not batch.header.is_control)
    return MetadataState.from_snapshot_values(values, snapshot_id.end_offset - 1)
