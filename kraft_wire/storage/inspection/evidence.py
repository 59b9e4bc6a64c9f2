"""Read what a folder says of its quorum: for ``quorum status --from-dir`` and ``quorum recover collect``."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec

from kraft_wire.log.batch import Batch
from kraft_wire.log.chain import BatchChain
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.files import LOG_SUFFIX, PARTITION_FOLDER
from kraft_wire.log.recovery import trusted_floor
from kraft_wire.raft.recovery.evidence import (
    EpochEvidence,
    FolderEvidence,
    QuorumHistory,
    SnapshotEvidence,
)
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import CorruptFile
from kraft_wire.storage.folder import read_meta_properties
from kraft_wire.storage.inspection.inspector import inspect, metadata_dir_of
from kraft_wire.storage.inspection.model import Inspection
from kraft_wire.storage.inspection.small_files import whole_quorum_state
from kraft_wire.storage.log.batch_reader import read_batches
from kraft_wire.storage.log.durable_floor import read_floor
from kraft_wire.storage.log.segment import Segment
from kraft_wire.storage.quorum_state import read_static_voter_ids
from kraft_wire.storage.recovery.repair import segment_paths
from kraft_wire.storage.recovery.vote_guards import LOST_BELOW, NO_VOTE_UP_TO, read_guard
from kraft_wire.storage.snapshots.snapshot_store import SnapshotStore


def read_evidence(folder: Path) -> FolderEvidence:
    """Read a folder without changing it. Raises NotFormatted, CorruptFile, OSError.

    A damaged log is no error: ``problems`` names the damage, and the evidence ends before it.
    """
    metadata_dir = metadata_dir_of(folder.absolute())
    properties = read_meta_properties(metadata_dir)
    inspection = inspect(metadata_dir)
    partition = metadata_dir / PARTITION_FOLDER
    found = _FolderReader(partition)
    if partition.is_dir():
        found.read()
    state = whole_quorum_state(partition)
    floor = trusted_floor(read_floor(partition), None if state is None else state.leader_epoch)
    return FolderEvidence(
        folder=str(metadata_dir),
        cluster_id=properties.cluster_id,
        node_id=properties.node_id,
        directory_id="" if properties.directory_id is None else str(properties.directory_id),
        quorum_epoch=-1 if state is None else state.leader_epoch,
        leader_id=-1 if state is None else state.leader_id,
        voted_id=-1 if state is None else state.voted_id,
        log_start_offset=found.start_offset,
        log_end_offset=found.end_offset,
        last_timestamp_ms=found.last_timestamp_ms,
        epochs=tuple(found.epochs),
        committed_offset=max((floor.committed_offset, *(s.end_offset for s in found.whole_snapshots))),
        lost_below=_guard(partition / LOST_BELOW),
        no_vote_up_to=_guard(partition / NO_VOTE_UP_TO),
        kraft_version=found.history.kraft_version,
        history=tuple(found.history.changes),
        static_voter_ids=tuple(read_static_voter_ids(partition)) if state is not None else (),
        registrations=found.history.registrations,
        snapshots=tuple(found.snapshots),
        controller_pid=inspection.controller_pid,
        problems=tuple(_problems(inspection)),
    )


def _guard(path: Path) -> int:
    """Return a guard's number; -1 if there is none. A damaged one is among the inspection's findings."""
    try:
        number = read_guard(path)
    except CorruptFile:
        return -1
    return -1 if number is None else number


def _problems(inspection: Inspection) -> Iterator[str]:
    yield from inspection.problems
    for finding in inspection.findings:
        if finding.status in ("damaged", "covered", "missing"):
            yield f"{finding.file} is {finding.status}: {finding.problem}"


class _FolderReader:
    """Reads snapshots and log once, in the order of their offsets."""

    def __init__(self, partition: Path) -> None:
        self._partition = partition
        self.history = QuorumHistory()
        self.snapshots: list[SnapshotEvidence] = []
        self.epochs: list[EpochEvidence] = []
        self.start_offset = self.end_offset = 0
        self.last_timestamp_ms = -1

    @property
    def whole_snapshots(self) -> list[SnapshotEvidence]:
        return [snapshot for snapshot in self.snapshots if snapshot.is_whole]

    def read(self) -> None:
        paths = segment_paths(self._partition)
        if paths:
            self.start_offset = self.end_offset = int(paths[0].name.removesuffix(LOG_SUFFIX))
        snapshots = SnapshotStore(self._partition, Disk())
        try:
            self._read_snapshots(snapshots)
        finally:
            snapshots.close()
        self._read_log(paths)

    def _read_snapshots(self, snapshots: SnapshotStore) -> None:
        """Note all snapshots, and take the newest whole one that the log continues, or the newest at all."""
        for snapshot_id in snapshots.ids:
            is_whole = snapshots.problem_of(snapshot_id) is None
            self.snapshots.append(SnapshotEvidence(*snapshot_id, is_whole))
        whole = [id for id in snapshots.ids if SnapshotEvidence(*id, True) in self.snapshots]
        at_start = [id for id in whole if id.end_offset <= self.start_offset]
        for snapshot_id in (at_start or whole)[-1:]:
            self.history.take_snapshot(snapshot_id, snapshots.batches(snapshot_id))

    def _read_log(self, paths: list[Path]) -> None:
        chain = BatchChain(self.start_offset, None)
        digest = hashlib.sha256()
        try:
            for batch in self._batches(paths, chain):
                digest = self._note_epoch(batch, digest)
                self.history.take(batch)
                self.end_offset = chain.next_offset
                self.last_timestamp_ms = batch.header.max_timestamp
        except CorruptBatch:
            pass  # the inspection says what it is: a torn tail, or damage
        self._finish_epoch(digest)

    def _batches(self, paths: list[Path], chain: BatchChain) -> Iterator[Batch]:
        for path in paths:
            with ExitStack() as stack:
                base_offset = int(path.name.removesuffix(LOG_SUFFIX))
                segment = Segment.open(self._partition, base_offset, Disk(), mode=os.O_RDONLY)
                stack.callback(segment.close)
                for position, batch in read_batches(segment.fd, 0, segment.file_size_bytes()):
                    chain.take(position, batch)
                    yield batch

    def _note_epoch(self, batch: Batch, digest: hashlib._Hash) -> hashlib._Hash:
        epoch = batch.header.leader_epoch
        if not self.epochs or self.epochs[-1].epoch != epoch:
            self._finish_epoch(digest)
            digest = hashlib.sha256()
            offset = batch.header.base_offset
            self.epochs.append(EpochEvidence(epoch, offset, offset, ""))
        digest.update(batch.data)
        return digest

    def _finish_epoch(self, digest: hashlib._Hash) -> None:
        if self.epochs:
            last = self.epochs[-1]
            self.epochs[-1] = msgspec.structs.replace(
                last, end_offset=self.end_offset, digest=digest.hexdigest()
            )
