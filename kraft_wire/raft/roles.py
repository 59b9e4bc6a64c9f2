"""A node's roles, which of them may follow which, and whom each of them votes for (Kafka's QuorumState).

Every role knows its epoch, the leader and vote of that epoch as far as there are any, where the leader
listens, and the (monotonic) deadline by which something has to happen, None where nothing has to.

Transitions are data: what is not in ``TRANSITIONS`` raises. Following KIP-996, Prospective asks for pre-votes
in its epoch and remembers nothing on disk; only Candidate raises the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import ClassVar, Final

import msgspec

from kraft_wire.log.files import ElectionState
from kraft_wire.raft.errors import IllegalTransition
from kraft_wire.raft.following import Following
from kraft_wire.raft.leadership import Leadership
from kraft_wire.raft.majority import Tally
from kraft_wire.raft.resignation import Resignation
from kraft_wire.raft.voters import Endpoints, ReplicaKey


class Role(Enum):
    """What a node is in its epoch."""

    UNATTACHED = "Unattached"
    PROSPECTIVE = "Prospective"
    CANDIDATE = "Candidate"
    LEADER = "Leader"
    FOLLOWER = "Follower"
    RESIGNED = "Resigned"


class EpochRule(Enum):
    """How a transition's new epoch relates to the old one."""

    SAME = "the same epoch"
    HIGHER = "a higher epoch"
    NOT_LOWER = "the same or a higher epoch"

    def allows(self, old_epoch: int, new_epoch: int) -> bool:
        match self:
            case EpochRule.SAME:
                return new_epoch == old_epoch
            case EpochRule.HIGHER:
                return new_epoch > old_epoch
            case EpochRule.NOT_LOWER:
                return new_epoch >= old_epoch


TRANSITIONS: Final[Mapping[Role, Mapping[Role, EpochRule]]] = {
    Role.UNATTACHED: {
        Role.UNATTACHED: EpochRule.NOT_LOWER,  # the same epoch when it grants its vote
        Role.PROSPECTIVE: EpochRule.SAME,
        Role.FOLLOWER: EpochRule.NOT_LOWER,
    },
    Role.PROSPECTIVE: {
        Role.UNATTACHED: EpochRule.NOT_LOWER,
        Role.CANDIDATE: EpochRule.HIGHER,  # by more than one where quorum-state was lost
        Role.FOLLOWER: EpochRule.NOT_LOWER,
    },
    Role.CANDIDATE: {
        Role.UNATTACHED: EpochRule.HIGHER,
        Role.PROSPECTIVE: EpochRule.SAME,
        Role.LEADER: EpochRule.SAME,
        Role.FOLLOWER: EpochRule.NOT_LOWER,
    },
    Role.LEADER: {
        Role.UNATTACHED: EpochRule.HIGHER,
        Role.FOLLOWER: EpochRule.HIGHER,
        Role.RESIGNED: EpochRule.SAME,
    },
    Role.FOLLOWER: {
        Role.UNATTACHED: EpochRule.HIGHER,
        Role.PROSPECTIVE: EpochRule.SAME,
        Role.FOLLOWER: EpochRule.NOT_LOWER,  # the same epoch when more of the leader's endpoints become known
    },
    Role.RESIGNED: {
        Role.UNATTACHED: EpochRule.HIGHER,
        Role.PROSPECTIVE: EpochRule.SAME,
        Role.FOLLOWER: EpochRule.HIGHER,
    },
}

DURABLE: Final = frozenset({Role.UNATTACHED, Role.CANDIDATE, Role.LEADER, Role.FOLLOWER})
"""Roles that are on stable storage before the node acts in them. The others only forget."""


