"""Everything that a node keeps: its folder, election state, log and snapshots, opened together and
consistent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from kraft_wire.log.files import ElectionState, MetaProperties
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.folder import Folder, open_folder
from kraft_wire.storage.log import DEFAULT_LOG_CONFIG, LogConfig, MetadataLog
from kraft_wire.storage.opening import Opening, Recovery
from kraft_wire.storage.quorum_state import write_election_state
from kraft_wire.storage.remembered import Remembered
from kraft_wire.storage.snapshots import SnapshotStore, bootstrap_values


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
        lost_below: Remembered,
        no_vote_up_to: Remembered,
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
    ) -> Store:
        """Lock and check the node's folders, recover the log, choose the snapshot to start from.

        A snapshot that cannot be read is set aside, and the one before it counts, as long as the log reaches
        back to it. A node that has peers sets damage aside and starts with what is left, which may be
        nothing; ``lost_below_offset`` says how much its peers have to give it. A quorum-state that can't be
        read is set aside by any node; ``no_vote_up_to_epoch`` says what it must not do then.

        Whether there are peers is in the last VotersRecord, else in ``static_voter_ids``, those of
        controller.quorum.voters, else in quorum-state, by a leader or a vote. More than one server in
        controller.quorum.bootstrap.servers says so as well, where nothing names the voters. A node that finds
        none of that may be alone.

        Raises NotFormatted, WrongFolder, FolderLocked, CorruptFile, DiskFailed, OSError; and, for a node that
        may be alone, CorruptLog, CorruptSnapshot, MissingRecords, without having changed records.
        """
        with ExitStack() as stack:
            folder = open_folder(metadata_dir, node_id=node_id, cluster_id=cluster_id, log_dirs=log_dirs)
            stack.callback(folder.close)
            opening = Opening(folder, config, static_voter_ids, bootstrap_server_count)
            stack.callback(opening.close)
            opening.run()
            opening.settle_losses()
            stack.pop_all()
        assert opening.log is not None, "it is open"
        return cls(
            folder,
            opening.election,
            opening.log,
            opening.snapshots,
            opening.recovery,
            opening.lost_below,
            opening.no_vote_up_to,
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
        """quorum-state says so, on stable storage, when this returns. Raises DiskFailed."""
        write_election_state(
            self.folder.partition_path, state, self.disk, kraft_version=kraft_version, voter_ids=voter_ids
        )
        self.election = state
        if state.leader_epoch != self.log.quorum_epoch:
            self.log.note_quorum_epoch(state.leader_epoch)
        if state.leader_epoch > self.no_vote_up_to_epoch:
            self._no_vote_up_to.forget()

    @property
    def lost_below_offset(self) -> int | None:
        """Damage was cut out of a log that had been durable up to here; None where nothing is missing."""
        return self._lost_below.number

    @property
    def no_vote_up_to_epoch(self) -> int:
        """quorum-state was lost, and this node may have voted in any epoch up to this; -1 where it wasn't."""
        return -1 if self._no_vote_up_to.number is None else self._no_vote_up_to.number

    def forget_loss(self) -> None:
        """The log holds what is needed of it again: this node is as good as any. Raises DiskFailed."""
        self._lost_below.forget()

    def bootstrap_values(self) -> list[bytes] | None:
        """The encoded records for the first leader of an empty log; None where format left none."""
        return bootstrap_values(self.snapshots, self.folder.path)

    def close(self) -> None:
        """Flush, and let others have the folder. Raises DiskFailed, with everything closed all the same."""
        with ExitStack() as stack:
            stack.callback(self.folder.close)
            stack.callback(self.snapshots.close)
            stack.callback(self.log.close)
