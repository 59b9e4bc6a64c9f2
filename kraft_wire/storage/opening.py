"""Opening a node's files: what can be used of them, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

import msgspec

from kraft_wire.log.files import QUORUM_STATE, ElectionState, segment_file_name
from kraft_wire.log.recovery import Covered, believed, is_ahead, no_vote_up_to
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.storage.durable_floor import FILE_NAME as DURABLE_FLOOR
from kraft_wire.storage.durable_floor import read_floor
from kraft_wire.storage.errors import (
    CorruptFile,
    CorruptLog,
    CorruptSnapshot,
    MissingRecords,
    QuorumStateBehind,
)
from kraft_wire.storage.folder import Folder
from kraft_wire.storage.log import LogConfig, MetadataLog
from kraft_wire.storage.quorum_state import read_election_state
from kraft_wire.storage.recovery import LOG_IS_GONE, TornTail, had_records_below
from kraft_wire.storage.remembered import LOST_BELOW, LOST_BELOW_UNLESS_ALONE, NO_VOTE_UP_TO, Remembered
from kraft_wire.storage.repair import begin_at, cut_damage, segment_paths, set_aside, set_log_aside
from kraft_wire.storage.snapshots import SnapshotStore

NOBODY: Final = -1


class Recovery(msgspec.Struct):
    """What opening found to be not as a clean stop leaves it, for the operator's log. What is listed as set
    aside is kept under these names, for good. ``corrupt_history``: damage that cost nothing else."""

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
    made_anew: list[Path] = []


class Opening:
    """The steps of ``Store.open``, and what they share."""

    def __init__(
        self,
        folder: Folder,
        config: LogConfig,
        static_voter_ids: Collection[int] = (),
        bootstrap_server_count: int = 0,
    ) -> None:
        self.folder = folder
        self.path = folder.partition_path
        self.recovery = Recovery(made_anew=folder.mended)
        self.election: ElectionState | None = None
        self.log: MetadataLog | None = None
        self.floor_found = read_floor(self.path)
        if self.floor_found is None and (self.path / DURABLE_FLOOR).exists():
            self.recovery.made_anew.append(self.path / DURABLE_FLOOR)
        self.lost_below = Remembered(self.path / LOST_BELOW, folder.disk)
        self.no_vote_up_to = Remembered(self.path / NO_VOTE_UP_TO, folder.disk)
        self.snapshots = SnapshotStore(self.path, folder.disk)
        self.bad = self.find_corrupt_snapshots()
        self.usable = [snapshot_id for snapshot_id in self.snapshots.ids if snapshot_id not in self.bad]
        self._config = config
        self._static_voter_ids = set(static_voter_ids)
        self._bootstrap_server_count = bootstrap_server_count

    def find_corrupt_snapshots(self) -> dict[SnapshotId, CorruptSnapshot]:
        """Those that cannot be read, the latest first."""
        ids = reversed(self.snapshots.ids)
        found = ((snapshot_id, self.snapshots.problem_of(snapshot_id)) for snapshot_id in ids)
        return {snapshot_id: problem for snapshot_id, problem in found if problem is not None}

    def run(self) -> None:
        """Raises what ``Store.open`` does."""
        self.recovery.made_anew += [*self.lost_below.mend(), *self.no_vote_up_to.mend()]
        self.read_quorum_state()
        self.open_log()
        self.check_coverage()
        self.settle_quorum_state()
        self.settle_snapshots()

    def close(self) -> None:
        self.snapshots.close()
        self.close_log()

    def close_log(self) -> None:
        log, self.log = self.log, None
        if log is not None:
            log.close()

    @property
    def covered_offset(self) -> int:
        """Where the newest good snapshot ends."""
        return self.usable[-1].end_offset if self.usable else 0

    def check_may_cut(self, damage: CorruptLog) -> None:
        """Raise the damage unless it can be cut out."""
        if self.may_be_alone(damage.voters):
            raise damage

    def check_may_begin_anew(self, problem: CorruptSnapshot | MissingRecords, log: MetadataLog) -> None:
        """Raise the problem unless the log can do without what is lost, or begin anew."""
        if not self.may_be_alone(log.voters):
            return
        if isinstance(problem, CorruptSnapshot):
            raise CorruptSnapshot(
                problem.path,
                f"{problem.problem}; nothing was changed. Restore the file from a copy. Without one, where "
                f"others have a majority of the quorum, move {self.folder.path} away and format it anew: the "
                f"node fetches everything from the leader. Elsewhere, `kraft-wire fsck {self.folder.path} "
                "--repair` does what can be done",
            )
        raise problem

    def remember_loss(self, lost_below_offset: int, voters_in_log: VotersRecord | None) -> None:
        """Before anything is lost."""
        self.lost_below.remember(lost_below_offset)

    def may_be_alone(self, in_log: VotersRecord | None) -> bool:
        """Whether nobody is known who has what this node may have lost."""
        voters = self.last_voters(in_log)
        ids = self._static_voter_ids if voters is None else {voter.voter_id for voter in voters.voters}
        if voters is None and not ids:
            # They may be in nothing but the snapshot that is damaged.
            return not (self._followed_another() or self._was_in_a_quorum())
        return ids <= {self.folder.properties.node_id}

    def _was_in_a_quorum(self) -> bool:
        """What format left is not enough: whether anybody began with it, nobody knows."""
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
        """The log's, else those of the newest good snapshot."""
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
            if error.rest is not None:
                self.recovery.corrupt_history = error
                self.recovery.log_set_aside += begin_at(self.path, error.rest, self.folder.disk)
            else:
                self.check_may_cut(error)
                self.recovery.corrupt_log = error
                self.remember_loss(max(error.lost_below_offset, *self._known_ends()), error.voters)
                self.recovery.log_set_aside += cut_damage(self.path, error, self.folder.disk)
            self.log = self._open_log()

    def check_log_is_there(self) -> None:
        """Where the durable floor counts for nothing, the epochs still say that there were records. Raises
        CorruptLog."""
        floor = self.floor_found
        is_floor_believed = floor is not None and believed(floor, self.election_epoch) == floor
        lost_below_offset = 0 if is_floor_believed else had_records_below(self.path)
        if lost_below_offset and not segment_paths(self.path):
            path = self.path / segment_file_name(self.covered_offset)
            raise CorruptLog(path, 0, self.covered_offset, LOG_IS_GONE, lost_below_offset, None)

    @property
    def election_epoch(self) -> int | None:
        """The leader epoch in quorum-state; None where there is none."""
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

    def _covered(self) -> Covered | None:
        ids = self.snapshots.ids
        return Covered(self.usable[-1], ids[-1].end_offset) if self.usable else None

    def _known_ends(self) -> Iterable[int]:
        """Up to where the log was durable once, by the other files."""
        return (
            0 if self.floor_found is None else self.floor_found.offset,
            *(snapshot_id.end_offset for snapshot_id in self.snapshots.ids),
        )

    def check_coverage(self) -> None:
        """Make sure that the state at the log's start is in a snapshot that can be read."""
        assert self.log is not None, "it is open"
        problem = self._coverage_problem(self.log)
        if problem is None:
            return
        self.check_may_begin_anew(problem, self.log)
        if isinstance(problem, MissingRecords):
            self.recovery.missing_records = problem
        self.remember_loss(max(self.log.end_offset, *self._known_ends()), self.log.voters)
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
        """What this node may have voted is remembered before a quorum-state that can't be read goes."""
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
            self.no_vote_up_to.remember(no_vote_up_to(known))
        if corrupt is not None:
            self.recovery.quorum_state_set_aside = set_aside(self.path / QUORUM_STATE, self.folder.disk)
        if self.election is not None and self.election.leader_epoch > (self.no_vote_up_to.number or 0):
            self.no_vote_up_to.forget()

    def _had_election_state(self) -> bool:
        """Whether there are traces of one. A node may have voted before anything was in its log."""
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
        """What was lost isn't missed where the log holds as much again; nor, where somebody had the damage
        cut out, by a node that is alone."""
        assert self.log is not None, "it is open"
        unless_alone = Remembered(self.path / LOST_BELOW_UNLESS_ALONE, self.folder.disk)
        if unless_alone.number is not None:
            is_static = self.last_voters(self.log.voters) is None
            if not is_static or self._static_voter_ids != {self.folder.properties.node_id}:
                self.lost_below.remember(unless_alone.number)
            unless_alone.forget()
        if self.lost_below.number is not None and self.log.flushed_offset >= self.lost_below.number:
            self.lost_below.forget()


def _follow_snapshot(log: MetadataLog, snapshots: SnapshotStore) -> int | None:
    """Finish what a crash interrupted: a log that is behind the latest snapshot begins anew at its end, and
    snapshots of what the log no longer reaches back to go."""
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