class Unattached(msgspec.Struct, frozen=True):
    """Knows the epoch, and perhaps who leads it and whom it voted for, but has no leader to follow."""

    ROLE: ClassVar[Role] = Role.UNATTACHED

    leader_endpoints: ClassVar[Endpoints] = ()

    epoch: int
    deadline_ms: int
    leader_id: int | None = None
    voted: ReplicaKey | None = None

    @property
    def election(self) -> ElectionState:
        return _election(self.epoch, self.leader_id, self.voted)

    def grants_vote(self, candidate: ReplicaKey, *, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return _free_vote_goes_to(self, candidate, is_up_to_date, is_pre_vote)


class Prospective(msgspec.Struct, frozen=True):
    """Asks whether it could win an election; keeps leader and vote of its epoch until it knows.

    ``following`` is what it knew of the leader that it followed until now, None where it followed none.
    """

    ROLE: ClassVar[Role] = Role.PROSPECTIVE

    epoch: int
    deadline_ms: int
    tally: Tally
    leader_id: int | None = None
    leader_endpoints: Endpoints = ()
    voted: ReplicaKey | None = None
    following: Following | None = None

    @property
    def election(self) -> ElectionState:
        return _election(self.epoch, self.leader_id, self.voted)

    def grants_vote(self, candidate: ReplicaKey, *, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return _free_vote_goes_to(self, candidate, is_up_to_date, is_pre_vote)


class Candidate(msgspec.Struct, frozen=True):
    """Voted for itself in an epoch that it raised."""

    ROLE: ClassVar[Role] = Role.CANDIDATE

    leader_id: ClassVar[int | None] = None
    leader_endpoints: ClassVar[Endpoints] = ()

    epoch: int
    deadline_ms: int
    tally: Tally
    voted: ReplicaKey

    @property
    def election(self) -> ElectionState:
        return _election(self.epoch, None, self.voted)

    def grants_vote(self, candidate: ReplicaKey, *, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return is_pre_vote and is_up_to_date


class Leader(msgspec.Struct, frozen=True):
    """Leads its epoch. What changes while it does is in ``leadership``."""

    ROLE: ClassVar[Role] = Role.LEADER
    deadline_ms: ClassVar[int | None] = None
    voted: ClassVar[ReplicaKey | None] = None

    epoch: int
    leader_id: int
    leader_endpoints: Endpoints
    leadership: Leadership

    @property
    def election(self) -> ElectionState:
        return _election(self.epoch, self.leader_id, None)

    def grants_vote(self, candidate: ReplicaKey, *, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return False


class Follower(msgspec.Struct, frozen=True):
    """Knows the epoch's leader and where to find it."""

    ROLE: ClassVar[Role] = Role.FOLLOWER

    epoch: int
    leader_id: int
    leader_endpoints: Endpoints
    deadline_ms: int
    voted: ReplicaKey | None = None
    following: Following = msgspec.field(default_factory=Following)

    @property
    def election(self) -> ElectionState:
        return _election(self.epoch, self.leader_id, self.voted)

    def grants_vote(self, candidate: ReplicaKey, *, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return is_pre_vote and is_up_to_date and self.following.wants_successor


class Resigned(msgspec.Struct, frozen=True):
    """Led this epoch and no longer does: it shuts down, or has restarted. Nobody else can lead the epoch."""

    ROLE: ClassVar[Role] = Role.RESIGNED
    voted: ClassVar[ReplicaKey | None] = None

    epoch: int
    leader_id: int
    leader_endpoints: Endpoints
    deadline_ms: int
    resignation: Resignation = msgspec.field(default_factory=Resignation)

    @property
    def election(self) -> ElectionState:
        return _election(self.epoch, self.leader_id, None)

    def grants_vote(self, candidate: ReplicaKey, *, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return is_pre_vote and is_up_to_date


RoleState = Unattached | Prospective | Candidate | Leader | Follower | Resigned


def check_transition(old: RoleState, new: RoleState) -> None:
    """Raise IllegalTransition unless ``new`` may follow ``old``."""
    rule = TRANSITIONS[old.ROLE].get(new.ROLE)
    if rule is None or not rule.allows(old.epoch, new.epoch):
        allowed = f"needs {rule.value}" if rule is not None else "never happens"
        raise IllegalTransition(
            f"{old.ROLE.value} in epoch {old.epoch} to {new.ROLE.value} in epoch {new.epoch} {allowed}"
        )


def _election(epoch: int, leader_id: int | None, voted: ReplicaKey | None) -> ElectionState:
    leader = -1 if leader_id is None else leader_id
    if voted is None:
        return ElectionState(leader_id=leader, leader_epoch=epoch)
    return ElectionState(leader, epoch, voted.id, voted.directory_id)


def _free_vote_goes_to(
    state: Unattached | Prospective, candidate: ReplicaKey, is_up_to_date: bool, is_pre_vote: bool
) -> bool:
    """One vote an epoch, to whoever has at least our log; the same candidate may ask again.

    Where its directory was forgotten (quorum-state's version 0 has no room for it) nobody is known to be the
    same any more, and the vote is spent. Java gives it to any directory of that id (KAFKA-16526)."""
    if is_pre_vote:
        return is_up_to_date
    if state.voted is not None:
        return state.voted == candidate
    return state.leader_id is None and is_up_to_date
