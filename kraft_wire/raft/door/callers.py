"""Tell known voters from strangers: nothing on PLAINTEXT proves who sends a request, but strangers don't know
the directory ids."""

from __future__ import annotations

from kraft_wire.raft.membership.voters import ReplicaKey
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Follower, Leader


def is_known_voter(quorum: QuorumState, caller: ReplicaKey) -> bool:
    """Whether the caller is a voter, by id and directory id; while changes of the voters aren't committed,
    also one of the voters before them. Static voters are known by their ids alone."""
    return any(voters.is_voter(caller) for voters in quorum.possible_voters)


def hears_leader(quorum: QuorumState) -> bool:
    """Whether a leader is at work: this node, or one that has answered it and isn't known to be gone."""
    match quorum.state:
        case Leader():
            return True
        case Follower(following=following):
            return not following.wants_successor
        case _:
            return False
