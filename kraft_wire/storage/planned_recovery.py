"""Apply a plan of recovery to a folder, so that it can be taken up again after an interruption anywhere.

The steps: a copy of the folder beside it, whole or not there; a marker with the plan; quorum-state in the
plan's epoch; the plan's batch; the marker again. Until the batch is there the node is a voter of the old
quorum, which has no majority, and the next attempt finds the folder's log as it was. Everything is flushed
before the next step.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final, Literal

import msgspec

from kraft_wire.log.files import META_PROPERTIES, PARTITION_FOLDER, RECOVERY_PLAN
from kraft_wire.raft.recovery.plan import Plan, RecoveryError, Stage
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import CorruptFile
from kraft_wire.storage.folder import read_meta_properties
from kraft_wire.storage.inspection.evidence import read_evidence
from kraft_wire.storage.store import Store

_UNFINISHED: Final = ".unfinished"


class Marker(msgspec.Struct, frozen=True):
    """The marker's contents."""

    state: Literal["begun", "applied"]
    plan: Plan


def read_marker(metadata_dir: Path) -> Marker | None:
    """Return the folder's marker; None if no plan was applied. Raises CorruptFile, OSError."""
    path = metadata_dir / PARTITION_FOLDER / RECOVERY_PLAN
    try:
        return msgspec.json.decode(path.read_bytes(), type=Marker)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise CorruptFile(path, f"is damaged: {error}") from None


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
    stage = stage_of(plan, metadata_dir)
    return stage == "moved on" or (
        stage == "written" and read_marker(metadata_dir) == Marker("applied", plan)
    )


def apply_plan(plan: Plan, metadata_dir: Path, backup: Path) -> bool:
    """Apply the plan; returns False if that was done before. ``backup`` gets a copy of the folder first.

    Raises RecoveryError as ``stage_of`` does; what ``Store.open`` raises, FolderLocked among it; OSError.
    """
    plan.check()
    if not plan.targets:
        raise RecoveryError("this plan changes no folder: " + plan.steps[0])
    if is_applied(plan, metadata_dir):
        return False
    _back_up(metadata_dir, backup, Disk())
    _write(plan, metadata_dir)
    return True


def _write(plan: Plan, metadata_dir: Path) -> None:
    node_id = read_meta_properties(metadata_dir).node_id
    is_written = stage_of(plan, metadata_dir) != "untouched"
    store = Store.open(metadata_dir, node_id=node_id, cluster_id=plan.cluster_id)
    try:
        if store.log.end_offset != (plan.end_offset if is_written else plan.base_offset):
            raise RecoveryError(f"{metadata_dir} changed while the plan was applied: a process ran on it")
        _mark(store, Marker("begun", plan))
        if not is_written:
            store.write_election_state(plan.election_state(), kraft_version=plan.kraft_version)
            store.log.append([plan.batch()])
            store.log.flush()
        store.forget_loss()
        _mark(store, Marker("applied", plan))
    finally:
        store.close()


def _mark(store: Store, marker: Marker) -> None:
    path = store.folder.partition_path / RECOVERY_PLAN
    store.disk.replace(path, msgspec.json.encode(marker))


def _back_up(metadata_dir: Path, backup: Path, disk: Disk) -> None:
    """Copy meta.properties and the metadata partition. A copy under the final name is whole and flushed."""
    if backup.exists():
        return
    unfinished = backup.with_name(backup.name + _UNFINISHED)
    if unfinished.exists():
        shutil.rmtree(unfinished)
    disk.make_folder(unfinished / PARTITION_FOLDER)
    for source in (metadata_dir / META_PROPERTIES, *(metadata_dir / PARTITION_FOLDER).iterdir()):
        _copy(source, unfinished / source.relative_to(metadata_dir), disk)
    disk.flush_folder(unfinished / PARTITION_FOLDER)
    disk.flush_folder(unfinished)
    disk.rename(unfinished, backup)


def _copy(source: Path, to: Path, disk: Disk) -> None:
    shutil.copy2(source, to)
    fd = os.open(to, os.O_RDONLY)
    try:
        disk.flush_data(fd, to)
    finally:
        os.close(fd)
