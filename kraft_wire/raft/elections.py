"""Becoming leader, and ceasing to be it (KIP-595, KIP-996).

A quorum of one elects itself: it stands as soon as it is unattached, wins its own vote, and so never waits
for a timeout, except when it has just voted for somebody else, whom it leaves one election timeout.

Standing is harmless, since nobody who hears a leader grants a pre-vote. So, unlike Java, a node stands when
it starts, when its leader says that it stops, and when the connection to its leader breaks.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kraft_wire.log.files import ElectionState
from kraft_wire.raft import append, membership
from kraft_wire.raft.config import RaftConfig
from kraft_wire.raft.effects import BecameLeader, EpochsUsedUp, ReadyToStop
from kraft_wire.raft.epochs import LAST_EPOCH
from kraft_wire.raft.following import Following
from kraft_wire.raft.leadership import Leadership
from kraft_wire.raft.log_state import LogState
from kraft_wire.raft.majority import Tally
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.resignation import Resignation
from kraft_wire.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    RoleState,
    Unattached,
)
from kraft_wire.raft.voters import Endpoints, ReplicaKey

HANDOVER_TIMEOUT_MS: Final = 2000
"""How long a leader that is told to stop waits for its last records and for another leader."""

CONTESTED_WAIT_MS: Final = 100
"""How long a candidate that somebody is against waits for the others, who may never answer: the leader that
is to be replaced is one of them."""


def recovered_role(config: RaftConfig, election: ElectionState | None, log: LogState) -> RoleState:
    """The role that a restarted node is in. It never leads on in an epoch that it led (KAFKA-10527)."""
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


def start(quorum: Quorum) -> None:
    """The node is up. What it concluded from its log is on disk before it says anything: it may lose of the
    log what a later conclusion would need."""
    if quorum.log.last_epoch > quorum.recorded_epoch:
        quorum.persist()
    if quorum.next_epoch > LAST_EPOCH:
        quorum.emit(EpochsUsedUp(quorum.epoch))
    if quorum.may_stand:
        stand(quorum)


# Forward.


def stand(quorum: Quorum) -> None:
    """Find out whether an election could be won; a sole voter knows."""
    tally = _own_vote(quorum)
    old = quorum.state
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
    if tally.is_won:
        campaign(quorum)


def campaign(quorum: Quorum) -> None:
    """Raise the epoch and ask for votes."""
    tally = _own_vote(quorum)
    quorum.become(
        Candidate(quorum.next_epoch, quorum.election_deadline_ms(), tally, quorum.config.replica_key)
    )
    if tally.is_won:
        lead(quorum, tally)


def _own_vote(quorum: Quorum) -> Tally:
    return Tally(frozenset(quorum.history.voters.ids)).with_answer(quorum.config.node_id, granted=True)


def lead(quorum: Quorum, tally: Tally) -> None:
    """The election is won."""
    config = quorum.config
    quorum.lost_elections = 0
    leadership = Leadership(
        config.node_id, quorum.log.end_offset, quorum.history.voters, quorum.now.monotonic_ms
    )
    quorum.become(Leader(quorum.epoch, config.node_id, config.endpoints, leadership))
    quorum.emit(BecameLeader(quorum.epoch, leadership.epoch_start_offset))
    append.append_control(quorum, membership.start_of_epoch_records(quorum, tally.granted))


# Back.


def give_up(quorum: Quorum) -> None:
    """The others want nobody else, or don't answer: follow whoever led until now, if anybody did."""
    old = quorum.state
    assert isinstance(old, Prospective)  # only a Prospective can go back: a Candidate has voted for itself
    quorum.lost_elections += 1
    if old.leader_id is None or old.leader_id == quorum.config.node_id or not old.leader_endpoints:
        quorum.become(Unattached(old.epoch, quorum.failover_deadline_ms(), old.leader_id, old.voted))
        return
    # Afresh: whoever else stands now must not be refused because this leader once answered.
    following = Following(leader_is_gone=old.following is not None and old.following.leader_is_gone)
    deadline_ms = quorum.failover_deadline_ms() if following.leader_is_gone else _fetch_deadline_ms(quorum)
    quorum.become(Follower(old.epoch, old.leader_id, old.leader_endpoints, deadline_ms, old.voted, following))


def try_again_soon(quorum: Quorum, wait_ms: int = 1) -> None:
    """A candidate has lost, or somebody is against it, most likely because two stood at once: the next
    election is due after ``wait_ms`` and a random moment, not after the whole timeout of this one."""
    deadline_ms = min(quorum.state.deadline_ms or 0, quorum.failover_deadline_ms() + wait_ms)
    quorum.state = msgspec.structs.replace(quorum.state, deadline_ms=deadline_ms)


def become_unattached(quorum: Quorum, epoch: int, leader_id: int | None = None) -> None:
    """A higher epoch exists. An election that was due stays due: rising epochs must not put it off for
    ever."""
    old = quorum.state
    if isinstance(old, (Unattached, Candidate, Prospective)):
        deadline_ms = old.deadline_ms
    elif quorum.is_only_voter:
        deadline_ms = quorum.now.monotonic_ms
    else:
        deadline_ms = quorum.election_deadline_ms()
    quorum.become(Unattached(epoch, deadline_ms, leader_id))


def become_follower(quorum: Quorum, epoch: int, leader_id: int, endpoints: Endpoints) -> None:
    """Somebody else leads ``epoch``; it must be heard of within the fetch timeout."""
    old = quorum.state
    quorum.become(
        Follower(
            epoch,
            leader_id,
            endpoints,
            _fetch_deadline_ms(quorum),
            old.voted if old.epoch == epoch else None,
            old.following if isinstance(old, Follower) and old.epoch == epoch else Following(),
        )
    )


