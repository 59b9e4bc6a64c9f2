"""Start elections, win or lose them, follow and resign (KIP-595, KIP-996).

A quorum of one voter elects itself: it starts an election as soon as it is unattached and wins by its own
vote, so it never waits for a timeout. There is one exception: after it voted for another node it waits one
election timeout.

Starting an election is harmless, because no node that hears from a leader grants a pre-vote. So, unlike in
Java, a node starts one when it starts, when its leader resigns, and when the connection to its leader breaks.
Where voters don't know pre-votes, it waits as Java does (``needs_no_pre_vote``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from kraft_wire.log.files import ElectionState
from kraft_wire.raft.config import RaftConfig
from kraft_wire.raft.door.epoch_limits import LAST_EPOCH
from kraft_wire.raft.effects import BecameLeader, EpochsUsedUp
from kraft_wire.raft.election.turns import turn_deadline_ms, yield_ms
from kraft_wire.raft.leader import append
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.log_state import LogState
from kraft_wire.raft.majority import Tally
from kraft_wire.raft.membership import voter_records
from kraft_wire.raft.membership.voters import Endpoints, ReplicaKey
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import (
    Candidate,
    Follower,
    Following,
    Leader,
    Prospective,
    Resignation,
    Resigned,
    RoleState,
    Unattached,
)

CONTESTED_ELECTION_WAIT_MS: Final = 100
"""The time that a candidate with one vote against it waits for the other voters.

They may never answer, because the leader that has to be replaced is one of them.
"""


def recovered_role(config: RaftConfig, election: ElectionState | None, log: LogState) -> RoleState:
    """Return the role of a restarted node. It never leads again in an epoch that it led (KAFKA-10527)."""
    if election is None:
        return Unattached(log.last_epoch, deadline_ms=0)
    if election.leader_epoch < log.last_epoch:
        return Unattached(log.last_epoch, deadline_ms=0)
    if election.leader_id == config.node_id:
        return Resigned(election.leader_epoch, config.node_id, config.endpoints, deadline_ms=0)
    return Unattached(
        election.leader_epoch,
        deadline_ms=0,
        leader_id=election.leader_id if election.has_leader else None,
        voted=ReplicaKey(election.voted_id, election.voted_directory_id) if election.has_voted else None,
    )


def start(quorum: QuorumState) -> None:
    """Handle the start of the node.

    The epoch that was found in the log is persisted before anything is sent: the node may later lose the part
    of the log that it was found in.
    """
    if quorum.log.last_epoch > quorum.recorded_epoch:
        quorum.persist()
    if quorum.next_epoch > LAST_EPOCH:
        quorum.emit(EpochsUsedUp(quorum.epoch))
    if quorum.may_start_election:
        start_election(quorum)


# Towards leadership.


def start_election(quorum: QuorumState) -> None:
    """Become prospective: ask whether an election could be won. A sole voter becomes leader at once.

    The first successor of a leader that has resigned is a candidate at once: pre-votes protect a leader, and
    that one doesn't lead any more. Java asks for pre-votes even then.
    """
    tally = _own_vote(quorum)
    old = quorum.state
    is_first_successor = (
        isinstance(old, Follower) and old.following.is_first_successor and old.following.has_resigned
    )
    quorum.become(
        Prospective(
            quorum.epoch,
            quorum.election_deadline_ms(),
            tally,
            old.leader_id,
            old.leader_endpoints,
            old.voted,
            old.following if isinstance(old, Follower) else None,
        )
    )
    if tally.is_won or is_first_successor:
        become_candidate(quorum)


def needs_no_pre_vote(quorum: QuorumState, state: Prospective) -> bool:
    """Whether this node may become a candidate without pre-votes: its leader has said that it resigned, or
    hasn't answered for the fetch timeout; after its start, it has heard of none for the election timeout."""
    has_resigned = state.following is not None and state.following.has_resigned
    return has_resigned or quorum.now.monotonic_ms >= _leaderless_from_ms(quorum, state)


def _leaderless_from_ms(quorum: QuorumState, state: Prospective) -> int:
    config, following = quorum.config, state.following
    if following is None:
        return quorum.last_heard_ms + config.election_timeout_ms
    return following.last_answer_ms + config.fetch_timeout_ms


