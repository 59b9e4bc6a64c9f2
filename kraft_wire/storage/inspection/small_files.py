"""Check the small files of a folder, each by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from kraft_wire.log.errors import LogError
from kraft_wire.log.files import (
    META_PROPERTIES,
    PARTITION_METADATA,
    QUORUM_STATE,
    ElectionState,
    partition_metadata_text,
)
from kraft_wire.storage.errors import CorruptFile, NotFormatted, StorageError
from kraft_wire.storage.folder import check_partition_metadata, read_meta_properties
from kraft_wire.storage.inspection.model import Contents, FindingList
from kraft_wire.storage.log.durable_floor import FILE_NAME as DURABLE_FLOOR
from kraft_wire.storage.log.durable_floor import parse_floor
from kraft_wire.storage.quorum_state import read_election_state
from kraft_wire.storage.recovery.vote_guards import (
    LOST_BELOW,
    LOST_BELOW_UNLESS_ALONE,
    NO_VOTE_UP_TO,
    guard_text,
    read_guard,
)
from kraft_wire.storage.snapshots.snapshot_store import LEGACY_BOOTSTRAP, read_legacy_bootstrap


def inspect_small_files(root: Path, partition: Path, findings: FindingList) -> None:
    """Report every file that holds neither records nor an index."""
    checks: dict[Path, Callable[[Path], Contents]] = {
        root / META_PROPERTIES: _meta_properties,
        root / LEGACY_BOOTSTRAP: _legacy_bootstrap,
    }
    if partition.is_dir():
        checks[partition / PARTITION_METADATA] = _partition_metadata
        checks[partition / QUORUM_STATE] = _quorum_state
        checks[partition / DURABLE_FLOOR] = _durable_floor
        for name in (LOST_BELOW, LOST_BELOW_UNLESS_ALONE, NO_VOTE_UP_TO):
            checks[partition / name] = _vote_guard
    for path, check in checks.items():
        if path.exists() or path.name == META_PROPERTIES:
            _report(path, partial(check, path), findings)


def whole_quorum_state(partition: Path) -> ElectionState | None:
    """Return what quorum-state says; None if it is missing or damaged."""
    try:
        return read_election_state(partition)
    except CorruptFile:
        return None


def _report(path: Path, check: Callable[[], Contents], findings: FindingList) -> None:
    try:
        findings.add(path, "whole", "", **check())
    except NotFormatted:
        findings.add(path, "missing", "the folder can't be used without it")
    except LogError as error:
        findings.add(path, "damaged", error.problem if isinstance(error, StorageError) else str(error))


def _meta_properties(path: Path) -> Contents:
    properties = read_meta_properties(path.parent)
    directory_id = None if properties.directory_id is None else str(properties.directory_id)
    return {
        "cluster_id": properties.cluster_id,
        "node_id": properties.node_id,
        "directory_id": directory_id,
    }


def _legacy_bootstrap(path: Path) -> Contents:
    return {"records": len(read_legacy_bootstrap(path))}


def _partition_metadata(path: Path) -> Contents:
    check_partition_metadata(path)
    if path.read_bytes().rstrip() != partition_metadata_text().encode():
        raise CorruptFile(path, f"doesn't say {partition_metadata_text()!r}")
    return {}


def _quorum_state(path: Path) -> Contents:
    state = read_election_state(path.parent)
    if state is None:
        raise FileNotFoundError
    return {"epoch": state.leader_epoch, "leader": state.leader_id, "voted": state.voted_id}


def _durable_floor(path: Path) -> Contents:
    text = path.read_bytes().decode("latin-1")
    floor = parse_floor(text)
    if not text:
        raise CorruptFile(path, "it is empty")
    if floor is None:
        raise CorruptFile(path, "it is damaged, or was written by an unreleased version")
    return {"offset": floor.offset, "quorum_epoch": floor.quorum_epoch}


def _vote_guard(path: Path) -> Contents:
    number = read_guard(path)
    if number is None:
        raise FileNotFoundError
    if path.read_bytes() != guard_text(number).encode():
        raise CorruptFile(path, f"one of its two lines is damaged; the other says {number}")
    return {"number": number}
