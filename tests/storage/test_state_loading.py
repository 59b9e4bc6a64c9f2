"""Loading the metadata state from a snapshot."""

from __future__ import annotations

from pathlib import Path

from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID
from kraft_wire.metadata.canonical import canonical
from kraft_wire.metadata.state import MetadataState
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.snapshots.snapshot_store import SnapshotStore
from kraft_wire.storage.snapshots.state_loading import load_state


def test_where_format_left_nothing_there_is_nothing_yet(tmp_path: Path) -> None:
    snapshots = SnapshotStore(tmp_path, Disk())
    assert canonical(load_state(snapshots, BOOTSTRAP_SNAPSHOT_ID)) == canonical(MetadataState())