def wait_for_leader(quorum: QuorumState) -> None:
    """End a pre-vote, and look for the leader until an election needs no pre-vote; then wait for our turn."""
    state = quorum.state
    assert isinstance(state, Prospective)
    our_turn_ms = turn_deadline_ms(quorum) - quorum.now.monotonic_ms
    deadline_ms = _leaderless_from_ms(quorum, state) + our_turn_ms
    _end_pre_vote(quorum, deadline_ms)
    if isinstance(quorum.state, Follower):
        quorum.state.following.not_before_ms = deadline_ms


def become_candidate(quorum: QuorumState) -> None:
    """Raise the epoch and ask for votes."""
    tally, old = _own_vote(quorum), quorum.state
    assert isinstance(old, Prospective)  # no other role becomes a candidate
    quorum.become(
        Candidate(
            quorum.next_epoch,
            quorum.election_deadline_ms(),
            tally,
            quorum.config.replica_key,
            found=old.found,
        )
    )
    if tally.is_won:
        become_leader(quorum, tally)


def _own_vote(quorum: QuorumState) -> Tally:
    """Return the votes at the start: our own, unless our removal is only not committed yet."""
    tally = Tally(frozenset(quorum.history.voters.ids))
    return tally.with_answer(quorum.config.node_id, granted=True) if quorum.is_voter else tally


def become_leader(quorum: QuorumState, tally: Tally) -> None:
    """Lead the epoch, after the election is won."""
    config = quorum.config
    quorum.lost_elections = 0
    leadership = Leadership(
        config.replica_key, quorum.log.end_offset, quorum.history.voters, quorum.now.monotonic_ms
    )
    if quorum.history.kraft_version < 1 and quorum.is_voter:
        leadership.static_voters = leadership.static_voters.with_learned_key(config.voter)
    quorum.become(Leader(quorum.epoch, config.node_id, config.endpoints, leadership))
    quorum.emit(BecameLeader(quorum.epoch, leadership.epoch_start_offset))
    append.append_control(quorum, voter_records.start_of_epoch_records(quorum, tally.granted))


# Away from leadership.


def abandon_pre_vote(quorum: QuorumState) -> None:
    """Return to the leader that was followed until now, if there was one, after a pre-vote that wasn't
    won."""
    quorum.lost_elections += 1
    old = quorum.state
    is_gone = isinstance(old, Prospective) and old.following is not None and old.following.leader_is_gone
    if is_gone or not _can_follow_again(quorum):
        _end_pre_vote(quorum, quorum.failover_deadline_ms())
    else:
        _end_pre_vote(quorum, quorum.fetch_deadline_ms())


def _can_follow_again(quorum: QuorumState) -> bool:
    """Whether the leader of the epoch is another node, and its address is known."""
    state = quorum.state
    return state.leader_id not in (None, quorum.config.node_id) and bool(state.leader_endpoints)


def _end_pre_vote(quorum: QuorumState, deadline_ms: int) -> None:
    """Follow again or be unattached. The next election is due at ``deadline_ms``."""
    old = quorum.state
    assert isinstance(old, Prospective)  # a Candidate can't return: it has voted for itself
    if old.leader_id is None or not _can_follow_again(quorum):
        quorum.become(Unattached(old.epoch, deadline_ms, old.leader_id, old.voted))
        return
    # A new Following: this leader's earlier answers must not keep us from granting pre-votes.
    following = _new_following(quorum)
    if old.following is not None:
        following.leader_is_gone = old.following.leader_is_gone
        following.last_answer_ms = old.following.last_answer_ms
    quorum.become(Follower(old.epoch, old.leader_id, old.leader_endpoints, deadline_ms, old.voted, following))


def yield_election(quorum: QuorumState) -> None:
    """Let another voter stand first, to which this one has granted its pre-vote.

    It happens once in an epoch, so that a voter that never wins can't delay the others for ever.
    """
    state = quorum.state
    if quorum.yielded_in_epoch == state.epoch or not isinstance(state, (Follower, Unattached, Prospective)):
        return
    quorum.yielded_in_epoch = state.epoch
    deadline_ms = quorum.now.monotonic_ms + yield_ms(quorum)
    if isinstance(state, Prospective):
        _end_pre_vote(quorum, deadline_ms)
    else:
        # Not a transition: only the deadline is later.
        quorum.state = msgspec.structs.replace(state, deadline_ms=max(state.deadline_ms, deadline_ms))


