"""Do to the disk of a stopped node what an operator's commands do to its folder: collect, apply, verify.

The decisions are the product's (``raft/recovery``); only the files are simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from kraft_wire.log.batch import Batch, split_batches
from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId, verify_snapshot
from kraft_wire.raft.config import RaftConfig
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.recovery.applying import Marker, past_recovery
from kraft_wire.raft.recovery.evidence import FolderEvidence, SnapshotEvidence
from kraft_wire.raft.recovery.log_evidence import read_log
from kraft_wire.sim.machines.disk import Disk


def evidence_of(config: RaftConfig, disk: Disk) -> FolderEvidence:
    """Return what a folder says, without changing it (``quorum recover collect``)."""
    snapshots = [
        SnapshotEvidence(snapshot_id.end_offset, snapshot_id.epoch, disk.snapshots[snapshot_id].is_whole)
        for snapshot_id in sorted(disk.snapshots)
    ]
    log = read_log(
        disk.start_offset, snapshots, lambda snapshot_id: _batches_of(disk, snapshot_id), _batches(disk)
    )
    election = disk.election
    whole_ends = [snapshot.end_offset for snapshot in snapshots if snapshot.is_whole]
    return FolderEvidence(
        folder=f"node-{config.node_id}",
        cluster_id=config.cluster_id,
        node_id=config.node_id,
        directory_id=str(config.directory_id),
        quorum_epoch=-1 if election is None else election.leader_epoch,
        leader_id=-1 if election is None else election.leader_id,
        voted_id=-1 if election is None else election.voted_id,
        log_start_offset=log.start_offset,
        log_end_offset=log.end_offset,
        last_timestamp_ms=log.last_timestamp_ms,
        epochs=tuple(log.epochs),
        committed_offset=max((disk.last_floor.committed_offset, *whole_ends)),
        lost_below=-1 if disk.lost_below is None else disk.lost_below,
        no_vote_up_to=disk.no_vote_up_to_epoch,
        kraft_version=log.history.kraft_version,
        history=tuple(log.history.changes),
        static_voter_ids=tuple(sorted(config.static_voters.ids)),
        snapshots=tuple(snapshots),
        recovery=past_recovery(disk.marker),
    )


def _batches(disk: Disk) -> Iterator[tuple[int, Batch]]:
    """Yield the log's batches, each with its position, up to one that was written in part."""
    position = 0
    for written in disk.batches:
        whole, size_bytes = split_batches(written.data)
        if size_bytes < len(written.data):
            return
        yield position, whole[0]
        position += size_bytes


def _batches_of(disk: Disk, snapshot_id: SnapshotId) -> Iterable[Batch]:
    """Return the control batches of a snapshot. The others hold the simulated state machine's digest, and no
    metadata records. The 0-0 checkpoint has no bytes here."""
    snapshot = disk.snapshots[snapshot_id]
    if snapshot.data:
        return [batch for batch in verify_snapshot(snapshot.data) if batch.header.is_control]
    return split_batches(encode_control_batch(0, 0, 0, snapshot.control))[0]


class PlannedDisk:
    """The files of a stopped node (``PlannedFiles``). ``before_write`` is called before each write; it may
    raise."""

    def __init__(self, disk: Disk, before_write: Callable[[], None]) -> None:
        self._disk = disk
        self._before_write = before_write

    @property
    def log_end_offset(self) -> int:
        return self._disk.end_offset

    @property
    def marker(self) -> Marker | None:
        return self._disk.marker

    def mark(self, marker: Marker) -> None:
        self._before_write()
        self._disk.marker = marker

    def write_election_state(
        self, state: ElectionState, *, kraft_version: int, voter_ids: Sequence[int]
    ) -> None:
        self._before_write()
        self._disk.write_election_state(state)

    def append(self, batch: bytes) -> None:
        self._before_write()
        [whole], _ = split_batches(batch)
        header = whole.header
        self._disk.append(AppendBatch(batch, header.base_offset, header.last_offset, header.leader_epoch))

    def flush(self) -> None:
        self._before_write()
        self._disk.flushed(self._disk.flush_mark())

    def forget_loss(self) -> None:
        self._before_write()
        self._disk.forget_loss()
