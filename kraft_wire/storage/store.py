"""Everything that a node keeps: its folder, election state, log and snapshots, opened together and
consistent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from kraft_wire.log.files import ElectionState, MetaProperties
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import CorruptSnapshot, MissingRecords
from kraft_wire.storage.folder import Folder, open_folder
from kraft_wire.storage.log import DEFAULT_LOG_CONFIG, LogConfig, MetadataLog
from kraft_wire.storage.quorum_state import read_election_state, write_election_state
from kraft_wire.storage.recovery import TornTail
from kraft_wire.storage.snapshots import SnapshotStore, bootstrap_values


class Recovery(msgspec.Struct):
    """What opening found to be not as a clean stop leaves it, for the operator's log."""

    torn_tail: TornTail | None = None
    corrupt_snapshots: list[CorruptSnapshot] = []
    snapshots_set_aside: list[Path] = []
    log_reset_to: int | None = None
    election_state_missing: bool = False


class Store:
    """A node's files. ``election`` is None where quorum-state is missing (a new node, or one that lost
    it).
    """

    def __init__(
        self,
        folder: Folder,
        election: ElectionState | None,
        log: MetadataLog,
        snapshots: SnapshotStore,
        recovery: Recovery,
    ) -> None:
        self.folder = folder
        self.election = election
        self.log = log
        self.snapshots = snapshots
        self.recovery = recovery

    @classmethod
    def open(
        cls,
        metadata_dir: Path,
        *,
        node_id: int,
        cluster_id: str | None = None,
        log_dirs: Sequence[Path] = (),
        config: LogConfig = DEFAULT_LOG_CONFIG,
    ) -> Store:
        """Lock and check the node's folders, recover the log, choose the snapshot to start from.

        A snapshot that cannot be read is set aside, and the one before it counts, as long as the log reaches
        back to it. Raises NotFormatted, WrongFolder, FolderLocked, CorruptFile, CorruptLog, CorruptSnapshot,
        MissingRecords, DiskFailed, OSError: all but the last two without having changed records.
        """
        with ExitStack() as stack:
            folder = open_folder(metadata_dir, node_id=node_id, cluster_id=cluster_id, log_dirs=log_dirs)
            stack.callback(folder.close)
            election = read_election_state(folder.partition_path)
            snapshots = SnapshotStore(folder.partition_path, folder.disk)
            stack.callback(snapshots.close)
            bad = _corrupt_snapshots(snapshots)
            usable = [snapshot_id for snapshot_id in snapshots.ids if snapshot_id not in bad]
            log = MetadataLog.open(
                folder.partition_path,
                folder.disk,
                config=config,
                quorum_epoch=None if election is None else election.leader_epoch,
                empty_start_offset=usable[-1].end_offset if usable else 0,
            )
            stack.callback(log.close)
            recovery = Recovery(torn_tail=log.torn_tail, corrupt_snapshots=list(bad.values()))
            recovery.election_state_missing = election is None and log.end_offset > 0
            _check_coverage(log, usable, bad)
            recovery.snapshots_set_aside = [snapshots.set_aside(snapshot_id) for snapshot_id in bad]
            recovery.log_reset_to = _follow_snapshot(log, snapshots)
            stack.pop_all()
        return cls(folder, election, log, snapshots, recovery)

    @property
    def properties(self) -> MetaProperties:
        """Cluster id, node id and directory id of the metadata folder."""
        return self.folder.properties

    @property
    def disk(self) -> Disk:
        return self.folder.disk

    def write_election_state(
        self, state: ElectionState, *, kraft_version: int, voter_ids: Iterable[int] = ()
    ) -> None:
        """quorum-state says so, on stable storage, when this returns. Raises DiskFailed."""
        write_election_state(
            self.folder.partition_path, state, self.disk, kraft_version=kraft_version, voter_ids=voter_ids
        )
        self.election = state
        if state.leader_epoch != self.log.quorum_epoch:
            self.log.note_quorum_epoch(state.leader_epoch)

    def bootstrap_values(self) -> list[bytes] | None:
        """The encoded records for the first leader of an empty log; None where format left none."""
        return bootstrap_values(self.snapshots, self.folder.path)

    def close(self) -> None:
        """Flush, and let others have the folder. Raises DiskFailed, with everything closed all the same."""
        with ExitStack() as stack:
            stack.callback(self.folder.close)
            stack.callback(self.snapshots.close)
            stack.callback(self.log.close)


def _corrupt_snapshots(snapshots: SnapshotStore) -> dict[SnapshotId, CorruptSnapshot]:
    """The snapshots that cannot be read, from the latest down to the first good one."""
    bad: dict[SnapshotId, CorruptSnapshot] = {}
    for snapshot_id in reversed(snapshots.ids):
        try:
            snapshots.verify(snapshot_id)
            break
        except CorruptSnapshot as error:
            bad[snapshot_id] = error
    return bad


def _check_coverage(
    log: MetadataLog, usable: Sequence[SnapshotId], bad: dict[SnapshotId, CorruptSnapshot]
) -> None:
    """Raises where the state at the log's start, or all there is, was in a snapshot that cannot be read."""
    covered = usable[-1].end_offset if usable else 0
    if bad and (covered < log.start_offset or log.end_offset == 0):
        raise next(iter(bad.values()))
    if covered < log.start_offset:
        raise MissingRecords(
            log.folder,
            f"the log begins at offset {log.start_offset}, and no snapshot holds what came before it (the "
            f"latest ends at {covered}); restore the folder from a copy, or, where a majority of the quorum "
            "is whole, move it away and format it anew",
        )


def _follow_snapshot(log: MetadataLog, snapshots: SnapshotStore) -> int | None:
    """Finish what a crash interrupted: a log that is behind the latest snapshot begins anew at its end, and
    snapshots of what the log no longer reaches back to go."""
    reset_to = None
    latest = snapshots.latest
    if latest is not None and _is_ahead(latest, log):
        reset_to = latest.end_offset
        log.reset_to(reset_to)
    for snapshot_id in snapshots.ids:
        if snapshot_id.end_offset < log.start_offset:
            snapshots.delete(snapshot_id)
    return reset_to


def _is_ahead(snapshot_id: SnapshotId, log: MetadataLog) -> bool:
    """Whether the snapshot holds what the log doesn't (Kafka's KafkaRaftLog.truncateToLatestSnapshot)."""
    if snapshot_id.end_offset == log.start_offset == log.end_offset:
        return False
    return (snapshot_id.epoch, snapshot_id.end_offset) > (log.epochs.latest_epoch or 0, log.end_offset)
