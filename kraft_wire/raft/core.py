"""The raft core: ``step(event, now)`` in, effects out (KIP-595, KIP-630, KIP-853, KIP-996).

This module dispatches events. The decisions are in the packages ``election``, ``leader``, ``follower`` and
``membership``, and in ``retention``. ``rpcs`` dispatches requests and responses, ``duties`` sends the
requests that are due. They share the state in ``quorum_state``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.raft import duties, retention, rpcs
from kraft_wire.raft.config import DurableState, RaftConfig, Randomness
from kraft_wire.raft.door.callers import hears_leader
from kraft_wire.raft.effects import Effect, RoleChanged, VotersChanged
from kraft_wire.raft.election import answer_votes, elections, removed_leader, stopping
from kraft_wire.raft.errors import InvariantViolated, NotLeader
from kraft_wire.raft.events import (
    CanLead,
    Event,
    Flushed,
    KeepRecords,
    LogTrimmed,
    LogTruncated,
    Now,
    Propose,
    RequestAbandoned,
    RequestFailed,
    ResponseReceived,
    RpcRequest,
    ShutDown,
    SnapshotRejected,
    SnapshotVerified,
    SnapshotWritten,
    Start,
    Tick,
    UpgradeKraftVersion,
)
from kraft_wire.raft.follower import install_snapshot, replicate
from kraft_wire.raft.leader import append, kraft_version, serve_fetch, update_voter, voter_changes
from kraft_wire.raft.leader.describe_quorum import fetching_observers
from kraft_wire.raft.leader.serving import committed_epoch
from kraft_wire.raft.log_state import LogState
from kraft_wire.raft.membership import voter_records
from kraft_wire.raft.membership.change import ChangeRefused
from kraft_wire.raft.membership.voters import Peer, ReplicaKey, VoterSet
from kraft_wire.raft.peers import discovery_peers, other_voters, peer_at
from kraft_wire.raft.quorum_state import QuorumState
from kraft_wire.raft.roles import Follower, Role, live_leader_id
from kraft_wire.raft.waiting import earlier


class RaftCore:
    """One node of the quorum, without I/O. The first event must be ``Start``.

    The constructor raises CannotStart if this node must not take part in the quorum. ``step`` raises
    NotLeader, BatchTooLarge or ChangeRefused for a ``Propose`` or ``UpgradeKraftVersion`` that is rejected;
    then nothing has changed. ``step`` raises InvariantViolated for any event after which the node must stop.
    """

    def __init__(self, config: RaftConfig, durable: DurableState, rng: Randomness) -> None:
        history = voter_records.load_history(config, durable)
        log = LogState(durable)
        role = elections.recovered_role(config, durable.election, log)
        self._quorum = QuorumState(config, durable, log, history, role, rng)
        self._is_started = False
        self._next_deadline_ms: int | None = None

    def step(self, event: Event, now: Now) -> list[Effect]:
        """Handle one event and return the effects to execute, in order."""
        quorum = self._quorum
        if self._is_started == isinstance(event, Start):
            raise InvariantViolated(
                f"Start must be the first event and come once, got {type(event).__name__}"
            )
        quorum.now = now
        is_led = hears_leader(quorum)
        quorum.has_heard_leader |= is_led
        if is_led or isinstance(event, Start):
            quorum.last_heard_ms = now.monotonic_ms
        seen, leading, voters = self._progress(), self._leading(), quorum.history.voters
        is_alone = _HANDLERS[type(event)](quorum, event)
        if is_alone and not self._is_deadline_over():
            return quorum.take_effects()
        self._is_started = True
        retention.on_deadline(quorum)
        rpcs.expire_requests(quorum)
        elections.on_deadline(quorum)
        voter_changes.settle(quorum)
        removed_leader.resign_if_removed(quorum)
        elections.resign_if_unable(quorum)
        stopping.stop_if_done(quorum)
        update_voter.end_questions(quorum)
        quorum.record_leader()
        answer_votes.settle_doubts(quorum)
        if quorum.history.voters is not voters:
            serve_fetch.answer_new_voters(quorum)
        self._answer_waiting(seen)
        duties.send_due_requests(quorum)
        if quorum.history.voters is not voters and quorum.history.voters != voters:
            quorum.emit(VotersChanged(quorum.history.voters, quorum.history.voters_offset))
        if self._leading() != leading:
            quorum.emit(RoleChanged(quorum.state.ROLE, quorum.epoch, self.live_leader_id))
        self._next_deadline_ms = self._find_next_deadline_ms()
        return quorum.take_effects()

    def _answer_waiting(self, seen: tuple[object, ...]) -> None:
        """Answer the Fetches that wait, if there is news since the progress was ``seen``."""
        quorum = self._quorum
        if (progress := self._progress()) != seen:
            if quorum.leadership is None:
                serve_fetch.answer_everybody(quorum)
            else:
                serve_fetch.answer_voters(quorum)
                if quorum.high_watermark is None or progress[1:] != seen[1:]:
                    serve_fetch.tell_observers(quorum)
        serve_fetch.answer_expired(quorum)

    def next_deadline_ms(self) -> int | None:
        """The monotonic time at which a ``Tick`` is due if no other event comes first."""
        return earlier(self._next_deadline_ms, self._quorum.observers.next_turn_ms())

    def next_timer_ms(self) -> int | None:
        """The monotonic time from which on any event does what is overdue. Turns of observers are not: they
        come with a ``Tick``."""
        return self._next_deadline_ms

    def _is_deadline_over(self) -> bool:
        deadline_ms = self._next_deadline_ms
        return deadline_ms is not None and deadline_ms <= self._quorum.now.monotonic_ms

    def _find_next_deadline_ms(self) -> int | None:
        quorum = self._quorum
        if quorum.is_stopped:
            return earlier(quorum.parked.next_due(), quorum.doubts.next_deadline_ms())
        deadlines = (
            quorum.parked.next_due(),
            quorum.doubts.next_deadline_ms(),
            quorum.cleaning_deadline_ms,
            quorum.stop_deadline_ms,
            quorum.leader_record_due_ms,
            quorum.outgoing.next_deadline_ms(quorum.now.monotonic_ms),
            elections.role_deadline_ms(quorum),
            duties.next_deadline_ms(quorum),
            voter_changes.next_deadline_ms(quorum),
            quorum.hints.next_deadline_ms(quorum.now.monotonic_ms),
        )
        return min(deadline for deadline in deadlines if deadline is not None)

    def _progress(self) -> tuple[object, ...]:
        """The state that parked Fetches wait for: they are answered when any of it changes."""
        quorum = self._quorum
        return quorum.log.end_offset, quorum.high_watermark, quorum.epoch, quorum.state.ROLE

    def _leading(self) -> tuple[object, ...]:
        """The state that ``RoleChanged`` reports."""
        quorum = self._quorum
        return quorum.state.ROLE, quorum.epoch, quorum.leader_id, self.live_leader_id

    # The state that other packages may read.

    @property
    def key(self) -> ReplicaKey:
        """This node's id and directory id."""
        return self._quorum.config.replica_key

    @property
    def role(self) -> Role:
        return self._quorum.state.ROLE

    @property
    def is_leader(self) -> bool:
        return self._quorum.leadership is not None

    @property
    def accepts_proposals(self) -> bool:
        """Whether ``Propose`` is accepted: this node leads and is not shutting down."""
        return self.is_leader and not self._quorum.is_shutting_down

    @property
    def stop_waits_for(self) -> stopping.StopWait | None:
        """What this node waits for before it stops; None if it may stop, or isn't asked to."""
        return stopping.stop_waits_for(self._quorum)

    @property
    def epoch(self) -> int:
        return self._quorum.epoch

    @property
    def leader_id(self) -> int | None:
        """The leader of the epoch; None if there is none or it is unknown."""
        return self._quorum.leader_id

    @property
    def voted(self) -> ReplicaKey | None:
        """The node that got this node's vote in the epoch; None if none did."""
        return self._quorum.state.voted

    @property
    def observer_count(self) -> int:
        """The number of observers that have fetched lately. 0 on a node that doesn't lead."""
        leadership = self._quorum.leadership
        return 0 if leadership is None else len(fetching_observers(self._quorum, leadership))

    @property
    def live_leader_id(self) -> int | None:
        """The leader, as far as this node believes that it leads; None if it knows that nobody does."""
        return live_leader_id(self._quorum.state)

    @property
    def leader_peer(self) -> Peer | None:
        """The address of the leader that this node follows; None if it follows none."""
        state = self._quorum.state
        if not isinstance(state, Follower):
            return None
        return peer_at(self._quorum, state.leader_id, state.leader_endpoints)

    @property
    def other_voters(self) -> list[Peer]:
        """The other voters whose address is known."""
        return other_voters(self._quorum)

    @property
    def known_peers(self) -> list[Peer]:
        """The other voters, and the bootstrap servers that may know the leader."""
        return discovery_peers(self._quorum)

    @property
    def epoch_start_offset(self) -> int | None:
        """The offset of the first record of the epoch that this node leads; None if it doesn't lead."""
        leadership = self._quorum.leadership
        return None if leadership is None else leadership.epoch_start_offset

    @property
    def high_watermark(self) -> int | None:
        """The offset below which everything is committed. None until it is known; a new leader doesn't know
        it yet."""
        return self._quorum.high_watermark

    @property
    def is_observer_only(self) -> bool:
        """Whether this node never votes, and readers of the log read from it."""
        return self._quorum.config.is_observer_only

    @property
    def read_end_offset(self) -> int | None:
        """The offset below which readers may read here: the high watermark; on a node that only observes, all
        that it has ever known to be committed. None until it is known."""
        return self._quorum.committed_offset if self.is_observer_only else self.high_watermark

    @property
    def read_epoch(self) -> int:
        """The epoch that readers are told: raft's; on a node that only observes, that of the last committed
        record."""
        return committed_epoch(self._quorum) if self.is_observer_only else self.epoch

    @property
    def log_start_offset(self) -> int:
        return self._quorum.log.start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self._quorum.log.end_offset

    @property
    def log_end_epoch(self) -> int:
        """The epoch of the last record; 0 if the log is empty."""
        return self._quorum.log.last_epoch

    @property
    def flushed_offset(self) -> int:
        """The offset below which everything is on this node's stable storage."""
        return self._quorum.log.flushed_offset

    @property
    def log_generation(self) -> int:
        """The number of times that the log was truncated or restarted. ``Flushed`` carries it."""
        return self._quorum.log.generation

    @property
    def is_voter(self) -> bool:
        return self._quorum.is_voter

    @property
    def voters(self) -> VoterSet:
        return self._quorum.history.voters

    @property
    def are_voters_committed(self) -> bool:
        """Whether the last change of the voters is known to be committed."""
        return self._quorum.are_voters_committed

    @property
    def is_changing_voters(self) -> bool:
        """Whether this leader has begun a change of the voters that isn't over."""
        return self._quorum.pending_change is not None

    @property
    def voters_offset(self) -> int | None:
        """The offset of the record of the voters: -1 for the 0-0 checkpoint, None for static voters."""
        return self._quorum.history.voters_offset

    @property
    def known_ends(self) -> Mapping[int, int]:
        """Up to where the replicas, by id, have the log and know that it is committed. Empty on a node that
        doesn't lead."""
        leadership = self._quorum.leadership
        return {} if leadership is None else leadership.known_ends

    @property
    def lags(self) -> dict[int, int]:
        """The number of records that each other voter lacked at its last Fetch, by its id: all, if it hasn't
        fetched from this leader. Empty on a node that doesn't lead."""
        leadership, log = self._quorum.leadership, self._quorum.log
        if leadership is None:
            return {}
        return {
            each.key.id: log.end_offset - (log.start_offset if each.end_offset is None else each.end_offset)
            for each in leadership.others
        }

    def silent_voter_ids(self, now_ms: int) -> tuple[int, ...]:
        """Return the voters from which this leader has heard nothing for the fetch timeout.

        A node that doesn't lead hears nothing from other voters: it returns none.
        """
        leadership = self._quorum.leadership
        if leadership is None:
            return ()
        return leadership.silent_voter_ids(now_ms - self._quorum.config.fetch_timeout_ms)

    @property
    def kraft_version(self) -> int:
        return self._quorum.history.kraft_version

    def kraft_version_problem(self, level: int) -> str | None:
        """Return why ``UpgradeKraftVersion`` to this level would be rejected; None if it wouldn't."""
        try:
            kraft_version.check_upgrade(self._quorum, level)
        except (ChangeRefused, NotLeader) as refused:
            return refused.text if isinstance(refused, ChangeRefused) else str(refused)
        return None

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The newest complete snapshot, which may be the 0-0 checkpoint of format."""
        return self._quorum.log.latest_snapshot

    def epoch_at(self, offset: int) -> int:
        """Return the epoch of the record at ``offset``. Raises KeyError for an offset that is not in the
        log."""
        return self._quorum.log.epoch_at(offset)


# Event handlers. One returns True if the event concerned nobody but an observer: then nothing else is due.


def _start(quorum: QuorumState, event: Start) -> None:
    quorum.can_lead = event.can_lead
    retention.start(quorum)
    elections.start(quorum)


def _tick(quorum: QuorumState, event: Tick) -> None:
    """Observers have their turn. Other deadlines that have passed are handled by every step."""
    serve_fetch.answer_turn(quorum)


def _abandon(quorum: QuorumState, event: RequestAbandoned) -> None:
    quorum.parked.drop(event.token)
    quorum.observers.abandon(event.token)
    quorum.doubts.abandon(event.token)
    voter_changes.abandon(quorum, event.token)
    quorum.voter_questions.abandon(event.token)


def _log_truncated(quorum: QuorumState, event: LogTruncated) -> None:
    quorum.log.size_bytes -= event.deleted_bytes
    replicate.handle_log_truncated(quorum, event.end_offset)


def _note_can_lead(quorum: QuorumState, event: CanLead) -> None:
    quorum.can_lead = event.can_lead


def _shut_down(quorum: QuorumState, event: ShutDown) -> None:
    stopping.shut_down(quorum)


_HANDLERS: Final[dict[type[Event], Callable[[QuorumState, Any], bool | None]]] = {
    Start: _start,
    Tick: _tick,
    RpcRequest: rpcs.answer_request,
    RequestAbandoned: _abandon,
    ResponseReceived: rpcs.handle_response,
    RequestFailed: rpcs.handle_failure,
    Propose: append.propose,
    UpgradeKraftVersion: kraft_version.upgrade_kraft_version,
    Flushed: append.handle_flushed,
    LogTruncated: _log_truncated,
    SnapshotVerified: install_snapshot.handle_snapshot_verified,
    SnapshotRejected: install_snapshot.handle_snapshot_rejected,
    SnapshotWritten: retention.handle_snapshot_written,
    LogTrimmed: retention.handle_log_trimmed,
    CanLead: _note_can_lead,
    KeepRecords: retention.handle_keep_records,
    ShutDown: _shut_down,
}
