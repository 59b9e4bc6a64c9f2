"""Bugs that the simulator has to find: each function breaks one rule of the core or of the disk during a
run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kraft_wire.log.batch import Batch, split_batches
from kraft_wire.log.chain import BatchChain
from kraft_wire.log.epochs import EpochEnd
from kraft_wire.log.recovery import Floor
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.vote_request import PartitionData as VotePartition
from kraft_wire.raft import core, majority, retention, roles
from kraft_wire.raft import effects as raft_effects
from kraft_wire.raft.config import SnapshotInfo
from kraft_wire.raft.election import answer_votes, elections
from kraft_wire.raft.events import Flushed, SnapshotVerified
from kraft_wire.raft.follower import replicate
from kraft_wire.raft.leader import append, leadership, serve_fetch
from kraft_wire.raft.leader.leadership import Leadership, ReplicaProgress
from kraft_wire.raft.log_state import Diverged, LogState
from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Leader, Role, RoleState
from kraft_wire.sim.machines import disk
from kraft_wire.sim.machines.disk import Disk, FlushMark
from kraft_wire.sim.machines.log_port import SimLog
from kraft_wire.sim.machines.snapshot_file import SnapshotFile
from tests.sim.planting import Bugs, Patch

CORE = Bugs()
bug = CORE.bug
planted = CORE.planted


# Flushing.


@bug("FlushedBeforeFetch")
def nothing_waits_for_a_flush(patch: Patch) -> None:
    real = LogState.note_append

    def note_append(log: LogState, epoch: int, next_offset: int, size_bytes: int) -> None:
        real(log, epoch, next_offset, size_bytes)
        log.flushed_offset = log.end_offset

    patch.attribute(LogState, "note_append", note_append)


@bug("MajorityReachedHighWatermark")
def leader_counts_what_it_has_not_flushed(patch: Patch) -> None:
    """As Java's does."""
    real = append._append

    def _append(quorum: QuorumState, data: bytes, record_count: int) -> None:
        real(quorum, data, record_count)
        if quorum.leadership is not None and quorum.leadership.note_flush(quorum.log.end_offset):
            quorum.announce_high_watermark()

    patch.attribute(append, "_append", _append)


@bug("MajorityReachedHighWatermark", "FlushedBeforeFetch")
def a_flush_covers_what_was_appended_meanwhile(patch: Patch) -> None:
    def flushed(quorum: QuorumState, event: Flushed) -> None:
        append.handle_flushed(quorum, Flushed(quorum.log.end_offset, event.generation))

    patch.entry(core._HANDLERS, Flushed, flushed)


@bug("FlushedBeforeFetch", "MajorityReachedHighWatermark")
def a_failed_fsync_is_ignored(patch: Patch) -> None:
    real = SimLog._end_flush

    def _end_flush(self: SimLog, mark: FlushMark, generation: int) -> None:
        if self._node.next_flush_fails:
            self._node.next_flush_fails = False
            self._is_flushing = False
            self._node.take(Flushed(mark.end_offset, generation))
        else:
            real(self, mark, generation)

    patch.attribute(SimLog, "_end_flush", _end_flush)


# What quorum-state says.


def _persist_unless(forgets: Callable[[RoleState], bool]) -> Callable[[QuorumState], None]:
    real = QuorumState.persist

    def persist(self: QuorumState) -> None:
        if not forgets(self.state):
            real(self)

    return persist


@bug("VoteIsDurable")
def a_vote_is_not_persisted(patch: Patch) -> None:
    forgets = _persist_unless(lambda state: state.ROLE is Role.UNATTACHED and state.voted is not None)
    patch.attribute(QuorumState, "persist", forgets)


@bug("VoteIsDurable")
def answers_leave_before_quorum_state_is_written(patch: Patch) -> None:
    real = core.RaftCore.step

    def step(self: core.RaftCore, event: Any, now: Any) -> list[Any]:
        return sorted(real(self, event, now), key=lambda effect: type(effect) is not raft_effects.Reply)

    patch.attribute(core.RaftCore, "step", step)


@bug("VoteIsDurable")
def a_candidates_own_vote_is_not_persisted(patch: Patch) -> None:
    patch.attribute(QuorumState, "persist", _persist_unless(lambda state: state.ROLE is Role.CANDIDATE))


@bug("MonotonicEpoch")
def an_epoch_is_not_persisted(patch: Patch) -> None:
    patch.attribute(QuorumState, "persist", _persist_unless(lambda state: state.ROLE is Role.FOLLOWER))


