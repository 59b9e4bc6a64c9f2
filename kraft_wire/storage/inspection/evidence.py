"""Read what a folder says of its quorum: for ``quorum status --from-dir`` and ``quorum recover collect``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from kraft_wire.log.batch import Batch
from kraft_wire.log.epochs import FILE_NAME as EPOCH_CHECKPOINT
from kraft_wire.log.files import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    PARTITION_FOLDER,
    PARTITION_METADATA,
    TIME_INDEX_SUFFIX,
)
from kraft_wire.log.recovery import ReadableTail, trusted_floor
from kraft_wire.raft.recovery.applying import past_recovery
from kraft_wire.raft.recovery.evidence import FolderEvidence, SnapshotEvidence
from kraft_wire.raft.recovery.log_evidence import LogEvidence, read_log
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import CorruptFile, NewerSnapshot
from kraft_wire.storage.folder import read_meta_properties
from kraft_wire.storage.inspection.inspector import inspect_with_tail, metadata_dir_of
from kraft_wire.storage.inspection.model import Finding, Inspection
from kraft_wire.storage.inspection.small_files import whole_quorum_state
from kraft_wire.storage.log.batch_reader import read_batches
from kraft_wire.storage.log.durable_floor import read_floor
from kraft_wire.storage.log.segment import Segment
from kraft_wire.storage.quorum_state import read_static_voter_ids
from kraft_wire.storage.recovery.repair import segment_paths
from kraft_wire.storage.recovery.vote_guards import (
    LOST_BELOW,
    LOST_BELOW_UNLESS_ALONE,
    NO_VOTE_UP_TO,
    read_guard,
)
from kraft_wire.storage.recovery_marker import read_marker
from kraft_wire.storage.snapshots.snapshot_store import SnapshotStore

_MADE_AGAIN: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, EPOCH_CHECKPOINT, PARTITION_METADATA)
"""The ends of the names of files that a node makes again when it starts, from the records alone."""

_BROKER_FILES: Final = frozenset(
    {
        "cleaner-offset-checkpoint",
        "log-start-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        ".kafka_cleanshutdown",
    }
)
"""The files that a broker keeps beside the partitions' folders (LogManager, ReplicaManager)."""
_PARTITION: Final = re.compile(r".+-[0-9]+")


def read_evidence(folder: Path) -> FolderEvidence:
    """Read a folder without changing it. Raises NotFormatted, CorruptFile, OSError.

    A damaged log is no error: ``problems`` names the damage, and the evidence ends before it. A whole batch
    that this release can't read is a problem, too. The evidence goes on after it, unless the batch begins
    with what can't be read. Damage that a snapshot covers is no problem: the evidence begins after it, as the
    log does when the node starts.
    """
    metadata_dir = metadata_dir_of(folder.absolute())
    properties = read_meta_properties(metadata_dir)
    inspection, tail = inspect_with_tail(metadata_dir)
    partition = metadata_dir / PARTITION_FOLDER
    found = _PartitionReader(partition)
    if partition.is_dir():
        found.read(tail)
    log = found.log
    unreadable = found.newer_snapshot or (log.unreadable and f"the log can't be read at {log.unreadable}")
    state = whole_quorum_state(partition)
    voter_ids = [] if state is None else read_static_voter_ids(partition)
    floor = trusted_floor(read_floor(partition), None if state is None else state.leader_epoch)
    return FolderEvidence(
        folder=str(metadata_dir),
        cluster_id=properties.cluster_id,
        node_id=properties.node_id,
        directory_id="" if properties.directory_id is None else str(properties.directory_id),
        quorum_epoch=-1 if state is None else state.leader_epoch,
        leader_id=-1 if state is None else state.leader_id,
        voted_id=-1 if state is None else state.voted_id,
        log_start_offset=log.start_offset,
        log_end_offset=log.end_offset,
        last_timestamp_ms=log.last_timestamp_ms,
        epochs=tuple(log.epochs),
        committed_offset=max((floor.committed_offset, *(s.end_offset for s in found.whole_snapshots))),
        lost_below=_lost_below(partition, inspection, is_alone=voter_ids == [properties.node_id]),
        no_vote_up_to=_guard(partition / NO_VOTE_UP_TO),
        kraft_version=log.history.kraft_version,
        history=tuple(log.history.changes),
        static_voter_ids=tuple(voter_ids),
        registrations=log.history.registrations,
        broker_ids=tuple(sorted(log.history.broker_ids)),
        controller_ids=tuple(sorted(log.history.controller_ids)),
        has_broker_files=_has_broker_files(metadata_dir),
        snapshots=tuple(found.snapshots),
        controller_pid=inspection.controller_pid,
        problems=tuple(_problems(inspection, unreadable)),
        is_unreadable=bool(unreadable),
        recovery=past_recovery(read_marker(metadata_dir)),
        newer=log.history.newer,
    )


