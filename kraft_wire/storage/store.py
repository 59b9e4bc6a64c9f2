"""Open all files of a node together: folder, election state, log and snapshots."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from kraft_wire.log.files import QUORUM_STATE, ElectionState, MetaProperties
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.folder import Folder, open_folder
from kraft_wire.storage.log.metadata_log import DEFAULT_LOG_CONFIG, LogConfig, MetadataLog
from kraft_wire.storage.quorum_state import write_election_state
from kraft_wire.storage.recovery.startup import Recovery, Startup
from kraft_wire.storage.recovery.vote_guards import VoteGuard
from kraft_wire.storage.snapshots.snapshot_store import SnapshotStore, bootstrap_values

QUORUM_STATE_GONE = "if it was deleted, the controller won't vote in epochs in which it may have voted"


class Store:
    """A node's files. ``election`` is None if quorum-state is missing, for a new node or because it was
    lost."""

    def __init__(
        self,
        folder: Folder,
        election: ElectionState | None,
        log: MetadataLog,
        snapshots: SnapshotStore,
        recovery: Recovery,
        lost_below: VoteGuard,
        no_vote_up_to: VoteGuard,
    ) -> None:
        self.folder = folder
        self.election = election
        self.log = log
        self.snapshots = snapshots
        self.recovery = recovery
        self._lost_below = lost_below
        self._no_vote_up_to = no_vote_up_to

    @classmethod
    def open(
        cls,
        metadata_dir: Path,
        *,
        node_id: int,
        cluster_id: str | None = None,
        log_dirs: Sequence[Path] = (),
        config: LogConfig = DEFAULT_LOG_CONFIG,
        static_voter_ids: Collection[int] = (),
        bootstrap_server_count: int = 0,
        when_locked: Callable[[], None] | None = None,
    ) -> Store:
        """Lock and check the node's folders, recover the log, and choose the snapshot to start from.

        A snapshot that can't be read is set aside; the one before it is used if the log reaches back to it. A
        node with peers sets damage aside and starts with what is left, which may be nothing;
        ``lost_below_offset`` says how much it must fetch from its peers. Any node sets an unreadable
        quorum-state aside; ``no_vote_up_to_epoch`` says in which epochs it must not vote.

        A node has peers if the last VotersRecord names others. Without a VotersRecord, ``static_voter_ids``
        (from controller.quorum.voters) decide; without these, a leader or a vote in quorum-state. If nothing
        names the voters, more than one server in controller.quorum.bootstrap.servers means peers, too.
        Otherwise the node may be alone.

        ``when_locked`` is called before anything changes.

        Raises NotFormatted, WrongFolder, FolderLocked, CorruptFile, DiskFailed, OSError. For a node that may
        be alone also CorruptLog, CorruptSnapshot, MissingRecords, with all records unchanged. NewerSnapshot
        if only a newer release can read the newest snapshot; nothing is changed then either.
        """
        with ExitStack() as stack:
            folder = open_folder(
                metadata_dir,
                node_id=node_id,
                cluster_id=cluster_id,
                log_dirs=log_dirs,
                when_locked=when_locked,
            )
            stack.callback(folder.close)
            startup = Startup(folder, config, static_voter_ids, bootstrap_server_count)
            stack.callback(startup.close)
            startup.run()
            startup.settle_losses()
            stack.pop_all()
        assert startup.log is not None, "it is open"
        return cls(
            folder,
            startup.election,
            startup.log,
            startup.snapshots,
            startup.recovery,
            startup.lost_below,
            startup.no_vote_up_to,
        )

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
        """Write quorum-state and wait until it is on stable storage. Raises DiskFailed."""
        write_election_state(
            self.folder.partition_path, state, self.disk, kraft_version=kraft_version, voter_ids=voter_ids
        )
        self.election = state
        if state.leader_epoch != self.log.quorum_epoch:
            self.log.note_quorum_epoch(state.leader_epoch)
        if state.leader_epoch > self.no_vote_up_to_epoch:
            self._no_vote_up_to.remove()

    def check_files(self) -> None:
        """Raise FileGone if somebody else deleted, moved or replaced a file that a restart needs: without it
        records or votes would be lost, or the node wouldn't start. Files that are made again don't count.

        May run in another thread.
        """
        self.folder.check_files()
        self.log.check_files()
        self.snapshots.check_latest_present()
        self._lost_below.check_present()
        self._no_vote_up_to.check_present()
        if self.election is not None:
            self.disk.check_present(self.folder.partition_path / QUORUM_STATE, None, QUORUM_STATE_GONE)

    @property
    def lost_below_offset(self) -> int | None:
        """The offset up to which the log was durable before damage was cut out of it; None if nothing is
        missing."""
        return self._lost_below.number

    @property
    def no_vote_up_to_epoch(self) -> int:
        """The last epoch in which this node may have voted before it lost quorum-state; -1 if quorum-state is
        whole."""
        return -1 if self._no_vote_up_to.number is None else self._no_vote_up_to.number

    def forget_loss(self) -> None:
        """Note that the log holds again what was lost, so that this node may vote. Raises DiskFailed."""
        self._lost_below.remove()

    def bootstrap_values(self) -> list[bytes] | None:
        """Return the encoded records for the first leader of an empty log; None if format left none."""
        return bootstrap_values(self.snapshots, self.folder.path)

    def close(self) -> None:
        """Flush and unlock. Raises DiskFailed, with everything closed."""
        with ExitStack() as stack:
            stack.callback(self.folder.close)
            stack.callback(self.snapshots.close)
            stack.callback(self.log.close)
