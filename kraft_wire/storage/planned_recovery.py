"""Apply a plan of recovery to a folder, so that it can be taken up again after an interruption anywhere.

First a copy of the folder is made (``folder_copy.py``). The other steps are those of
``raft/recovery/applying.py``, which the simulator takes, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from kraft_wire.log.files import ElectionState
from kraft_wire.raft.recovery import applying
from kraft_wire.raft.recovery.applying import Marker, write_plan
from kraft_wire.raft.recovery.plan import Plan, RecoveryError, Stage
from kraft_wire.storage.folder import open_folder, read_meta_properties
from kraft_wire.storage.folder_copy import FolderCopy
from kraft_wire.storage.inspection.evidence import read_evidence
from kraft_wire.storage.recovery_marker import read_marker, write_marker
from kraft_wire.storage.store import Store


def backup_path(metadata_dir: Path, plan: Plan) -> Path:
    """Return where the copy of the folder is kept by default: beside it."""
    return metadata_dir.with_name(f"{metadata_dir.name}.before-recovery-{plan.hash[:12]}")


def stage_of(plan: Plan, metadata_dir: Path) -> Stage:
    """Say where a folder is. Raises RecoveryError for a folder that the plan isn't for, or that has changed
    since it was collected; StorageError, OSError."""
    found = read_evidence(metadata_dir)
    stage = plan.stage_of(found)
    if stage == "other":
        raise RecoveryError(
            f"{metadata_dir} has changed since it was collected: its log ends at offset "
            f"{found.log_end_offset}, epoch {found.last_epoch}, and the plan continues at offset "
            f"{plan.base_offset}, epoch {plan.last_epoch}. Collect and plan again"
        )
    return stage


def is_applied(plan: Plan, metadata_dir: Path) -> bool:
    """Whether the plan was applied to the end. Raises what ``stage_of`` raises."""
    return applying.is_applied(plan, stage_of(plan, metadata_dir), read_marker(metadata_dir))


def finish_marker(plan: Plan, metadata_dir: Path) -> bool:
    """Let the marker of an applied plan say so, if the node was started before it did; returns whether it
    changed. Raises FolderLocked, DiskFailed, and what ``read_marker`` raises."""
    marker = read_marker(metadata_dir)
    if marker is None or not marker.is_of(plan) or marker.state != "begun":
        return False
    node_id = read_meta_properties(metadata_dir).node_id
    folder = open_folder(metadata_dir, node_id=node_id, cluster_id=plan.cluster_id)
    try:
        write_marker(folder.partition_path, msgspec.structs.replace(marker, state="applied"), folder.disk)
    finally:
        folder.close()
    return True


def apply_plan(plan: Plan, metadata_dir: Path, backup: Path) -> bool:
    """Apply the plan; returns False if that was done before. ``backup`` gets a copy of the folder first.

    Raises RecoveryError as ``stage_of`` and ``FolderCopy.check`` do; what ``Store.open`` raises, FolderLocked
    among it; OSError.
    """
    plan.check()
    if not plan.targets:
        raise RecoveryError("this plan changes no folder: " + plan.steps[0])
    if is_applied(plan, metadata_dir):
        finish_marker(plan, metadata_dir)
        return False
    copy = FolderCopy(metadata_dir, backup, plan)
    copy.check()
    node_id = read_meta_properties(metadata_dir).node_id
    stage = stage_of(plan, metadata_dir)
    store = Store.open(
        metadata_dir,
        node_id=node_id,
        cluster_id=plan.cluster_id,
        static_voter_ids=[voter.id for voter in plan.old_voters],
        when_locked=copy.make,
    )
    try:
        write_plan(plan, stage, _StoreFiles(store))
    finally:
        store.close()
    return True


class _StoreFiles:
    """A folder's files, opened as a node opens them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def log_end_offset(self) -> int:
        return self._store.log.end_offset

    @property
    def marker(self) -> Marker | None:
        return read_marker(self._store.folder.path)

    def mark(self, marker: Marker) -> None:
        write_marker(self._store.folder.partition_path, marker, self._store.disk)

    def write_election_state(
        self, state: ElectionState, *, kraft_version: int, voter_ids: Sequence[int]
    ) -> None:
        self._store.write_election_state(state, kraft_version=kraft_version, voter_ids=voter_ids)

    def append(self, batch: bytes) -> None:
        self._store.log.append([batch])

    def flush(self) -> None:
        self._store.log.flush()

    def forget_loss(self) -> None:
        self._store.forget_loss()
