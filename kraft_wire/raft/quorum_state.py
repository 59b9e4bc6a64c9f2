"""The state that all parts of the core share, and the operations on it that several of them need.

A step collects its effects here. Roles change only through ``become``: it checks the transition, persists the
epoch and the vote of a new role, and reports lost leadership.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.raft.config import DurableState, RaftConfig, Randomness
from kraft_wire.raft.door.epoch_limits import LAST_EPOCH
from kraft_wire.raft.door.raises import OF_OTHERS, OF_VOTERS, Raises
from kraft_wire.raft.door.report_limit import ReportLimit
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
from kraft_wire.raft.election.doubts import Doubts
from kraft_wire.raft.election.hints import Hints
from kraft_wire.raft.election.leader_behind import LeaderBehind
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import Now
from kraft_wire.raft.leader.leadership import Leadership
from kraft_wire.raft.leader.parked_fetches import ParkedFetches
from kraft_wire.raft.leader.pending_change import PendingChange
from kraft_wire.raft.leader.voter_questions import VoterQuestions
from kraft_wire.raft.leader.waiting_observers import WaitingObservers
from kraft_wire.raft.log_state import LogState
from kraft_wire.raft.membership.voter_history import VoterSetHistory
from kraft_wire.raft.membership.voters import Peer, VoterSet, peer_at
from kraft_wire.raft.outgoing import Call, Outgoing
from kraft_wire.raft.roles import DURABLE, Follower, Leader, Resigned, RoleState, Unattached, check_transition

T = TypeVar("T")

LEADER_RECORD_WAIT_MS: Final = 1000
"""The time after which quorum-state names a leader that was found in an epoch that it has already: a failover
doesn't wait for that write."""


