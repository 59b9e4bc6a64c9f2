"""The state that all parts of the core share, and the few things that they do to it together.

A step collects its effects here. Roles change through ``become`` only, which checks the transition, persists
it where the role is durable, and says when leadership was lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.raft.config import DurableState, RaftConfig, Randomness
from kraft_wire.raft.effects import (
    AbandonSnapshot,
    CancelRequest,
    Effect,
    EpochsUsedUp,
    HighWatermarkAdvanced,
    LossMadeGood,
    LostLeadership,
    PersistElectionState,
    SendRequest,
)
from kraft_wire.raft.epochs import LAST_EPOCH
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import Now
from kraft_wire.raft.history import VoterSetHistory
from kraft_wire.raft.leadership import Leadership
from kraft_wire.raft.log_state import LogState
from kraft_wire.raft.outgoing import Call, Outgoing
from kraft_wire.raft.parked import ParkedFetches
from kraft_wire.raft.roles import DURABLE, Follower, Leader, Resigned, RoleState, check_transition
from kraft_wire.raft.voters import Endpoint, Peer, endpoint_at


class Quorum:
    """One node's view of its quorum."""

    def __init__(
        self,
        config: RaftConfig,
        durable: DurableState,
        log: LogState,
        history: VoterSetHistory,
        state: RoleState,
        rng: Randomness,
    ) -> None:
        self.config = config
        self.log = log
        self.history = history
        self.state = state
        self.parked = ParkedFetches()
        self.outgoing = Outgoing()
        self.now = Now(0, 0)
        self.cleaning_deadline_ms = 0
        self.is_trimming = False
        self.is_shutting_down = False
        self.is_handing_over = False
        self.is_stopped = False
        self.stop_deadline_ms: int | None = None
        self.lost_below_offset = durable.lost_below_offset
        self.lost_by_epoch = _latest_epoch_of(durable)
        self.no_vote_up_to_epoch = min(durable.no_vote_up_to_epoch, LAST_EPOCH)
        self.committed_at_start = durable.committed_offset
        self.recorded_epoch = 0 if durable.election is None else durable.election.leader_epoch
        self.lost_elections = 0
        self._highest_high_watermark: int | None = None
        self._rng = rng
        self._effects: list[Effect] = []

    # Effects.

    def emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    def take_effects(self) -> list[Effect]:
        """What the step decided, in order."""
        effects, self._effects = self._effects, []
        return effects

    # Who leads.

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def leadership(self) -> Leadership | None:
        """What this node knows as a leader; None while it isn't one."""
        return self.state.leadership if isinstance(self.state, Leader) else None

    @property
    def leader_id(self) -> int | None:
        """Who leads now; a leader that has resigned doesn't."""
        return None if isinstance(self.state, Resigned) else self.state.leader_id

    @property
    def leader_id_on_wire(self) -> int:
        """The leader id in responses, -1 for none. As Java, a node that has resigned still names itself."""
        return -1 if self.state.leader_id is None else self.state.leader_id

    @property
    def high_watermark(self) -> int | None:
        """The high watermark, None where it isn't known: a new leader has to find it anew."""
        leadership = self.leadership
        return self._highest_high_watermark if leadership is None else leadership.high_watermark

    @property
    def committed_offset(self) -> int:
        """Below this everything is committed, by all that this node has ever known. It never goes back."""
        latest = self.log.latest_snapshot
        in_snapshot = 0 if latest is None else latest.end_offset
        return max(self._highest_high_watermark or 0, self.committed_at_start, in_snapshot)

    @property
    def is_only_voter(self) -> bool:
        return self.history.voters.is_only_voter(self.config.replica_key)

    @property
    def is_voter(self) -> bool:
        return self.history.voters.is_voter(self.config.replica_key)

    @property
    def is_whole(self) -> bool:
        """Whether the log holds all that was committed by this node's acknowledgement. If not, its vote could
        elect somebody who lacks what is committed."""
        return self.lost_below_offset is None

    @property
    def may_stand(self) -> bool:
        can_stand = self.is_voter and self.is_whole and self.next_epoch <= LAST_EPOCH
        return can_stand and not self.is_shutting_down

    @property
    def next_epoch(self) -> int:
        """The epoch to stand in: past those that this node may have voted in or led without knowing."""
        return max(self.epoch, self.no_vote_up_to_epoch) + 1

    def leader_endpoint(self, listener: str) -> Endpoint | None:
        """Where the leader can be reached on the listener that a request came through."""
        return endpoint_at(self.state.leader_endpoints, listener)

    # Transitions.

    def become(self, state: RoleState) -> None:
        """Change role. Raises IllegalTransition."""
        old = self.state
        check_transition(old, state)
        self.state = state
        if state.ROLE in DURABLE:
            self.persist()
        if old.epoch < LAST_EPOCH <= state.epoch:
            self.emit(EpochsUsedUp(state.epoch))
        if (old.ROLE, old.epoch) != (state.ROLE, state.epoch):
            for request_id in self.outgoing.forget_all():
                self.emit(CancelRequest(request_id))
            self._abandon_snapshot(old)
        if isinstance(old, Leader):
            self.emit(LostLeadership(old.epoch, -1 if self.leader_id is None else self.leader_id))

    def _abandon_snapshot(self, old: RoleState) -> None:
        following = old.following if isinstance(old, Follower) else None
        if following is not None and following.snapshot is not None:
            self.emit(AbandonSnapshot(following.snapshot.id))
            following.snapshot = None

    def persist(self) -> None:
        """Have the election state written; of two in a row, between which nobody could learn of the first,
        the last is enough."""
        if self._effects and isinstance(self._effects[-1], PersistElectionState):
            self._effects.pop()
        election, voters = self.state.election, self.history.voters
        self.emit(PersistElectionState(election, self.history.kraft_version, voters.ids))

    def election_deadline_ms(self) -> int:
        """When an election that begins now times out: between one and two election timeouts."""
        timeout_ms = self.config.election_timeout_ms
        return self.now.monotonic_ms + timeout_ms + self._below(timeout_ms)

    def failover_deadline_ms(self) -> int:
        """When to stand after evidence that there is no leader, or after an election that nobody won: soon,
        and at random so that two don't split the vote again; later with each lost election in a row."""
        spread_ms = self.config.failover_spread_ms << min(self.lost_elections, 16)
        return self.now.monotonic_ms + self._below(min(spread_ms, self.config.election_backoff_max_ms))

    def pick(self, peers: Sequence[Peer]) -> Peer:
        """One of them, at random. Raises IndexError for none."""
        return peers[self._below(len(peers))]

    def _below(self, bound: int) -> int:
        return self._rng.below(bound) if bound > 1 else 0

    # Asking others.

    def send(self, peer: Peer, request: Message) -> None:
        """Ask a peer; it has the request timeout to answer."""
        deadline_ms = self.now.monotonic_ms + self.config.request_timeout_ms
        self.emit(SendRequest(self.outgoing.begin(peer, request, self.epoch, deadline_ms), peer, request))

    def leave_alone(self, call: Call) -> None:
        """A peer was of no use: don't ask it again at once."""
        self.outgoing.failed(call.peer, self.now.monotonic_ms, self.config.retry_backoff_ms)

    # Commitment.

    def announce_high_watermark(self) -> None:
        """More is committed. Raises InvariantViolated when it isn't more, or isn't on our own stable
        storage."""
        offset = self.high_watermark
        if offset is None or offset < self.committed_offset:
            raise InvariantViolated(
                f"the high watermark went from {self.committed_offset} to {offset} in epoch {self.epoch}"
            )
        if offset > self.log.end_offset:
            raise InvariantViolated(f"high watermark {offset} is above the log's end {self.log.end_offset}")
        self._highest_high_watermark = offset
        self.emit(HighWatermarkAdvanced(offset))

    def follow_high_watermark(self, leaders: int) -> None:
        """The leader says how much is committed; of that, what we have counts here."""
        offset = min(leaders, self.log.end_offset)
        if offset >= self.committed_offset and offset > (self._highest_high_watermark or 0):
            self._highest_high_watermark = offset
            self.emit(HighWatermarkAdvanced(offset))

    def look_whether_whole(self) -> None:
        """More is flushed. What was lost is made good for good: a leader may cut the log again, but nothing
        that is committed.

        It is once the log reaches as far again, in what a leader gave us. Or once it holds a record of an
        epoch later than any in which this node acknowledged or voted before the loss: it didn't vote for that
        epoch's leader, neither before nor, not being whole, after. So a majority without it did, and of any
        majority that committed something earlier, one other than this node is among them. By their votes the
        leader had all of that, below its epoch's first record; and our log is the leader's up to there. The
        tail that was lost may have been longer, but no more of it is ever committed.
        """
        if self.lost_below_offset is None:
            return
        if self.log.flushed_offset >= self.lost_below_offset or self._reaches_later_epoch():
            self.lost_below_offset = None
            self.emit(LossMadeGood())

    def _reaches_later_epoch(self) -> bool:
        last_flushed = self.log.flushed_offset - 1
        if self.lost_by_epoch is None or last_flushed < 0:
            return False
        return self.log.epoch_at(last_flushed) > self.lost_by_epoch

    def snapshot_id_at(self, end_offset: int) -> SnapshotId:
        """The id of a snapshot of everything below ``end_offset``. Raises KeyError for what the log no longer
        or not yet has."""
        return SnapshotId(end_offset, self.log.epoch_at(end_offset - 1))


def _latest_epoch_of(durable: DurableState) -> int | None:
    """No epoch in which this node did anything before it started is above this; None where it isn't known."""
    recorded = None if durable.election is None else durable.election.leader_epoch
    if recorded is None and durable.no_vote_up_to_epoch < 0:
        return None
    return max(recorded or 0, durable.no_vote_up_to_epoch, durable.epochs.latest_epoch or 0)
