"""The raft core: ``step(event, now)`` in, effects out (KIP-595, KIP-630, KIP-853, KIP-996).

This module dispatches; what is decided, and why, is in one module a family: ``elections``, ``campaign`` and
``votes``; ``append``, ``fetch`` and ``follow``; ``retention``, ``fetch_snapshot`` and ``install``;
``announce``, ``membership``, ``describe``. What goes on by itself is in ``duties``. They share the state in
``quorum``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kraft_wire.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.raft import append, duties, elections, fetch, follow, install, membership, retention
from kraft_wire.raft.config import DurableState, RaftConfig, Randomness
from kraft_wire.raft.describe import handle_describe_quorum
from kraft_wire.raft.effects import Effect, RoleChanged
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import (
    Event,
    Flushed,
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
)
from kraft_wire.raft.fetch_snapshot import handle_fetch_snapshot
from kraft_wire.raft.log_state import LogState
from kraft_wire.raft.peers import discovery_peers, other_voters, peer_at
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Follower, Role
from kraft_wire.raft.voters import Peer, ReplicaKey, VoterSet
from kraft_wire.raft.votes import handle_begin_quorum_epoch, handle_end_quorum_epoch, handle_vote

RPC_HANDLERS: Final[dict[type[Message], Callable[[Quorum, RpcRequest], None]]] = {
    FetchRequest: fetch.handle_fetch,
    FetchSnapshotRequest: handle_fetch_snapshot,
    VoteRequest: handle_vote,
    BeginQuorumEpochRequest: handle_begin_quorum_epoch,
    EndQuorumEpochRequest: handle_end_quorum_epoch,
    DescribeQuorumRequest: handle_describe_quorum,
}


class RaftCore:
    """One node of the quorum, without I/O. Feed it ``Start`` first, then whatever happens.

    Raises CannotStart (from the constructor) when this node must not take part. ``step`` raises NotLeader or
    BatchTooLarge to a proposer, changing nothing; InvariantViolated from anything means that the node must
    stop.
    """

    def __init__(self, config: RaftConfig, durable: DurableState, rng: Randomness) -> None:
        history = membership.load_history(config, durable)
        log = LogState(durable)
        role = elections.recovered_role(config, durable.election, log)
        self._quorum = Quorum(config, durable, log, history, role, rng)
        self._is_started = False
        self._next_deadline_ms: int | None = None

    def step(self, event: Event, now: Now) -> list[Effect]:
        """Take one event in; returns what is to be done, in order."""
        quorum = self._quorum
        if self._is_started == isinstance(event, Start):
            raise InvariantViolated(f"Start comes first and once, not {type(event).__name__}")
        quorum.now = now
        seen, leading = self._progress(), self._leading()
        _HANDLERS[type(event)](quorum, event)
        self._is_started = True
        retention.on_deadline(quorum)
        duties.expire(quorum)
        elections.on_deadline(quorum)
        elections.maybe_stop(quorum)
        if self._progress() != seen:
            fetch.answer_parked(quorum)
        fetch.answer_expired(quorum)
        duties.perform(quorum)
        if self._leading() != leading:
            quorum.emit(RoleChanged(quorum.state.ROLE, quorum.epoch, quorum.leader_id))
        self._next_deadline_ms = self._find_next_deadline_ms()
        return quorum.take_effects()

    def next_deadline_ms(self) -> int | None:
        """The monotonic time by which a ``Tick`` is due if nothing else happens."""
        return self._next_deadline_ms

    def _find_next_deadline_ms(self) -> int | None:
        quorum = self._quorum
        if quorum.is_stopped:
            return quorum.parked.next_deadline_ms()
        deadlines = (
            quorum.parked.next_deadline_ms(),
            quorum.cleaning_deadline_ms,
            quorum.stop_deadline_ms,
            quorum.outgoing.next_deadline_ms(quorum.now.monotonic_ms),
            elections.role_deadline_ms(quorum),
            duties.next_deadline_ms(quorum),
        )
        return min(deadline for deadline in deadlines if deadline is not None)

    def _progress(self) -> tuple[object, ...]:
        """What a waiting Fetch waits for: any change of this answers it."""
        quorum = self._quorum
        return quorum.log.end_offset, quorum.high_watermark, quorum.epoch, quorum.state.ROLE

    def _leading(self) -> tuple[object, ...]:
        """What ``RoleChanged`` tells."""
        quorum = self._quorum
        return quorum.state.ROLE, quorum.epoch, quorum.leader_id

    # What others may know.

    @property
    def key(self) -> ReplicaKey:
        """This node's id, and its directory's."""
        return self._quorum.config.replica_key

    @property
    def role(self) -> Role:
        return self._quorum.state.ROLE

    @property
    def is_leader(self) -> bool:
        return self._quorum.leadership is not None

    @property
    def accepts_proposals(self) -> bool:
        """Whether ``Propose`` would be taken: this node leads, and has not been told to stop."""
        return self.is_leader and not self._quorum.is_shutting_down

    @property
    def epoch(self) -> int:
        return self._quorum.epoch

    @property
    def leader_id(self) -> int | None:
        """Who leads the epoch; None while that is nobody, or unknown."""
        return self._quorum.leader_id

    @property
    def leader_peer(self) -> Peer | None:
        """Where another node, whom this one follows, can be asked; None while there is none."""
        state = self._quorum.state
        if not isinstance(state, Follower):
            return None
        return peer_at(self._quorum, state.leader_id, state.leader_endpoints)

    @property
    def other_voters(self) -> list[Peer]:
        """The other voters that can be reached."""
        return other_voters(self._quorum)

    @property
    def known_peers(self) -> list[Peer]:
        """The other voters, and the addresses at which anybody may be who knows the leader."""
        return discovery_peers(self._quorum)

    @property
    def epoch_start_offset(self) -> int | None:
        """The offset of the first record of the epoch that this node leads; None while it leads none."""
        leadership = self._quorum.leadership
        return None if leadership is None else leadership.epoch_start_offset

    @property
    def high_watermark(self) -> int | None:
        """Everything below is committed. None until it is known; a new leader doesn't know it at first."""
        return self._quorum.high_watermark

    @property
    def log_start_offset(self) -> int:
        return self._quorum.log.start_offset

    @property
    def log_end_offset(self) -> int:
        """Where the next record goes."""
        return self._quorum.log.end_offset

    @property
    def flushed_offset(self) -> int:
        """Everything below is on this node's stable storage."""
        return self._quorum.log.flushed_offset

    @property
    def log_generation(self) -> int:
        """How often the log was cut or begun anew: goes into ``Flushed``."""
        return self._quorum.log.generation

    @property
    def is_voter(self) -> bool:
        return self._quorum.is_voter

    @property
    def voters(self) -> VoterSet:
        return self._quorum.history.voters

    @property
    def kraft_version(self) -> int:
        return self._quorum.history.kraft_version

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The newest complete snapshot; the 0-0 checkpoint of format counts."""
        return self._quorum.log.latest_snapshot

    def epoch_at(self, offset: int) -> int:
        """The epoch of the record at ``offset``. Raises KeyError for an offset that the log doesn't hold."""
        return self._quorum.log.epoch_at(offset)


