"""The plan of a recovery: what is written to which folder, what is lost, what happens to the other nodes."""

from __future__ import annotations

import hashlib
from typing import Final, Literal

import msgspec

from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.files import ElectionState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.leader_change_message import Voter as LeaderChangeVoter
from kraft_wire.raft.membership.voters import VoterSet, voter_set
from kraft_wire.raft.recovery.evidence import FolderEvidence, KnownVoter
from kraft_wire.raft.recovery.node_role import Role

Kind = Literal["lost majority", "endpoints", "static"]
Stage = Literal["untouched", "written", "moved on", "other"]
"""Where a folder is: as it was collected; with the plan's records as its last ones; with records after them,
because the node has led or followed since; or none of these."""
PLAN_VERSION: Final = 1


class RecoveryError(Exception):
    """A recovery that isn't possible, or not with these inputs. The text says why and what to do."""


class Survivor(msgspec.Struct, frozen=True):
    """A folder that was collected, in the order of the ranking. ``problem`` says why it can't be used.

    Damage took the records from ``log_end_offset`` up to ``lost_below``, if that is higher. ``newer`` names a
    registration that only a newer release can read.
    """

    node_id: int
    directory_id: str
    folder: str
    last_epoch: int
    log_end_offset: int
    committed_offset: int
    is_voter: bool
    problem: str = ""
    lost_below: int = -1
    role: Role = "controller"
    newer: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether the log lacks records that it had once."""
        return self.lost_below > self.log_end_offset


class Loss(msgspec.Struct, frozen=True):
    """The records at stake, as offsets from the first up to, but not including, the second.

    ``lost``: committed records that the kept log lacks; None if none are known. ``seen``: records that
    another folder has after them, and that may have been committed. ``kept``: records of the kept log that
    aren't known to be committed; the recovery commits them. ``unknown_from``: what the lost voters
    acknowledged at this offset or above can't be known. ``replaced_from``: what they acknowledged at this
    offset or above, in an epoch after the kept log's last one, can't be known either. All other acknowledged
    records are in the kept log. ``cut``: records after those that some folder had once, until damage took
    them; they may have been committed.
    """

    lost: tuple[int, int] | None
    seen: tuple[int, int] | None
    kept: tuple[int, int] | None
    unknown_from: int
    replaced_from: int
    cut: tuple[int, int] | None = None


class Target(msgspec.Struct, frozen=True):
    """A folder that the plan's records are written to. The batches of its last epoch have the SHA-256
    ``last_digest``: equal logs may begin at different offsets."""

    node_id: int
    directory_id: str
    last_digest: str


class Plan(msgspec.Struct, frozen=True):
    """A plan, as its file holds it.

    The records are written at ``base_offset`` in ``epoch``, after a log whose last record is of
    ``last_epoch``. ``inputs`` are the SHA-256 of the files of ``collect``. ``without`` are the nodes whose
    damaged folders the operator left out of account. ``hash`` is that of everything else.
    """

    version: int
    kind: Kind
    cluster_id: str
    inputs: tuple[str, ...]
    made_at_ms: int
    old_voters: tuple[KnownVoter, ...]
    voters: tuple[KnownVoter, ...]
    leader_id: int
    epoch: int
    base_offset: int
    last_epoch: int
    kraft_version: int
    targets: tuple[Target, ...]
    survivors: tuple[Survivor, ...]
    loss: Loss
    steps: tuple[str, ...]
    without: tuple[int, ...] = ()
    hash: str = ""

    def hashed(self) -> Plan:
        """Return the plan with its hash."""
        return msgspec.structs.replace(self, hash=self._own_hash())

    def check(self) -> None:
        """Raise RecoveryError if the plan was changed since it was made, or is of another release."""
        if self.version != PLAN_VERSION:
            raise RecoveryError(f"its version is {self.version}, known is {PLAN_VERSION}: make it again")
        if self.hash != self._own_hash():
            raise RecoveryError("the plan doesn't match its hash: it was changed. Make it again")

    def _own_hash(self) -> str:
        return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(self, hash=""))).hexdigest()

    @property
    def voter_ids(self) -> tuple[int, ...]:
        """The ids of the new voters."""
        return tuple(voter.id for voter in self.voters)

    @property
    def is_majority_left(self) -> bool:
        """Whether the plan only moves voters: nothing is lost then."""
        return self.kind == "endpoints" or not self.targets

    @property
    def voter_set(self) -> VoterSet:
        """The new voters."""
        return voter_set(voter.to_voter() for voter in self.voters)

    @property
    def end_offset(self) -> int:
        """The offset after the plan's records."""
        return self.base_offset + len(self._records())

    def election_state(self) -> ElectionState:
        """Return quorum-state as the election of the plan's leader would have left it.

        A node that led an epoch doesn't lead it again after its start: it stands in a later one.
        """
        return ElectionState(leader_id=self.leader_id, leader_epoch=self.epoch)

    def batch(self) -> bytes:
        """Return the control batch, as a new leader begins its epoch: the leader, and kraft.version and the
        voters if they are in the log."""
        return encode_control_batch(self.base_offset, self.epoch, self.made_at_ms, self._records())

    def _records(self) -> list[Message]:
        leader = LeaderChangeMessage(
            leader_id=self.leader_id,
            voters=[LeaderChangeVoter(voter_id=voter.id) for voter in self.voters],
            granting_voters=[LeaderChangeVoter(voter_id=target.node_id) for target in self.targets],
        )
        if self.kind == "static":
            return [leader]
        return [leader, KRaftVersionRecord(kraft_version=self.kraft_version), self.voter_set.to_record()]

    def stage_of(self, found: FolderEvidence) -> Stage:
        """Say where a folder is. Raises RecoveryError for a folder that the plan doesn't write to."""
        target = self._target_of(found)
        written = hashlib.sha256(self.batch()).hexdigest()
        for part in found.epochs:
            if (part.epoch, part.start_offset, part.digest) == (self.epoch, self.base_offset, written):
                return "written" if found.log_end_offset == self.end_offset else "moved on"
        if (
            any(part.epoch > self.epoch for part in found.epochs)
            and found.log_start_offset > self.base_offset
        ):
            return "moved on"
        end = (found.log_end_offset, found.last_epoch, last_digest(found))
        return "untouched" if end == (self.base_offset, self.last_epoch, target.last_digest) else "other"

    def _target_of(self, found: FolderEvidence) -> Target:
        if found.cluster_id != self.cluster_id:
            raise RecoveryError(
                f"{found.folder} belongs to cluster {found.cluster_id}, the plan to {self.cluster_id}"
            )
        for target in self.targets:
            if (target.node_id, target.directory_id) == (found.node_id, found.directory_id):
                return target
        names = (
            ", ".join(f"node {t.node_id} (directory {t.directory_id})" for t in self.targets) or "no folder"
        )
        raise RecoveryError(
            f"{found.folder} is of node {found.node_id} (directory {found.directory_id}), and the plan is "
            f"for {names}; leave this folder as it is"
        )


def last_digest(found: FolderEvidence) -> str:
    """Return the SHA-256 of the last epoch's batches; empty for a log without records."""
    return found.epochs[-1].digest if found.epochs else ""
