"""The roles of a node, the transitions between them, and their votes (Kafka's QuorumState).

Every role knows its epoch, the leader and the vote of that epoch if there are any, the leader's endpoints,
and the monotonic deadline by which something has to happen, None if nothing has to.

Transitions are data: a transition that isn't in ``TRANSITIONS`` raises an error. As in KIP-996, Prospective
asks for pre-votes in its epoch and writes nothing to disk; only Candidate raises the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple

import msgspec

from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.raft.errors import IllegalTransition
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.majority import Tally
from kraft_wire.raft.membership.voters import Endpoints, Peer, ReplicaKey


class Role(Enum):
    """The role of a node in its epoch."""

    UNATTACHED = "Unattached"
    PROSPECTIVE = "Prospective"
    CANDIDATE = "Candidate"
    LEADER = "Leader"
    FOLLOWER = "Follower"
    RESIGNED = "Resigned"


class EpochRule(Enum):
    """The relation between a transition's new epoch and the old one."""

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
        Role.CANDIDATE: EpochRule.HIGHER,  # by more than one if quorum-state was lost
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
"""The roles whose epoch and vote are on stable storage before the node acts in them. The others only forget
state."""

NOWHERE_ELSE: Final[Mapping[int, Peer]] = MappingProxyType({})
"""All voters are at the addresses that the log has, as far as is known."""


class FetchingSnapshot(msgspec.Struct):
    """A snapshot that a follower fetches in pieces.

    ``position`` is the number of bytes received so far. Once ``is_complete``, all bytes are there and the
    snapshot is being verified; then ``next_keepalive_ms`` is when leader and follower have to hear of each
    other again.
    """

    id: SnapshotId
    position: int = 0
    is_complete: bool = False
    next_keepalive_ms: int = 0


class LastFetch(NamedTuple):
    """When a replica fetched last, by the leader's wall clock, and how far its log reached, as it was last
    described; -1 for never. ``since_ms``: the time (monotonic) of the first description that said so.
    ``is_gone``: that is at least a fetch timeout ago."""

    replica: ReplicaKey
    at_ms: int
    end_offset: int
    since_ms: int
    is_gone: bool = False


class Following(msgspec.Struct):
    """The state of a follower that changes while it follows (Kafka's FollowerState).

    ``has_fetched``: the leader has answered a Fetch in this epoch, so it leads and needs no successor.
    ``leader_is_gone``: the leader said that it stops, or the connection to it broke, and it hasn't answered
    since. ``is_first_successor``: the leader resigned and named this node first, so no pre-vote is needed.
    ``has_resigned``: the leader itself has said, in answer to a request, that it no longer leads.
    ``successor_wait_ms``: our wait among the successors that somebody has named in its name with
    EndQuorumEpoch; it counts once the leader says so itself. ``has_updated_leader``: the leader knows this
    voter's endpoints and directory id (kraft.version 0).
    ``next_membership_ms``: from this time on, this node may ask the leader to change its entry among the
    voters. ``last_answer_ms``: when the leader last answered as one, or when this node began to follow it.
    ``not_before_ms``: voters know no pre-votes, so no election starts before this time unless the leader has
    resigned. ``earlier_directory``: what the leader last said of the voter with this node's id and another
    directory. ``vain_joins``, ``vain_updates``: how many answers in a row have asked this node to join, or to
    change its entry, later.
    """

    has_fetched: bool = False
    leader_is_gone: bool = False
    is_first_successor: bool = False
    has_resigned: bool = False
    successor_wait_ms: int | None = None
    has_updated_leader: bool = False
    next_membership_ms: int = 0
    last_answer_ms: int = 0
    not_before_ms: int = 0
    earlier_directory: LastFetch | None = None
    vain_joins: int = 0
    vain_updates: int = 0
    snapshot: FetchingSnapshot | None = None

    @property
    def wants_successor(self) -> bool:
        """Whether an election is welcome (KIP-996). Counting a broken connection as a reason is our rule."""
        return self.leader_is_gone or not self.has_fetched


class Resignation(msgspec.Struct):
    """The state of a leader that has resigned: it notifies the other voters (Kafka's ResignedState).

    ``successors`` are the other voters, the best candidate first. ``unacknowledged`` are the ids of those
    that haven't acknowledged the resignation yet.
    """

    successors: tuple[ReplicaKey, ...] = ()
    unacknowledged: set[int] = msgspec.field(default_factory=set)


