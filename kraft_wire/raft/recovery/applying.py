"""Write a plan into a folder, so that it can be taken up again after an interruption anywhere.

The steps: a marker with the plan; quorum-state in the plan's epoch; the plan's batch; the marker again. Until
the batch is there the node is a voter of the old quorum, which has no majority, and the next attempt finds
the folder's log as it was. The caller keeps a copy of the folder before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from kraft_wire.log.files import ElectionState
from kraft_wire.raft.recovery.evidence import FolderEvidence, KnownVoter, PastRecovery, url_of
from kraft_wire.raft.recovery.plan import Plan, RecoveryError, Stage


class Marker(msgspec.Struct, frozen=True):
    """The plan that was last applied to a folder, and the recovery before it. The folder keeps both."""

    state: Literal["begun", "applied"]
    plan: Plan
    earlier: PastRecovery | None = None

    def is_of(self, plan: Plan) -> bool:
        """Whether this plan was applied, or begun."""
        return self.plan == plan


def past_recovery(marker: Marker | None) -> PastRecovery | None:
    """Return the last recovery of a lost majority that a folder remembers: a plan that only moves voters is
    none, and leaves the one before it."""
    if marker is None:
        return None
    if marker.plan.is_majority_left:
        return marker.earlier
    return PastRecovery(marker.plan.hash, marker.plan.epoch, marker.plan.base_offset)


class PlannedFiles(Protocol):
    """The files of a folder that nobody else works on. Only ``append`` returns before all is on stable
    storage."""

    @property
    def log_end_offset(self) -> int: ...
    @property
    def marker(self) -> Marker | None: ...
    def mark(self, marker: Marker) -> None: ...
    def write_election_state(
        self, state: ElectionState, *, kraft_version: int, voter_ids: Sequence[int]
    ) -> None: ...
    def append(self, batch: bytes) -> None: ...
    def flush(self) -> None: ...
    def forget_loss(self) -> None: ...


def is_applied(plan: Plan, stage: Stage, marker: Marker | None) -> bool:
    """Whether the plan was written to the end. A node that has run since has all of it."""
    if stage == "moved on":
        return True
    return stage == "written" and marker is not None and marker.is_of(plan) and marker.state == "applied"


def write_plan(plan: Plan, stage: Stage, files: PlannedFiles) -> None:
    """Write what is missing of a plan: the folder was "untouched" or the plan is "written" in part.

    Raises RecoveryError, with nothing changed, if the log isn't where it was at that stage; what the files
    raise.
    """
    is_untouched = stage == "untouched"
    if files.log_end_offset != (plan.base_offset if is_untouched else plan.end_offset):
        raise RecoveryError("the folder changed while the plan was applied: a process ran on it")
    before = files.marker
    earlier = before.earlier if before is not None and before.is_of(plan) else past_recovery(before)
    files.mark(Marker("begun", plan, earlier))
    if is_untouched:
        files.write_election_state(
            plan.election_state(), kraft_version=plan.kraft_version, voter_ids=plan.voter_ids
        )
        files.append(plan.batch())
        files.flush()
    files.forget_loss()
    files.mark(Marker("applied", plan, earlier))


def deviation(marker: Marker, found: FolderEvidence) -> str:
    """Return how a folder differs from the plan that was applied to it; empty if it doesn't.

    A node that has run since has all of the plan, though a crash may have kept the marker from saying so.
    Raises RecoveryError for a plan that was changed, or is for another folder.
    """
    plan = marker.plan
    plan.check()
    stage = plan.stage_of(found)
    if not is_applied(plan, stage, marker):
        return (
            f"plan {plan.hash[:12]} was begun and isn't finished: run `kraft-wire quorum recover apply` again"
        )
    if found.problems:
        return found.problems[0]
    if found.quorum_epoch < plan.epoch:
        return f"quorum-state has epoch {found.quorum_epoch}, and the plan {plan.epoch}"
    if stage == "written" and not _has_voters(found, plan):
        return f"its voters are {voters_in(found)}, and not those of the plan"
    return ""


def _has_voters(found: FolderEvidence, plan: Plan) -> bool:
    if plan.kind == "static":
        return found.static_voter_ids == plan.voter_ids
    return found.voters == plan.voters


def voters_in(found: FolderEvidence) -> str:
    """Return the voters in a folder's log, or else those in its quorum-state, as text."""
    return named_voters(found.voters) or ", ".join(map(str, found.static_voter_ids))


def named_voters(voters: Sequence[KnownVoter]) -> str:
    """Return the voters' ids, addresses and directory ids, as text."""
    return "; ".join(
        f"{voter.id} at {','.join(map(url_of, voter.endpoints)) or 'unknown'} "
        f"(directory {voter.directory_id})"
        for voter in voters
    )