def _has_broker_files(metadata_dir: Path) -> bool:
    """Whether a broker keeps its files in this folder: partitions of topics, or what it notes of them."""
    return any(
        path.name in _BROKER_FILES
        or (path.name != PARTITION_FOLDER and _PARTITION.fullmatch(path.name) is not None and path.is_dir())
        for path in metadata_dir.iterdir()
    )


def _lost_below(partition: Path, inspection: Inspection, *, is_alone: bool) -> int:
    """Return the offset below which the log had records once that damage took, or will take when the folder
    is repaired; -1 if none is known. A node that is alone forgets an earlier loss when it starts."""
    guards = (LOST_BELOW,) if is_alone else (LOST_BELOW, LOST_BELOW_UNLESS_ALONE)
    lost = -1 if inspection.lost_offsets is None else inspection.lost_offsets[1]
    return max(lost, *(_guard(partition / name) for name in guards))


def _guard(path: Path) -> int:
    """Return a guard's number; -1 if there is none. A damaged one is among the inspection's findings."""
    try:
        number = read_guard(path)
    except CorruptFile:
        return -1
    return -1 if number is None else number


def _problems(inspection: Inspection, unreadable: str) -> Iterator[str]:
    if unreadable:
        yield unreadable
    yield from inspection.problems
    for finding in inspection.findings:
        if _keeps_from_use(finding):
            yield f"{finding.file} is {finding.status}: {finding.problem}"


def _keeps_from_use(finding: Finding) -> bool:
    return finding.status in ("damaged", "missing") and not finding.file.endswith(_MADE_AGAIN)


class _PartitionReader:
    """Reads the snapshots and the log of a partition's folder, which may be missing."""

    def __init__(self, partition: Path) -> None:
        self._partition = partition
        self.snapshots: list[SnapshotEvidence] = []
        self.log = LogEvidence(0)
        self.newer_snapshot = ""
        """Why this release can't read the newest snapshot, if a newer release wrote it."""

    @property
    def whole_snapshots(self) -> list[SnapshotEvidence]:
        return [snapshot for snapshot in self.snapshots if snapshot.is_whole]

    def read(self, tail: ReadableTail | None) -> None:
        """Read the log: all of it, or the readable tail of a damaged one."""
        paths = segment_paths(self._partition)
        start_offset, position = _base_offset(paths[0]) if paths else 0, 0
        if tail is not None:
            base_offset = tail.base_offset
            paths = [path for path in paths if base_offset is not None and _base_offset(path) >= base_offset]
            start_offset, position = tail.offset, tail.position
        snapshots = SnapshotStore(self._partition, Disk())
        try:
            for snapshot_id in snapshots.ids:
                problem = snapshots.problem_of(snapshot_id)
                self.snapshots.append(SnapshotEvidence(*snapshot_id, problem is None))
                self.newer_snapshot = (
                    f"snapshot {problem.path.name} can't be read at {problem.what}"
                    if isinstance(problem, NewerSnapshot)
                    else ""
                )
            self.log = read_log(
                start_offset, self.snapshots, snapshots.batches, self._batches(paths, position)
            )
        finally:
            snapshots.close()

    def _batches(self, paths: list[Path], position: int) -> Iterator[tuple[int, Batch]]:
        """Yield the batches of the segments, from ``position`` in the first one on."""
        for path in paths:
            with ExitStack() as stack:
                segment = Segment.open(self._partition, _base_offset(path), Disk(), mode=os.O_RDONLY)
                stack.callback(segment.close)
                yield from read_batches(segment.fd, position, segment.file_size_bytes())
                position = 0


def _base_offset(path: Path) -> int:
    return int(path.name.removesuffix(LOG_SUFFIX))