@bug("LeadershipIsDurable")
def leadership_is_not_persisted(patch: Patch) -> None:
    patch.attribute(QuorumState, "persist", _persist_unless(lambda state: state.ROLE is Role.LEADER))


@bug("OneVote", "SingleLeader")
def a_missing_quorum_state_is_read_as_an_empty_one(patch: Patch) -> None:
    """As Java does."""
    patch.attribute(disk, "no_vote_up_to", lambda known_epochs: -1)


@bug("SingleLeader")
def a_restarted_leader_leads_on(patch: Patch) -> None:
    """KAFKA-10527."""
    real = elections.recovered_role

    def recovered_role(config: Any, election: Any, log: LogState) -> RoleState:
        if election is None or election.leader_id != config.node_id or not config.static_voters.voters:
            return real(config, election, log)
        led = Leadership(config.replica_key, log.end_offset, config.static_voters, 0)
        return Leader(election.leader_epoch, config.node_id, config.endpoints, led)

    patch.attribute(elections, "recovered_role", recovered_role)


# Elections.


@bug("StableLeadership")
def pre_votes_are_skipped(patch: Patch) -> None:
    real = elections.start_election

    def start_election(quorum: QuorumState) -> None:
        real(quorum)
        if quorum.state.ROLE is Role.PROSPECTIVE:
            elections.become_candidate(quorum)

    patch.attribute(elections, "start_election", start_election)


