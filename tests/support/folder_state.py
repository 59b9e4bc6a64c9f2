"""Replay the metadata log in a folder, as a controller does when it starts."""

from __future__ import annotations

from pathlib import Path

from kraft_wire.log.batch import split_batches
from kraft_wire.log.files import PARTITION_FOLDER
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID
from kraft_wire.metadata.state import MetadataState
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.snapshots.snapshot_store import SnapshotStore
from kraft_wire.storage.snapshots.state_loading import load_state


def state_at(data: Path, end_offset: int) -> MetadataState:
    """Return the state that a node's folder holds for an offset, which is between two batches."""
    partition = data / PARTITION_FOLDER
    snapshots = SnapshotStore(partition, Disk())
    try:
        usable = [id for id in snapshots.ids if id.end_offset <= end_offset]
        newest = max(usable, default=BOOTSTRAP_SNAPSHOT_ID)
        state = load_state(snapshots, newest)
    finally:
        snapshots.close()
    applied_end = newest.end_offset
    for file in sorted(partition.glob("*.log")):
        for batch in split_batches(file.read_bytes())[0]:
            if not newest.end_offset <= batch.header.base_offset < end_offset:
                continue
            assert batch.header.base_offset == applied_end, "the log has a gap"
            applied_end = batch.header.next_offset
            if not batch.header.is_control:
                state.replay_batch(batch)
    assert applied_end == end_offset, f"{data} ends at {applied_end}"
    return state