def resign(quorum: Quorum) -> None:
    """Lead no longer, and tell the others."""
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


def _fetch_deadline_ms(quorum: Quorum) -> int:
    return quorum.now.monotonic_ms + quorum.config.fetch_timeout_ms


# What is said of the leader.


def hear_of_leader(quorum: Quorum, epoch: int, leader_id: int | None, endpoints: Endpoints) -> bool:
    """Somebody says who leads ``epoch``, which isn't below ours (None: nobody is known to). Returns False,
    with nothing changed, for what can't be: a second leader of our epoch, or that we lead where we don't."""
    if leader_id == quorum.config.node_id:
        return (epoch == quorum.epoch and quorum.state.leader_id == leader_id) or _recall(quorum, epoch)
    known = quorum.state.leader_id if epoch == quorum.epoch else None
    if known is not None and leader_id is not None and known != leader_id:
        return False
    if leader_id is not None:
        endpoints = endpoints or quorum.history.voters.endpoints_of(leader_id)
        if endpoints and (known is None or len(endpoints) > len(quorum.state.leader_endpoints)):
            become_follower(quorum, epoch, leader_id, endpoints)
            return True
    if epoch > quorum.epoch:
        become_unattached(quorum, epoch, leader_id)
    return True


def _recall(quorum: Quorum, epoch: int) -> bool:
    """Others say that we lead ``epoch``. Where quorum-state was lost that may well have been so."""
    own, state = quorum.config.node_id, quorum.state
    if epoch > quorum.no_vote_up_to_epoch:
        return False
    if epoch > quorum.epoch:
        become_unattached(quorum, epoch, own)
        return True
    if not isinstance(state, (Unattached, Prospective)) or state.leader_id is not None:
        return False
    # Not a transition: the same role, with a leader that it remembers, and can't follow.
    quorum.state = msgspec.structs.replace(state, leader_id=own)
    if isinstance(state, Unattached):
        quorum.persist()
    return True


def note_leader_gone(quorum: Quorum, state: Follower) -> None:
    """Evidence that the leader is gone: stand soon, instead of when the fetch timeout is over."""
    stand_by(quorum, state, min(state.deadline_ms, quorum.failover_deadline_ms()))


def stand_by(quorum: Quorum, state: Follower, deadline_ms: int) -> None:
    """The leader is gone: stand at this time."""
    state.following.leader_is_gone = True
    # Not a transition: the same follower of the same leader, only less patient.
    quorum.state = msgspec.structs.replace(state, deadline_ms=deadline_ms)


def note_leader_alive(quorum: Quorum) -> None:
    """Our leader answers as a leader."""
    state = quorum.state
    if isinstance(state, Follower):
        state.following.has_fetched = True
        state.following.leader_is_gone = False
        quorum.lost_elections = 0
        quorum.state = msgspec.structs.replace(state, deadline_ms=_fetch_deadline_ms(quorum))


# By the clock, and at the end.


def role_deadline_ms(quorum: Quorum) -> int | None:
    """When the role has waited long enough, None where it waits for nothing."""
    state = quorum.state
    if isinstance(state, Leader):
        contact_ms = state.leadership.majority_contact_ms()
        return None if contact_ms is None else contact_ms + _check_quorum_timeout_ms(quorum)
    return state.deadline_ms if quorum.may_stand else None


def _check_quorum_timeout_ms(quorum: Quorum) -> int:
    return quorum.config.fetch_timeout_ms * 3 // 2


def on_deadline(quorum: Quorum) -> None:
    """What the role was waiting for did not happen in time."""
    due_ms = role_deadline_ms(quorum)
    if due_ms is None or due_ms > quorum.now.monotonic_ms:
        return
    match quorum.state:
        case Leader():
            resign(quorum)
        case Prospective():
            give_up(quorum)
        case Candidate():
            quorum.lost_elections += 1
            stand(quorum)
        case _:
            stand(quorum)


def shut_down(quorum: Quorum) -> None:
    """Begin to stop: nothing more is appended; ``maybe_stop`` ends it."""
    quorum.is_shutting_down = True
    if not quorum.is_only_voter:
        quorum.stop_deadline_ms = quorum.now.monotonic_ms + HANDOVER_TIMEOUT_MS


def maybe_stop(quorum: Quorum) -> None:
    """A leader resigns when what it appended is committed, and stops when another leads; any other stops when
    what it has is flushed. Where there are others, nobody waits longer than the handover may take."""
    if not quorum.is_shutting_down or quorum.is_stopped:
        return
    is_late = quorum.stop_deadline_ms is not None and quorum.now.monotonic_ms >= quorum.stop_deadline_ms
    if isinstance(quorum.state, Leader):
        if not is_late and _is_uncommitted(quorum):
            return
        quorum.is_handing_over = not quorum.is_only_voter
        resign(quorum)
    if is_late or not (_awaits_successor(quorum) or quorum.log.flushed_offset < quorum.log.end_offset):
        quorum.is_stopped = True
        quorum.emit(ReadyToStop())


def _is_uncommitted(quorum: Quorum) -> bool:
    return quorum.high_watermark is None or quorum.high_watermark < quorum.log.end_offset


def _awaits_successor(quorum: Quorum) -> bool:
    """Whether this node led when it was told to stop, and nobody is known to lead after it: its vote may be
    needed for that."""
    return quorum.is_handing_over and not isinstance(quorum.state, Follower)
