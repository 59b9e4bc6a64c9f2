"""Bugs of changes of the voters that the simulator has to find: each breaks one rule of the core during a
run."""

from __future__ import annotations

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.raft.election import campaign, removed_leader
from kraft_wire.raft.leader import update_voter, voter_changes
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.leader.pending_change import PendingChange
from kraft_wire.raft.leader.voter_questions import VoterQuestion
from kraft_wire.raft.majority import committed_end
from kraft_wire.raft.membership.voter_history import VoterSetHistory
from kraft_wire.raft.membership.voters import ReplicaKey, Voter, VoterSet, voter_set
from kraft_wire.raft.quorum_state import QuorumState
from tests.sim.planting import Bugs, Patch

MEMBERSHIP = Bugs()
bug = MEMBERSHIP.bug


# One change at a time.


@bug("OneUncommittedChange")
def a_change_need_not_be_committed_before_the_next(patch: Patch) -> None:
    patch.attribute(voter_changes, "changeable_voters", lambda quorum: quorum.history.voters)


@bug("OneUncommittedChange")
def a_new_leader_changes_voters_before_it_has_committed(patch: Patch) -> None:
    """The bug of Raft's own single-server changes, as first published."""

    def committed_voters(history: VoterSetHistory, high_watermark: int | None) -> VoterSet:
        return history.voters

    patch.attribute(voter_changes, "committed_voters", committed_voters)


@bug("OverlappingMajorities")
def a_removal_takes_two(patch: Patch) -> None:
    real = VoterSet.without

    def without(voters: VoterSet, key: ReplicaKey) -> VoterSet:
        left = real(voters, key)
        return VoterSet(left.voters[1:]) if len(left) > 1 else left

    patch.attribute(VoterSet, "without", without)


@bug("OverlappingMajorities")
def a_new_voter_takes_the_place_of_another(patch: Patch) -> None:
    def with_added(voters: VoterSet, voter: Voter) -> VoterSet:
        return voter_set([*voters.voters[1:], voter])

    patch.attribute(VoterSet, "with_added", with_added)


@bug("EntriesAreWanted")
def an_entry_counts_whatever_its_voter_says(patch: Patch) -> None:
    def entry_that_counts(quorum: QuorumState, leadership: Leadership, question: VoterQuestion) -> Voter:
        return question.voter

    patch.attribute(update_voter, "entry_that_counts", entry_that_counts)


@bug("ReconfigurationNotStuck")
def the_end_of_a_change_is_forgotten(patch: Patch) -> None:
    def end(quorum: QuorumState, error: ErrorCode, text: str | None = None) -> None:
        if quorum.pending_change is not None:
            voter_changes.answer(quorum, quorum.pending_change, error, text)

    patch.attribute(voter_changes, "end", end)


@bug("AnsweredChangeIsCommitted")
def a_change_is_answered_when_it_is_appended(patch: Patch) -> None:
    def is_committed(change: PendingChange, high_watermark: int | None) -> bool:
        return change.end_offset is not None

    patch.attribute(PendingChange, "is_committed", is_committed)


# Who counts.


@bug("MajorityReachedHighWatermark")
def observers_are_counted(patch: Patch) -> None:
    real = Leadership._advance

    def _advance(leadership: Leadership) -> bool:
        ends = [progress.end_offset for progress in leadership.voters.values()]
        needed = len(ends)
        ends += [progress.end_offset for progress in leadership.observers.values()]
        ends.sort(key=lambda end: -1 if end is None else end, reverse=True)
        end = committed_end(ends[:needed])
        if end is not None and end > max(leadership.high_watermark or 0, leadership.epoch_start_offset):
            leadership.high_watermark = end
            return True
        return real(leadership)

    patch.attribute(Leadership, "_advance", _advance)


@bug("MajorityReachedHighWatermark")
def a_removed_leader_counts_itself(patch: Patch) -> None:
    def _advance(leadership: Leadership) -> bool:
        counted = {id(progress): progress for progress in (leadership.own, *leadership.voters.values())}
        ends = [progress.end_offset for progress in counted.values()][: max(1, len(leadership.voters))]
        end = committed_end(ends)
        if end is None or end <= max(leadership.high_watermark or 0, leadership.epoch_start_offset):
            return False
        leadership.high_watermark = end
        return True

    patch.attribute(Leadership, "_advance", _advance)


@bug("OverlappingMajorities", "MajorityReachedHighWatermark")
def another_directory_counts_as_the_voter(patch: Patch) -> None:
    """As it was before KIP-853."""

    def matches(key: ReplicaKey, other: ReplicaKey) -> bool:
        return key.id == other.id

    patch.attribute(ReplicaKey, "matches", matches)


@bug("RemovedLeaderResigns")
def a_removed_leader_leads_on(patch: Patch) -> None:
    patch.attribute(removed_leader, "resign_if_removed", lambda quorum: None)


# Whose voters.


@bug("VotersAreThoseOfTheLog")
def the_voters_of_a_snapshot_are_ignored(patch: Patch) -> None:
    patch.attribute(VoterSetHistory, "reset_to_snapshot", lambda history, offset, messages: None)


@bug("VotersAreThoseOfTheLog")
def a_truncated_change_still_counts(patch: Patch) -> None:
    patch.attribute(VoterSetHistory, "truncate_from_end", lambda history, end_offset: None)


# Wrong addresses.


@bug("Liveness")
def voters_are_sought_at_the_addresses_of_the_log_alone(patch: Patch) -> None:
    patch.attribute(campaign, "search_voters", lambda quorum, state: None)
