"""Bugs of the recovery of a lost majority that the simulator has to find: each breaks one rule of the product
during a run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kraft_wire.log.files import ElectionState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.fetch_response import EpochEndOffset
from kraft_wire.raft.follower import replicate
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.recovery import planning
from kraft_wire.raft.recovery.evidence import FolderEvidence, KnownVoter
from kraft_wire.raft.recovery.plan import Kind, Loss, Plan
from kraft_wire.raft.recovery.ranking import problem_of, ranked
from kraft_wire.sim.machines.stopped_folder import PlannedDisk
from tests.sim.planting import Bugs, Patch

RECOVERY = Bugs()
bug = RECOVERY.bug


# Which log goes on.


@bug("RecoveryKeepsTheNewestLog")
def the_longest_log_goes_on(patch: Patch) -> None:
    """Its last epoch may be an older one, whose end a later leader has replaced."""

    def longest(found: Sequence[FolderEvidence]) -> list[FolderEvidence]:
        return sorted(ranked(found), key=lambda each: (bool(problem_of(each, found)), -each.log_end_offset))

    patch.attribute(planning, "ranked", longest)


# What the plan says.


@bug("RecoveryLosesWhatItSays")
def the_kept_log_is_taken_for_committed(patch: Patch) -> None:
    """A later leader, whom no survivor knew, may have replaced its end."""
    real = planning.loss_of

    def loss_of(kept: FolderEvidence, found: Sequence[FolderEvidence]) -> Loss:
        return msgspec.structs.replace(real(kept, found), replaced_from=kept.log_end_offset)

    patch.attribute(planning, "loss_of", loss_of)


@bug("RecoveryEpochIsNew", "SingleLeader", "LogMatching")
def a_plan_takes_the_epoch_after_those_of_the_survivors(patch: Patch) -> None:
    patch.attribute(planning, "EPOCHS_WITHOUT_TRACE", 1)
    patch.attribute(planning, "MOST_EPOCHS_APART", 1)


@bug("Liveness")
def voters_that_are_left_stay_voters(patch: Patch) -> None:
    """They are formatted again, and nobody else has their directory ids."""
    real = planning._plan

    def _plan(
        found: Sequence[FolderEvidence],
        inputs: Sequence[str],
        now_ms: int,
        kind: Kind,
        targets: Sequence[FolderEvidence],
        voters: Sequence[KnownVoter],
        leader: FolderEvidence,
        steps: Sequence[str],
    ) -> Plan:
        ids = {voter.id for voter in voters}
        left = {folder.node_id for folder in found} - ids
        voters = [*voters, *(voter for voter in leader.voters if voter.id in left)]
        return real(found, inputs, now_ms, kind, targets, voters, leader, steps)

    patch.attribute(planning, "_plan", _plan)


# What apply writes.


@bug("RecoveryIsAsPlanned")
def a_plan_leaves_the_voters_as_they_were(patch: Patch) -> None:
    real = Plan._records

    def _records(plan: Plan) -> list[Message]:
        return real(plan)[:-1]

    patch.attribute(Plan, "_records", _records)


@bug("RecoveryIsAsPlanned")
def a_plan_is_not_flushed(patch: Patch) -> None:
    patch.attribute(PlannedDisk, "flush", lambda disk: None)


@bug("RecoveryIsAsPlanned")
def a_plan_leaves_the_epoch_as_it_was(patch: Patch) -> None:
    def write_election_state(
        disk: PlannedDisk, state: ElectionState, *, kraft_version: int, voter_ids: Sequence[int]
    ) -> None:
        pass

    patch.attribute(PlannedDisk, "write_election_state", write_election_state)


@bug("RecoveryIsPossible")
def equal_logs_count_as_equal_folders(patch: Patch) -> None:
    """A folder whose log begins at another offset is refused, when the plan is in another one already."""

    def hashed(plan: Plan) -> Plan:
        targets = tuple(
            msgspec.structs.replace(target, last_digest=plan.targets[0].last_digest)
            for target in plan.targets
        )
        changed = msgspec.structs.replace(plan, targets=targets)
        return msgspec.structs.replace(changed, hash=changed._own_hash())

    patch.attribute(Plan, "hashed", hashed)


# Old disks that turn up.


@bug("NewQuorumLeads")
def a_node_gives_up_committed_records(patch: Patch) -> None:
    def _truncate_to_leader(quorum: QuorumState, call: Call, diverging: EpochEndOffset) -> bool:
        replicate._truncate(quorum, replicate._cut_offset(quorum, diverging))
        return True

    patch.attribute(replicate, "_truncate_to_leader", _truncate_to_leader)