@bug("VoteGoesToTheUpToDate")
def votes_go_to_any_log(patch: Patch) -> None:
    real = roles._grants_free_vote

    def goes_to(state: Any, candidate: ReplicaKey, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return real(state, candidate, True, is_pre_vote)

    patch.attribute(roles, "_grants_free_vote", goes_to)


@bug("VoteGoesToTheUpToDate")
def logs_are_compared_by_their_length_alone(patch: Patch) -> None:
    real = answer_votes._grant

    def _grant(quorum: QuorumState, asked: VotePartition) -> bool:
        if asked.last_offset >= quorum.log.end_offset:
            asked = msgspec.structs.replace(asked, last_offset_epoch=max(asked.last_offset_epoch, 10**9))
        return real(quorum, asked)

    patch.attribute(answer_votes, "_grant", _grant)


@bug("OneVote")
def a_second_vote_in_an_epoch(patch: Patch) -> None:
    def goes_to(state: Any, candidate: ReplicaKey, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return is_up_to_date

    patch.attribute(roles, "_grants_free_vote", goes_to)


@bug("VoteIsDurable")
def a_candidates_higher_epoch_is_not_taken_over(patch: Patch) -> None:
    patch.attribute(answer_votes, "_raise_to", lambda quorum, asked: ErrorCode.NONE)


@bug("MajorityReachedHighWatermark", "SingleLeader", "LeaderCompleteness")
def a_minority_is_enough(patch: Patch) -> None:
    patch.attribute(majority, "majority_of", lambda voter_count: (voter_count + 1) // 2)


@bug("CheckQuorum")
def an_isolated_leader_leads_on(patch: Patch) -> None:
    """KAFKA-15489."""
    real = elections.role_deadline_ms

    def role_deadline_ms(quorum: QuorumState) -> int | None:
        return None if quorum.leadership is not None else real(quorum)

    patch.attribute(elections, "role_deadline_ms", role_deadline_ms)


@bug("VoteGoesToTheUpToDate")
def a_node_that_lost_records_votes(patch: Patch) -> None:
    patch.attribute(QuorumState, "is_log_complete", property(lambda self: True))


@bug("SingleLeader")
def an_epochs_second_leader_is_believed(patch: Patch) -> None:
    def _free(state: Any, candidate: ReplicaKey, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        if is_pre_vote:
            return is_up_to_date
        return state.voted is None and state.leader_id is None and is_up_to_date

    def become_leader(quorum: QuorumState, tally: Any) -> None:
        real(quorum, tally)

    real = elections.become_leader
    patch.attribute(roles, "_grants_free_vote", _free)
    patch.attribute(
        elections, "retry_election_soon", lambda quorum, wait_ms=1: become_leader(quorum, quorum.state.tally)
    )


# Commitment.


@bug("MajorityReachedHighWatermark")
def the_high_watermark_is_one_voter_ahead(patch: Patch) -> None:
    def committed_end(end_offsets: Any) -> int | None:
        known = sorted((end for end in end_offsets if end is not None), reverse=True)
        needed = max(1, len(end_offsets) // 2)
        return known[needed - 1] if len(known) >= needed else None

    patch.attribute(leadership, "committed_end", committed_end)


@bug("MajorityReachedHighWatermark")
def the_high_watermark_is_off_by_one(patch: Patch) -> None:
    real = ReplicaProgress.note_fetch

    def note_fetch(self: ReplicaProgress, fetch_offset: int, log_end_offset: int, now: Any) -> None:
        real(self, fetch_offset, log_end_offset, now)
        if self.end_offset is not None and self.end_offset < log_end_offset:
            self.end_offset += 1

    patch.attribute(ReplicaProgress, "note_fetch", note_fetch)


@bug("MajorityReachedHighWatermark")
def records_of_earlier_epochs_are_committed_by_counting(patch: Patch) -> None:
    """KAFKA-12619; figure 8 of the Raft paper."""

    def _advance(self: Leadership) -> bool:
        end = majority.committed_end([progress.end_offset for progress in self.voters.values()])
        if end is None or (self.high_watermark is not None and end <= self.high_watermark):
            return False
        self.high_watermark = end
        return True

    patch.attribute(Leadership, "_advance", _advance)


@bug("NoDefect")  # the core refuses to announce it
def the_high_watermark_may_go_back(patch: Patch) -> None:
    def _advance(self: Leadership) -> bool:
        end = majority.committed_end([progress.end_offset for progress in self.voters.values()])
        if end is None or end <= self.epoch_start_offset or end == self.high_watermark:
            return False
        self.high_watermark = end
        return True

    patch.attribute(Leadership, "_advance", _advance)


@bug("MajorityReachedHighWatermark")
def followers_are_told_that_everything_is_committed(patch: Patch) -> None:
    real = serve_fetch._partition

    def _partition(quorum: QuorumState, error: Any, high_watermark: int | None) -> Any:
        end_offset = None if high_watermark is None else quorum.log.end_offset
        return real(quorum, error, end_offset)

    patch.attribute(serve_fetch, "_partition", _partition)


@bug("MajorityReachedHighWatermark")
def a_follower_takes_all_it_has_for_committed(patch: Patch) -> None:
    real = QuorumState.follow_high_watermark

    def follow_high_watermark(self: QuorumState, leaders: int) -> None:
        real(self, self.log.end_offset if leaders >= 0 else leaders)

    patch.attribute(QuorumState, "follow_high_watermark", follow_high_watermark)


@bug("MajorityReachedHighWatermark")
def observers_count_for_the_majority(patch: Patch) -> None:
    """KAFKA-16530, the other way round."""
    real = Leadership.note_fetch

    def note_fetch(
        self: Leadership, key: ReplicaKey, fetch_offset: int, log_end_offset: int, now: Any
    ) -> bool:
        advanced = real(self, key, fetch_offset, log_end_offset, now)
        if key.id not in self.voters:
            slowest = min(self.others, key=lambda progress: progress.end_offset or 0, default=None)
            if slowest is not None:
                slowest.end_offset = max(slowest.end_offset or 0, fetch_offset)
                return self._advance()
        return advanced

    patch.attribute(Leadership, "note_fetch", note_fetch)


# The log.


@bug("MajorityReachedHighWatermark")
def a_fetched_epoch_is_not_compared(patch: Patch) -> None:
    real = LogState.compare

    def compare(self: LogState, offset: int, epoch: int) -> Any:
        verdict = real(self, offset, epoch)
        return None if isinstance(verdict, Diverged) and offset <= self.end_offset else verdict

    patch.attribute(LogState, "compare", compare)


@bug("Liveness")
def a_diverging_log_is_not_cut(patch: Patch) -> None:
    patch.attribute(replicate, "_truncate", lambda quorum, leaders: None)


@bug("NoTruncationBelowHighWatermark")
def a_log_is_cut_too_far(patch: Patch) -> None:
    """The log is truncated to its start, committed or not."""

    def _truncate(quorum: QuorumState, leaders: Any) -> None:
        end_offset = quorum.log.start_offset
        quorum.log.truncate_to(end_offset)
        quorum.history.truncate_from_end(end_offset)
        quorum.emit(raft_effects.TruncateLog(end_offset))

    patch.attribute(replicate, "_truncate", _truncate)


@bug("VotersAreThoseOfTheLog", "NoDefect")  # the core refuses a second value for an offset
def voters_outlive_their_record(patch: Patch) -> None:
    from kraft_wire.raft.membership.voter_history import VoterSetHistory

    patch.attribute(VoterSetHistory, "truncate_from_end", lambda self, end_offset: None)


@bug("LogMatching")
def checksums_of_fetched_batches_are_not_looked_at(patch: Patch) -> None:
    from kraft_wire.raft.follower import check_fetched

    def unchecked(data: bytes) -> tuple[list[Batch], int]:
        return split_batches(data, check_crc=False)

    patch.attribute(check_fetched, "split_batches", unchecked)


@bug("WholeBatches")
def an_epochs_end_is_where_the_log_ends(patch: Patch) -> None:
    real = LogState.end_for_epoch

    def end_for_epoch(self: LogState, epoch: int) -> EpochEnd:
        return EpochEnd(real(self, epoch).epoch, self.end_offset)

    patch.attribute(LogState, "end_for_epoch", end_for_epoch)


# Snapshots.


@bug("SnapshotAtLogStart")
def the_log_is_trimmed_without_a_snapshot(patch: Patch) -> None:
    """KAFKA-14238."""

    def _clean(quorum: QuorumState) -> None:
        offset, limit = quorum.committed_offset, quorum.config.max_retention_bytes
        snapshot_bytes = sum(info.size_bytes for info in quorum.log.snapshots)
        is_small = not 0 <= limit < quorum.log.size_bytes + snapshot_bytes
        if quorum.is_trimming or offset <= quorum.log.start_offset or is_small:
            return
        quorum.is_trimming = True
        quorum.log.start_offset = offset
        quorum.log.epochs.truncate_from_start(offset)
        quorum.emit(raft_effects.TrimLog(offset))

    patch.attribute(retention, "_clean", _clean)


@bug("SnapshotAtLogStart")
def the_newest_snapshots_are_deleted(patch: Patch) -> None:
    real = LogState.advance_start

    def advance_start(self: LogState, snapshot_id: Any) -> list[Any]:
        forgotten = real(self, snapshot_id)
        return [*forgotten, *(info.id for info in self.snapshots)]

    patch.attribute(LogState, "advance_start", advance_start)


@bug("Liveness", "SnapshotGoesForward")
def a_stale_snapshot_is_installed(patch: Patch) -> None:
    """The snapshot was requested from an earlier leader; the log has grown since."""

    def verified(quorum: QuorumState, event: SnapshotVerified) -> None:
        info = SnapshotInfo(event.snapshot_id, event.size_bytes, event.last_contained_log_timestamp_ms)
        quorum.log.reset_to_snapshot(info)
        quorum.history.reset_to_snapshot(event.snapshot_id.end_offset - 1, event.control_records)
        quorum.emit(raft_effects.InstallSnapshot(event.snapshot_id))

    patch.entry(core._HANDLERS, SnapshotVerified, verified)


@bug("NoDefect")  # its bytes cannot be loaded
def a_bad_snapshot_is_not_noticed_at_the_start(patch: Patch) -> None:
    patch.attribute(SnapshotFile, "is_whole", property(lambda self: True))


# Recovery.


@bug("ConsistentCommittedData")
def what_was_committed_counts_beyond_what_was_flushed(patch: Patch) -> None:
    def unlimited(floor: Floor, log_end_offset: int) -> int:
        return min(floor.committed_offset, log_end_offset)

    patch.attribute(disk, "committed_end", unlimited)


@bug("ConsistentCommittedData", "NoDefect")  # raft refuses such epochs
def batches_that_do_not_follow_are_believed(patch: Patch) -> None:
    patch.attribute(BatchChain, "_problem", lambda self, batch: "")


@bug("ConsistentCommittedData", "NoDefect")  # a batch cannot be read
def a_torn_tail_is_kept(patch: Patch) -> None:
    patch.attribute(Disk, "_first_bad", lambda self: None)


@bug("LeaderCompleteness")
def damage_is_taken_for_a_torn_tail(patch: Patch) -> None:
    """As Java does."""
    patch.attribute(disk, "is_torn_tail", lambda offset, floor, **found: True)


@bug("LeaderCompleteness")
def what_was_lost_is_not_remembered(patch: Patch) -> None:
    patch.attribute(disk, "lost_below", lambda floor, whole_end_offset: 0)