# Events.


def _start(quorum: Quorum, event: Start) -> None:
    retention.start(quorum)
    elections.start(quorum)


def _tick(quorum: Quorum, event: Tick) -> None:
    """Time passes with every step; a tick brings nothing else."""


def _rpc(quorum: Quorum, event: RpcRequest) -> None:
    handler = RPC_HANDLERS.get(type(event.request))
    if handler is None:
        raise InvariantViolated(f"{type(event.request).__name__} is not for raft to answer")
    handler(quorum, event)


def _abandon(quorum: Quorum, event: RequestAbandoned) -> None:
    quorum.parked.abandon(event.token)


def _log_truncated(quorum: Quorum, event: LogTruncated) -> None:
    quorum.log.size_bytes -= event.deleted_bytes
    follow.truncated(quorum, event.end_offset)


def _shut_down(quorum: Quorum, event: ShutDown) -> None:
    elections.shut_down(quorum)


_HANDLERS: Final[dict[type[Event], Callable[[Quorum, Any], None]]] = {
    Start: _start,
    Tick: _tick,
    RpcRequest: _rpc,
    RequestAbandoned: _abandon,
    ResponseReceived: duties.take_response,
    RequestFailed: duties.take_failure,
    Propose: append.propose,
    Flushed: append.flushed,
    LogTruncated: _log_truncated,
    SnapshotVerified: install.verified,
    SnapshotRejected: install.rejected,
    SnapshotWritten: retention.snapshot_written,
    LogTrimmed: retention.log_trimmed,
    ShutDown: _shut_down,
}