def retry_election_soon(quorum: QuorumState, wait_ms: int = 1) -> None:
    """Hasten the next election of a candidate that has lost or got a vote against it.

    The likely reason is that two candidates ran at once. The next election is due after ``wait_ms`` and a
    random delay instead of the rest of the election timeout. If a majority has rejected this candidate, the
    other one has probably won: the wait must be long enough for its announcement, or this node deposes it.
    """
    deadline_ms = min(quorum.state.deadline_ms or 0, quorum.failover_deadline_ms() + wait_ms)
    quorum.state = msgspec.structs.replace(quorum.state, deadline_ms=deadline_ms)


def become_unattached(quorum: QuorumState, epoch: int, leader_id: int | None = None) -> None:
    """Adopt a higher epoch. An election that was due stays due, so that rising epochs can't delay it for
    ever; so does the turn of a follower whose leader is gone."""
    old = quorum.state
    awaits_turn = isinstance(old, Follower) and old.following.leader_is_gone
    if awaits_turn or isinstance(old, (Unattached, Candidate, Prospective)):
        assert old.deadline_ms is not None, "these roles have a deadline"
        deadline_ms = old.deadline_ms
    elif quorum.is_only_voter:
        deadline_ms = quorum.now.monotonic_ms
    else:
        deadline_ms = quorum.election_deadline_ms()
    quorum.become(Unattached(epoch, deadline_ms, leader_id))


def become_follower(quorum: QuorumState, epoch: int, leader_id: int, endpoints: Endpoints) -> None:
    """Follow the leader of ``epoch``, which must answer within the fetch timeout."""
    old = quorum.state
    quorum.has_to_pass_records_on = False
    quorum.become(
        Follower(
            epoch,
            leader_id,
            endpoints,
            quorum.fetch_deadline_ms(),
            old.voted if old.epoch == epoch else None,
            old.following if isinstance(old, Follower) and old.epoch == epoch else _new_following(quorum),
        )
    )


def _new_following(quorum: QuorumState) -> Following:
    return Following(next_membership_ms=quorum.fetch_deadline_ms(), last_answer_ms=quorum.now.monotonic_ms)


def resign(quorum: QuorumState) -> None:
    """Stop leading, and notify the other voters."""
    assert quorum.leadership is not None
    successors = quorum.leadership.successors()
    config = quorum.config
    quorum.become(
        Resigned(
            quorum.epoch,
            config.node_id,
            config.endpoints,
            quorum.election_deadline_ms(),
            Resignation(successors, {key.id for key in successors}),
        )
    )


def resign_if_unable(quorum: QuorumState) -> None:
    """Stop leading if the state machine can't do a leader's work: another voter may know the record that it
    can't apply.

    First everything in the log has to be committed. Otherwise the log could be longer than those of the
    others, so that none of them gets this node's vote.
    """
    is_committed = quorum.high_watermark == quorum.log.end_offset
    if quorum.leadership is not None and not quorum.can_lead and is_committed:
        quorum.has_to_pass_records_on = False
        resign(quorum)


# Deadlines.


def role_deadline_ms(quorum: QuorumState) -> int | None:
    """Return the time until which the role waits; None if it waits for nothing."""
    state = quorum.state
    if isinstance(state, Leader):
        contact_ms = state.leadership.majority_contact_ms()
        return None if contact_ms is None else contact_ms + _check_quorum_timeout_ms(quorum)
    if quorum.may_start_election:
        return state.deadline_ms
    return state.deadline_ms if isinstance(state, Follower) and not state.following.leader_is_gone else None


def _check_quorum_timeout_ms(quorum: QuorumState) -> int:
    return quorum.config.fetch_timeout_ms * 3 // 2


def on_deadline(quorum: QuorumState) -> None:
    """Leave the role if the event that it waits for did not happen in time."""
    due_ms = role_deadline_ms(quorum)
    if due_ms is None or due_ms > quorum.now.monotonic_ms:
        return
    match quorum.state:
        case Leader():
            resign(quorum)
        case Prospective():
            abandon_pre_vote(quorum)
        case Candidate():
            quorum.lost_elections += 1
            start_election(quorum)
        case Follower(following=following) if not quorum.may_start_election:
            following.leader_is_gone = True  # others may stand, perhaps with this node's vote
        case _:
            start_election(quorum)