class QuorumState:
    """The quorum as one node sees it."""

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
        self.observers = WaitingObservers()
        self.outgoing = Outgoing()
        self.now = Now(0, 0)
        self.cleaning_deadline_ms = 0
        self.is_trimming = False
        self.wanted_from_offset: int | None = None
        self.is_shutting_down = False
        self.can_lead = True
        self.has_to_pass_records_on = False
        self.is_handing_over = False
        self.is_stopped = False
        self.stop_deadline_ms: int | None = None
        self.lost_below_offset = durable.lost_below_offset
        self.last_epoch_before_loss = _latest_known_epoch(durable)
        self.no_vote_up_to_epoch = min(durable.no_vote_up_to_epoch, LAST_EPOCH)
        self.committed_at_start = durable.committed_offset
        self.recorded_epoch = 0 if durable.election is None else durable.election.leader_epoch
        self.leader_record_due_ms: int | None = None
        self.lost_elections = 0
        self.yielded_in_epoch = -1
        self.doubts = Doubts()
        self.hints = Hints()
        self.raises = Raises(OF_VOTERS)
        self.raises_of_others = Raises(OF_OTHERS)
        self.refused_raises = ReportLimit()
        self.refused_entries = ReportLimit()
        self.last_heard_ms = 0
        self.has_heard_leader = False
        self.leader_behind = LeaderBehind()
        self.pending_change: PendingChange | None = None
        self.voter_questions = VoterQuestions()
        self._recorded = durable.election
        self._highest_high_watermark: int | None = None
        self._rng = rng
        self._effects: list[Effect] = []

    # Effects.

    def emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    def take_effects(self) -> list[Effect]:
        """Return the effects of the step, in order, and forget them."""
        effects, self._effects = self._effects, []
        return effects

    # Epoch and leader.

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def leadership(self) -> Leadership | None:
        """The state of this node as a leader; None if it doesn't lead."""
        return self.state.leadership if isinstance(self.state, Leader) else None

    @property
    def leader_id(self) -> int | None:
        """The leader of the epoch, None if unknown. A leader that has resigned doesn't count."""
        return None if isinstance(self.state, Resigned) else self.state.leader_id

    @property
    def high_watermark(self) -> int | None:
        """The high watermark; None if it isn't known. A new leader has to determine it again."""
        leadership = self.leadership
        return self._highest_high_watermark if leadership is None else leadership.high_watermark

    @property
    def committed_offset(self) -> int:
        """The offset below which this node has ever known everything to be committed. It never decreases."""
        latest = self.log.latest_snapshot
        in_snapshot = 0 if latest is None else latest.end_offset
        return max(self._highest_high_watermark or 0, self.committed_at_start, in_snapshot)

    @property
    def is_only_voter(self) -> bool:
        return self.is_voter and self.history.voters.is_only_voter(self.config.replica_key)

    @property
    def is_voter(self) -> bool:
        return self._may_vote_in(self.history.voters)

    def _may_vote_in(self, voters: VoterSet) -> bool:
        """Whether this node is one of these voters and votes."""
        return not self.config.is_observer_only and voters.is_voter(self.config.replica_key)

    @property
    def are_voters_committed(self) -> bool:
        """Whether the last change of the voters is known to be committed."""
        offset = self.history.voters_offset
        return offset is None or offset < self.committed_offset

    @property
    def takes_part(self) -> bool:
        """Whether this node may stand for election: it is a voter, or its removal isn't committed.

        Perhaps only this node has the record of its removal, and nobody without the record can be elected
        (Raft's dissertation, 4.2.2). Java's nodes don't stand then.
        """
        return any(map(self._may_vote_in, self.possible_voters))

    @property
    def possible_voters(self) -> Sequence[VoterSet]:
        """The voter sets that may be in effect on some node, the newest last."""
        return self.history.possible_voters(self.committed_offset)

    @property
    def is_log_complete(self) -> bool:
        """Whether the log holds all records that were committed with this node's acknowledgement.

        If it doesn't, this node's vote could elect a leader that lacks committed records.
        """
        return self.lost_below_offset is None

    @property
    def may_start_election(self) -> bool:
        can_stand = self.takes_part and self.is_log_complete and self.next_epoch <= LAST_EPOCH
        may_lead = self.can_lead or self.has_to_pass_records_on
        return can_stand and may_lead and not self.is_shutting_down

    @property
    def next_epoch(self) -> int:
        """The epoch of this node's next election: after all epochs in which it may have voted or led."""
        return max(self.epoch, self.no_vote_up_to_epoch) + 1

    @property
    def leaderless_ms(self) -> int:
        """The time since this node last heard a leader, or started."""
        return self.now.monotonic_ms - self.last_heard_ms

    # Transitions.

    def become(self, state: RoleState) -> None:
        """Change the role. Raises IllegalTransition."""
        old = self.state
        check_transition(old, state)
        self.state = state
        if state.ROLE in DURABLE:
            self._record(state.election)
        if old.epoch < LAST_EPOCH <= state.epoch:
            self.emit(EpochsUsedUp(state.epoch))
        if (old.ROLE, old.epoch) != (state.ROLE, state.epoch):
            self._abandon_requests(old)
            self._abandon_snapshot(old)
        if isinstance(old, Leader):
            self.emit(LostLeadership(old.epoch, self.leader_id))

    def _abandon_requests(self, old: RoleState) -> None:
        leader_id = old.leader_id if isinstance(old, Follower) else None
        found = _found_leader(old, self.state, self.config.listener)
        for request_id in self.outgoing.forget_all(leader_id=leader_id, keep_search_at=found):
            self.emit(CancelRequest(request_id))

    def _abandon_snapshot(self, old: RoleState) -> None:
        following = old.following if isinstance(old, Follower) else None
        if following is not None and following.snapshot is not None:
            self.emit(AbandonSnapshot(following.snapshot.id))
            following.snapshot = None

    def _record(self, election: ElectionState) -> None:
        """Write quorum-state, at once unless only the leader is new.

        Safety needs the epoch and the vote (Raft's persistent state). A node that forgets in a crash who led
        its epoch may grant its free vote to another candidate of that epoch. That one can't win: a majority
        voted for the leader, and remembers it. Java writes the leader at once, too, but a node that voted
        doesn't read it again (QuorumState.initialize).

        A leader's own record is never late. A Java controller that took over the folder of a candidate would
        ask for votes in the same epoch again; it must not lead an epoch that has records already.
        """
        recorded = self._recorded
        is_known = recorded is not None and election == msgspec.structs.replace(
            recorded, leader_id=election.leader_id
        )
        if not is_known or election.leader_id == self.config.node_id:
            self.persist()
        elif election != recorded and self.leader_record_due_ms is None:
            self.leader_record_due_ms = self.now.monotonic_ms + LEADER_RECORD_WAIT_MS

    def record_leader(self) -> None:
        """Write the leader down if that is due."""
        due_ms = self.leader_record_due_ms
        if due_ms is not None and due_ms <= self.now.monotonic_ms:
            self.persist()

    def persist(self) -> None:
        """Emit the effect that writes quorum-state.

        If no peer could see anything since an earlier write in this step, the new one replaces that one.
        """
        self._drop_unseen_write()
        election, voters = self.state.election, self.history.voters
        self._recorded, self.leader_record_due_ms = election, None
        self.emit(PersistElectionState(election, self.history.kraft_version, voters.ids))

    def _drop_unseen_write(self) -> None:
        for index in range(len(self._effects) - 1, -1, -1):
            effect = self._effects[index]
            if isinstance(effect, PersistElectionState):
                del self._effects[index]
                return
            if not isinstance(effect, CancelRequest):
                return

    def election_deadline_ms(self) -> int:
        """Return when an election that begins now times out: between one and two election timeouts from
        now."""
        timeout_ms = self.config.election_timeout_ms
        return self.now.monotonic_ms + timeout_ms + self._below(timeout_ms)

    def failover_deadline_ms(self) -> int:
        """Return when to start an election after one without a winner.

        It is soon, and random so that two nodes don't split the vote again. The range grows with each lost
        election in a row.
        """
        spread_ms = self.config.failover_spread_ms << min(self.lost_elections, 16)
        return self.now.monotonic_ms + self._below(min(spread_ms, self.config.election_backoff_max_ms))

    def fetch_deadline_ms(self) -> int:
        """Return the time by which a leader that answers now has to answer again."""
        return self.now.monotonic_ms + self.config.fetch_timeout_ms

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of the choices at random. Raises IndexError for an empty sequence."""
        return choices[self._below(len(choices))]

    def _below(self, bound: int) -> int:
        return self._rng.below(bound) if bound > 1 else 0

    # Requests to peers.

    def send(self, peer: Peer, request: Message, *, is_search: bool = False) -> None:
        """Send a request to a peer, which has the request timeout to answer."""
        deadline_ms = self.now.monotonic_ms + self.config.request_timeout_ms
        request_id = self.outgoing.begin(peer, request, self.epoch, deadline_ms, is_search=is_search)
        self.emit(SendRequest(request_id, peer, request))

    def back_off(self, call: Call) -> None:
        """Don't ask a peer again at once, because its answer was of no use."""
        self.outgoing.failed(call.peer, self.now.monotonic_ms, self.config.retry_backoff_ms)

    # Commitment.

    def announce_high_watermark(self) -> None:
        """Report that more is committed.

        Raises InvariantViolated if the high watermark went back, or is above our log's end.
        """
        offset = self.high_watermark
        if offset is None or offset < self.committed_offset:
            raise InvariantViolated(
                f"the high watermark went from {self.committed_offset} to {offset} in epoch {self.epoch}"
            )
        if offset > self.log.end_offset:
            raise InvariantViolated(f"high watermark {offset} is above the log's end {self.log.end_offset}")
        self._raise_high_watermark(offset)

    def follow_high_watermark(self, leader_high_watermark: int) -> None:
        """Raise the high watermark to the leader's, as far as our log reaches."""
        offset = self.log.batch_ends.at_or_below(min(leader_high_watermark, self.log.end_offset))
        if offset >= self.committed_offset and offset > (self._highest_high_watermark or 0):
            self._raise_high_watermark(offset)

    def _raise_high_watermark(self, offset: int) -> None:
        self._highest_high_watermark = offset
        self.log.batch_ends.forget_below(offset)
        self.emit(HighWatermarkAdvanced(offset))

    def check_loss_made_good(self) -> None:
        """Check after a flush whether the lost records are replaced: then this node may vote again.

        They are replaced for good: a later leader may truncate the log, but never below a committed record.
        There are two ways.

        The first: what leaders sent reaches up to the lost offset again.

        The second: the log holds a record of an epoch that is later than any epoch in which this node
        acknowledged or voted before the loss. This node didn't vote for the leader of that epoch: not before
        the loss, and not after it with an incomplete log. So a majority without this node did. Any majority
        that committed an earlier record contains one of those voters. Because of their votes the leader had
        all such records below the first record of its epoch, and our log equals the leader's up to there. The
        lost tail may have been longer, but no more of it can be committed.
        """
        if self.lost_below_offset is None:
            return
        if self.log.flushed_offset >= self.lost_below_offset or self._reaches_later_epoch():
            self.lost_below_offset = None
            self.emit(LossMadeGood())

    def _reaches_later_epoch(self) -> bool:
        last_flushed = self.log.flushed_offset - 1
        if self.last_epoch_before_loss is None or last_flushed < 0:
            return False
        return self.log.epoch_at(last_flushed) > self.last_epoch_before_loss

    def snapshot_id_at(self, end_offset: int) -> SnapshotId:
        """Return the id of a snapshot of everything below ``end_offset``. Raises KeyError for an offset that
        the log doesn't hold."""
        return SnapshotId(end_offset, self.log.epoch_at(end_offset - 1))


def _found_leader(old: RoleState, new: RoleState, listener: str) -> Peer | None:
    """Return the leader that an unattached node finds in its epoch; None for other transitions.

    A Fetch to it that is in flight asks for what the follower wants, so its connection stays open.
    """
    if isinstance(old, Unattached) and isinstance(new, Follower) and old.epoch == new.epoch:
        return peer_at(new.leader_id, new.leader_endpoints, listener)
    return None


def _latest_known_epoch(durable: DurableState) -> int | None:
    """Return the latest epoch in which this node may have acted before it started; None if that is
    unknown."""
    recorded = None if durable.election is None else durable.election.leader_epoch
    if recorded is None and durable.no_vote_up_to_epoch < 0:
        return None
    return max(recorded or 0, durable.no_vote_up_to_epoch, durable.epochs.latest_epoch or 0)