class Unattached(msgspec.Struct, frozen=True):
    """A node that knows the epoch, and perhaps its leader and its own vote, but has no leader to follow."""

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
        return _grants_free_vote(self, candidate, is_up_to_date, is_pre_vote)


class Prospective(msgspec.Struct, frozen=True):
    """A node that asks for pre-votes. It keeps the leader and the vote of its epoch until it knows the
    result.

    ``following`` is its state as a follower until now, None if it followed no leader. ``unaware`` are the
    voters that don't know pre-votes. ``tried`` are the pairs of a voter and a bootstrap server where it was
    searched; ``found`` are the voters that answered there.
    """

    ROLE: ClassVar[Role] = Role.PROSPECTIVE

    epoch: int
    deadline_ms: int
    tally: Tally
    leader_id: int | None = None
    leader_endpoints: Endpoints = ()
    voted: ReplicaKey | None = None
    following: Following | None = None
    unaware: frozenset[int] = frozenset()
    tried: frozenset[tuple[int, Peer]] = frozenset()
    found: Mapping[int, Peer] = NOWHERE_ELSE

    @property
    def election(self) -> ElectionState:
        return _election(self.epoch, self.leader_id, self.voted)

    def grants_vote(self, candidate: ReplicaKey, *, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return _grants_free_vote(self, candidate, is_up_to_date, is_pre_vote)


class Candidate(msgspec.Struct, frozen=True):
    """A node that raised the epoch and voted for itself. ``asked_by_id`` are the voters that don't want its
    directory id (KIP-853's draft: their kraft.version is 0). ``found`` are the voters that gave their
    pre-votes at a bootstrap server."""

    ROLE: ClassVar[Role] = Role.CANDIDATE

    leader_id: ClassVar[int | None] = None
    leader_endpoints: ClassVar[Endpoints] = ()

    epoch: int
    deadline_ms: int
    tally: Tally
    voted: ReplicaKey
    asked_by_id: frozenset[int] = frozenset()
    found: Mapping[int, Peer] = NOWHERE_ELSE

    @property
    def election(self) -> ElectionState:
        return _election(self.epoch, None, self.voted)

    def grants_vote(self, candidate: ReplicaKey, *, is_up_to_date: bool, is_pre_vote: bool) -> bool:
        return is_pre_vote and is_up_to_date


class Leader(msgspec.Struct, frozen=True):
    """The leader of its epoch. ``leadership`` holds the state that changes while it leads."""

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
    """A node that knows the epoch's leader and its endpoints."""

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
    """A node that led this epoch and no longer does: it shuts down or has restarted. No other node can lead
    the epoch."""

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


def live_leader_id(state: RoleState) -> int | None:
    """Return the leader, as far as a node in this state believes that it leads.

    A prospective node, a follower of a leader that is gone and a leader that has resigned only remember the
    leader of their epoch.
    """
    if isinstance(state, Follower) and state.following.leader_is_gone:
        return None
    return state.leader_id if isinstance(state, (Leader, Follower)) else None


def check_transition(old: RoleState, new: RoleState) -> None:
    """Raise IllegalTransition unless ``new`` may follow ``old``."""
    rule = TRANSITIONS[old.ROLE].get(new.ROLE)
    if rule is None or not rule.allows(old.epoch, new.epoch):
        problem = f"needs {rule.value}" if rule is not None else "is not allowed"
        raise IllegalTransition(
            f"{old.ROLE.value} in epoch {old.epoch} to {new.ROLE.value} in epoch {new.epoch} {problem}"
        )


def _election(epoch: int, leader_id: int | None, voted: ReplicaKey | None) -> ElectionState:
    leader = -1 if leader_id is None else leader_id
    if voted is None:
        return ElectionState(leader_id=leader, leader_epoch=epoch)
    return ElectionState(leader, epoch, voted.id, voted.directory_id)


def _grants_free_vote(
    state: Unattached | Prospective, candidate: ReplicaKey, is_up_to_date: bool, is_pre_vote: bool
) -> bool:
    """Whether a node that follows no leader grants its vote: one vote per epoch, to a candidate whose log is
    at least as up to date. The same candidate may ask again.

    quorum-state of version 0 has no field for the candidate's directory id. After a restart with it no
    candidate equals the one that got the vote, so the vote is spent. Java grants it to any directory of that
    node id (KAFKA-16526).
    """
    if is_pre_vote:
        return is_up_to_date
    if state.voted is not None:
        return state.voted == candidate and is_up_to_date
    return state.leader_id is None and is_up_to_date
