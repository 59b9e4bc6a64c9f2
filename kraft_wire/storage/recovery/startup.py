"""Open a node's files when it starts: decide what can be used, and set the rest aside."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

import msgspec

from kraft_wire.log.files import QUORUM_STATE, ElectionState, segment_file_name
from kraft_wire.log.recovery import SnapshotCover, is_ahead, no_vote_up_to, trusted_floor
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.storage.errors import (
    CorruptFile,
    CorruptLog,
    CorruptSnapshot,
    MissingRecords,
    NewerSnapshot,
    QuorumStateBehind,
)
from kraft_wire.storage.folder import Folder
from kraft_wire.storage.log.durable_floor import FILE_NAME as DURABLE_FLOOR
from kraft_wire.storage.log.durable_floor import read_floor
from kraft_wire.storage.log.log_recovery import LOG_IS_MISSING, TornTail, had_records_below
from kraft_wire.storage.log.metadata_log import LogConfig, MetadataLog
from kraft_wire.storage.quorum_state import read_election_state
from kraft_wire.storage.recovery.repair import (
    cut_damage,
    segment_paths,
    set_aside,
    set_log_aside,
    start_log_at,
)
from kraft_wire.storage.recovery.vote_guards import (
    LOST_BELOW,
    LOST_BELOW_UNLESS_ALONE,
    NO_VOTE_UP_TO,
    VoteGuard,
)
from kraft_wire.storage.snapshots.snapshot_store import SnapshotStore

NOBODY: Final = -1


class Recovery(msgspec.Struct):
    """The problems that were found and repaired, for the operator's log.

    Files that were set aside are kept for good under the paths here. ``corrupt_history`` is damage that cost
    only history.
    """

    torn_tail: TornTail | None = None
    corrupt_log: CorruptLog | None = None
    corrupt_history: CorruptLog | None = None
    missing_records: MissingRecords | None = None
    log_set_aside: list[Path] = []
    corrupt_snapshots: list[CorruptSnapshot] = []
    snapshots_set_aside: list[Path] = []
    log_reset_to: int | None = None
    election_state_missing: bool = False
    corrupt_quorum_state: CorruptFile | None = None
    quorum_state_set_aside: Path | None = None
    rebuilt: list[Path] = []


class Startup:
    """The steps of ``Store.open``, and the state that they share."""

    def __init__(
        self,
        folder: Folder,
        config: LogConfig,
        static_voter_ids: Collection[int] = (),
        bootstrap_server_count: int = 0,
    ) -> None:
        self.folder = folder
        self.path = folder.partition_path
        self.recovery = Recovery(rebuilt=folder.rebuilt)
        self.election: ElectionState | None = None
        self.log: MetadataLog | None = None
        self.floor_found = read_floor(self.path)
        if self.floor_found is None and (self.path / DURABLE_FLOOR).exists():
            self.recovery.rebuilt.append(self.path / DURABLE_FLOOR)
        self.lost_below = VoteGuard(self.path / LOST_BELOW, folder.disk)
        self.no_vote_up_to = VoteGuard(self.path / NO_VOTE_UP_TO, folder.disk)
        self.snapshots = SnapshotStore(self.path, folder.disk)
        self.bad = self.find_corrupt_snapshots()
        self.usable = [snapshot_id for snapshot_id in self.snapshots.ids if snapshot_id not in self.bad]
        self._config = config
        self._static_voter_ids = set(static_voter_ids)
        self._bootstrap_server_count = bootstrap_server_count

    def find_corrupt_snapshots(self) -> dict[SnapshotId, CorruptSnapshot]:
        """Return the snapshots that can't be read, the latest first."""
        ids = reversed(self.snapshots.ids)
        found = ((snapshot_id, self.snapshots.problem_of(snapshot_id)) for snapshot_id in ids)
        return {snapshot_id: problem for snapshot_id, problem in found if problem is not None}

    def run(self) -> None:
        """Open everything. Raises what ``Store.open`` raises."""
        self.refuse_newer_snapshot()
        self.recovery.rebuilt += [*self.lost_below.repair(), *self.no_vote_up_to.repair()]
        self.read_quorum_state()
        self.open_log()
        self.check_coverage()
        self.settle_quorum_state()
        self.settle_snapshots()

    def refuse_newer_snapshot(self) -> None:
        """Raise NewerSnapshot if a newer release wrote the newest snapshot: set aside as damaged, it would be
        lost to that release, too."""
        problem = self.bad.get(self.snapshots.ids[-1]) if self.snapshots.ids else None
        if isinstance(problem, NewerSnapshot):
            raise problem

    def close(self) -> None:
        self.snapshots.close()
        self.close_log()

    def close_log(self) -> None:
        log, self.log = self.log, None
        if log is not None:
            log.close()

    @property
    def covered_offset(self) -> int:
        """The end of the newest whole snapshot."""
        return self.usable[-1].end_offset if self.usable else 0

    def check_may_cut(self, damage: CorruptLog) -> None:
        """Raise the damage unless it may be cut out."""
        if self.may_be_alone(damage.voters):
            raise damage

    def check_may_restart(self, problem: CorruptSnapshot | MissingRecords, log: MetadataLog) -> None:
        """Raise the problem unless the log may continue without the lost records, or start again."""
        if not self.may_be_alone(log.voters):
            return
        if isinstance(problem, CorruptSnapshot):
            raise CorruptSnapshot(
                problem.path,
                f"{problem.problem}; nothing was changed. Restore the file from a copy. Without a copy: if "
                f"the other voters are a majority, move {self.folder.path} away and format it again, "
                "and the node fetches everything from the leader; otherwise repair what can be repaired with "
                f"`kraft-wire fsck {self.folder.path} --repair`",
            )
        raise problem

    def record_loss(self, lost_below_offset: int, voters_in_log: VotersRecord | None) -> None:
        """Record, before anything is removed, up to which offset the log had records."""
        self.lost_below.raise_to(lost_below_offset)

    def may_be_alone(self, in_log: VotersRecord | None) -> bool:
        """Whether no other node is known that has what this node may have lost."""
        voters = self.last_voters(in_log)
        ids = self._static_voter_ids if voters is None else {voter.voter_id for voter in voters.voters}
        if voters is None and not ids:
            # The voters may be in the damaged snapshot only.
            return not (self._followed_another() or self._was_in_a_quorum())
        return ids <= {self.folder.properties.node_id}

    def _was_in_a_quorum(self) -> bool:
        """Whether the node ran with peers. The snapshot of format doesn't prove it: the node may never have
        run."""
        has_run = any(snapshot_id.end_offset for snapshot_id in self.snapshots.ids)
        return has_run and self._bootstrap_server_count > 1

    def _followed_another(self) -> bool:
        if self.election is None:
            return False
        return not {self.election.leader_id, self.election.voted_id} <= {
            NOBODY,
            self.folder.properties.node_id,
        }

    def last_voters(self, in_log: VotersRecord | None) -> VotersRecord | None:
        """Return the last VotersRecord of the log, or else of the newest whole snapshot."""
        if in_log is not None or not self.usable:
            return in_log
        messages = self.snapshots.control(self.usable[-1])
        return next((message for message in messages if isinstance(message, VotersRecord)), None)

    def read_quorum_state(self) -> None:
        try:
            self.election = read_election_state(self.path)
        except CorruptFile as error:
            self.recovery.corrupt_quorum_state = error

    def open_log(self) -> None:
        try:
            self.check_log_is_there()
            self.log = self._open_log()
        except QuorumStateBehind as error:
            self.recovery.corrupt_quorum_state = error
            self.election = None
            self.open_log()
        except CorruptLog as error:
            if error.readable_tail is not None:
                self.recovery.corrupt_history = error
                self.recovery.log_set_aside += start_log_at(self.path, error.readable_tail, self.folder.disk)
            else:
                self.check_may_cut(error)
                self.recovery.corrupt_log = error
                self.record_loss(max(error.lost_below_offset, *self._known_ends()), error.voters)
                self.recovery.log_set_aside += cut_damage(self.path, error, self.folder.disk)
            self.log = self._open_log()

    def check_log_is_there(self) -> None:
        """Raise CorruptLog if all segments are missing and leader-epoch-checkpoint says that there were
        records. The durable floor is checked elsewhere, if it counts."""
        floor = self.floor_found
        is_floor_believed = floor is not None and trusted_floor(floor, self.election_epoch) == floor
        lost_below_offset = 0 if is_floor_believed else had_records_below(self.path)
        if lost_below_offset and not segment_paths(self.path):
            path = self.path / segment_file_name(self.covered_offset)
            raise CorruptLog(path, 0, self.covered_offset, LOG_IS_MISSING, lost_below_offset, None)

    @property
    def election_epoch(self) -> int | None:
        """The leader epoch in quorum-state; None if there is no such file."""
        return None if self.election is None else self.election.leader_epoch

    def _open_log(self) -> MetadataLog:
        return MetadataLog.open(
            self.path,
            self.folder.disk,
            config=self._config,
            quorum_epoch=self.election_epoch,
            empty_start_offset=self.covered_offset,
            covered=self._covered(),
        )

    def _covered(self) -> SnapshotCover | None:
        ids = self.snapshots.ids
        return SnapshotCover(self.usable[-1], ids[-1].end_offset) if self.usable else None

    def _known_ends(self) -> Iterable[int]:
        """Return the offsets up to which the log was durable once, by other files."""
        return (
            0 if self.floor_found is None else self.floor_found.offset,
            *(snapshot_id.end_offset for snapshot_id in self.snapshots.ids),
        )

    def check_coverage(self) -> None:
        """Make sure that a readable snapshot holds the state at the log's start."""
        assert self.log is not None, "it is open"
        problem = self._coverage_problem(self.log)
        if problem is None:
            return
        self.check_may_restart(problem, self.log)
        if isinstance(problem, MissingRecords):
            self.recovery.missing_records = problem
        self.record_loss(max(self.log.end_offset, *self._known_ends()), self.log.voters)
        if self.is_covered(self.log):
            return
        self.close_log()
        self.recovery.log_set_aside += set_log_aside(self.path, self.folder.disk)
        self.log = self._open_log()

    def _coverage_problem(self, log: MetadataLog) -> CorruptSnapshot | MissingRecords | None:
        was_ahead = any(snapshot_id.end_offset > log.end_offset for snapshot_id in self.bad)
        if self.bad and (was_ahead or not self.is_covered(log)):
            return next(iter(self.bad.values()))
        if not self.is_covered(log):
            return MissingRecords(
                log.folder,
                f"the log begins at offset {log.start_offset}, and no snapshot holds what came before it "
                f"(the latest ends at {self.covered_offset}); restore the folder from a copy",
            )
        return None

    def is_covered(self, log: MetadataLog) -> bool:
        return self.covered_offset >= log.start_offset and not (self.bad and log.end_offset == 0)

    def settle_quorum_state(self) -> None:
        """Record in which epochs this node may have voted, before an unreadable quorum-state is set aside."""
        assert self.log is not None, "it is open"
        corrupt = self.recovery.corrupt_quorum_state
        if corrupt is None:
            self.recovery.election_state_missing = self.election is None and self._had_election_state()
        if corrupt is not None or self.recovery.election_state_missing:
            known = (
                self.log.epochs.latest_epoch or 0,
                0 if self.floor_found is None else self.floor_found.quorum_epoch,
                *(snapshot_id.epoch for snapshot_id in self.snapshots.ids),
            )
            self.no_vote_up_to.raise_to(no_vote_up_to(known))
        if corrupt is not None:
            self.recovery.quorum_state_set_aside = set_aside(self.path / QUORUM_STATE, self.folder.disk)
        if self.election is not None and self.election.leader_epoch > (self.no_vote_up_to.number or 0):
            self.no_vote_up_to.remove()

    def _had_election_state(self) -> bool:
        """Whether other files show that there was a quorum-state. A node may have voted while its log was
        empty."""
        assert self.log is not None, "it is open"
        known_epoch = 0 if self.floor_found is None else self.floor_found.quorum_epoch
        return self.log.end_offset > 0 or known_epoch > 0 or self.lost_below.number is not None

    def settle_snapshots(self) -> None:
        assert self.log is not None, "it is open"
        self.recovery.torn_tail = self.log.torn_tail
        self.recovery.corrupt_snapshots = list(self.bad.values())
        self.recovery.snapshots_set_aside = [
            self.snapshots.set_aside(snapshot_id) for snapshot_id in self.bad
        ]
        self.recovery.log_reset_to = _follow_snapshot(self.log, self.snapshots)

    def settle_losses(self) -> None:
        """Remove the record of a loss when the log holds as much again, and for a node that is alone."""
        assert self.log is not None, "it is open"
        unless_alone = VoteGuard(self.path / LOST_BELOW_UNLESS_ALONE, self.folder.disk)
        if unless_alone.number is not None:
            is_static = self.last_voters(self.log.voters) is None
            if not is_static or self._static_voter_ids != {self.folder.properties.node_id}:
                self.lost_below.raise_to(unless_alone.number)
            unless_alone.remove()
        if self.lost_below.number is not None and self.log.flushed_offset >= self.lost_below.number:
            self.lost_below.remove()


def _follow_snapshot(log: MetadataLog, snapshots: SnapshotStore) -> int | None:
    """Finish what a crash interrupted: a log that ends before the latest snapshot starts again at the
    snapshot's end; snapshots that end before the log's start are deleted."""
    reset_to = None
    latest = snapshots.latest
    if latest is not None and is_ahead(
        latest, log.start_offset, log.end_offset, log.epochs.latest_epoch or 0
    ):
        reset_to = latest.end_offset
        log.reset_to(reset_to)
    for snapshot_id in snapshots.ids:
        if snapshot_id.end_offset < log.start_offset:
            snapshots.delete(snapshot_id)
    return reset_to
