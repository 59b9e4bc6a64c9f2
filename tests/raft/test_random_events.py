"""A lone leader and its observers under random events, with invariants that hold after each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from kraft_wire.log.batch import Batch, iter_records
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import begin_quorum_epoch_request, vote_request
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft.effects import AppendBatch, Effect, PersistElectionState, Reply, ReplyRecords, TrimLog
from kraft_wire.raft.election.doubts import RAISE_DOUBT_MS
from kraft_wire.raft.membership.voters import VoterSet
from kraft_wire.raft.roles import Role
from tests.raft.lone_node import (
    DIRECTORY,
    OTHER_DIRECTORY,
    Answer,
    LoneNode,
    config,
    fetch,
    formatted_standalone,
    of_type,
    only,
)

OBSERVERS = (7, 8)


class Observer:
    """A replica that appends what it is sent, truncates its log when asked to, and restarts from a
    snapshot."""

    def __init__(self, node_id: int) -> None:
        self.id = node_id
        self.start_offset = 0
        self.start_epoch = 0
        self.batches: list[Batch] = []
        self.high_watermark = -1
        self.leader_epoch = 0
        self.waits_until_ms: int | None = None

    @property
    def end_offset(self) -> int:
        return self.batches[-1].header.next_offset if self.batches else self.start_offset

    @property
    def last_epoch(self) -> int:
        return self.batches[-1].header.leader_epoch if self.batches else self.start_epoch

    def take(self, reply: Effect, leader: LoneNode) -> None:
        """Handle an answer as a real follower does."""
        self.waits_until_ms = None
        answer = only(reply.response)  # type: ignore[union-attr]
        self.leader_epoch = max(self.leader_epoch, answer.current_leader.leader_epoch)
        if answer.error_code:
            assert answer.error_code in {
                ErrorCode.FENCED_LEADER_EPOCH,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                ErrorCode.UNKNOWN_LEADER_EPOCH,
            }
        elif answer.diverging_epoch.epoch >= 0:
            self._truncate(answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset)
        elif answer.snapshot_id.epoch >= 0:
            self._install(SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch), leader)
        else:
            if isinstance(reply, ReplyRecords):
                self._append(reply, leader)
            if answer.high_watermark >= 0:
                new = min(answer.high_watermark, self.end_offset)
                assert new >= self.high_watermark, "the high watermark went back"
                self.high_watermark = new

    def _append(self, reply: ReplyRecords, leader: LoneNode) -> None:
        assert reply.offset == self.end_offset
        assert reply.end_offset <= leader.core.log_end_offset
        for batch in leader.batches:
            if reply.offset <= batch.header.base_offset < reply.end_offset:
                assert batch.header.base_offset == self.end_offset
                self.batches.append(batch)

    def _truncate(self, epoch: int, end_offset: int) -> None:
        cache = EpochCache(_epoch_starts(self.batches, self.start_offset))
        own = cache.end_offset_for_epoch(epoch, self.end_offset)
        cut = min(own.end_offset, end_offset) if own.epoch == epoch else own.end_offset
        assert cut >= self.high_watermark, "cut below the high watermark"
        before = self.end_offset
        self.batches = [batch for batch in self.batches if batch.header.base_offset < cut]
        assert self.end_offset < before, "truncation makes no progress"

    def _install(self, snapshot_id: SnapshotId, leader: LoneNode) -> None:
        assert any(info.id == snapshot_id for info in leader.snapshots), "a snapshot that isn't there"
        self.start_offset, self.start_epoch = snapshot_id
        self.batches = []
        self.high_watermark = max(self.high_watermark, snapshot_id.end_offset)


def _epoch_starts(batches: list[Batch], start_offset: int) -> Iterator[tuple[int, int]]:
    seen = -1
    for batch in batches:
        if batch.header.leader_epoch != seen:
            seen = batch.header.leader_epoch
            yield seen, batch.header.base_offset


class AskedVote(NamedTuple):
    """A Vote that a candidate waits for, and the time by which it has to be answered."""

    epoch: int
    candidate: int
    pre_vote: bool
    until_ms: int


class LoneLeader(RuleBasedStateMachine):
    """A leader that gets random events; its disk loses what isn't flushed."""

    @initialize(is_dynamic=st.booleans(), retention_bytes=st.sampled_from([-1, 0, 600]))
    def begin(self, is_dynamic: bool, retention_bytes: int) -> None:
        start = replace(
            config(static=VoterSet()) if is_dynamic else config(), max_retention_bytes=retention_bytes
        )
        self.node = LoneNode(start, formatted_standalone() if is_dynamic else None, start=False)
        self.observers = {node_id: Observer(node_id) for node_id in OBSERVERS}
        self.appended: dict[tuple[int, int], bytes] = {}
        self.epoch = 0
        self.high_watermark = -1
        self.votes: dict[int, int] = {}
        self.asked_votes: dict[tuple[str, int], AskedVote] = {}
        self.trims_to_report = 0
        self.sequence = 0
        self.note(self.node.restart())

    def note(self, effects: list[Effect]) -> None:
        """Check the effects of a step, and let observers handle their answers."""
        for append in of_type(effects, AppendBatch):
            (batch,) = (batch for batch in self.node.batches if batch.data is append.data)
            for record in iter_records(batch):
                key = append.epoch, record.offset
                assert key not in self.appended, f"{key} was used before"
                self.appended[key] = record.value
        for persist in of_type(effects, PersistElectionState):
            assert persist.state.leader_epoch >= self.epoch
        self.trims_to_report += len(of_type(effects, TrimLog))
        for observer in self.observers.values():
            reply = self.node.answers.pop(observer.id, None)
            if reply is not None:
                observer.take(reply, self.node)
        for token in self.asked_votes.keys() & self.node.answers.keys():
            self._take_vote(self.asked_votes.pop(token), self.node.answers.pop(token))

    def _take_vote(self, asked: AskedVote, reply: Answer) -> None:
        assert isinstance(reply, Reply)
        response = reply.response
        assert isinstance(response, VoteResponse)
        if response.topics[0].partitions[0].vote_granted and not asked.pre_vote:
            assert self.votes.setdefault(asked.epoch, asked.candidate) == asked.candidate
            assert asked.candidate != 1

    # The leader.

    @rule(count=st.integers(1, 3))
    def propose(self, count: int) -> None:
        if self.node.core.is_leader:
            self.sequence += 1
            self.note(self.node.propose(*(b"%d of %d" % (n, self.sequence) for n in range(count))))

    @rule(batches=st.integers(1, 4))
    def flush(self, batches: int) -> None:
        self.note(self.node.flush(batches))

    @rule()
    def crash(self) -> None:
        self.node.crash()
        self.trims_to_report = 0
        for observer in self.observers.values():
            observer.waits_until_ms = None
        self.asked_votes.clear()
        self.note(self.node.restart())

    @rule(ms=st.sampled_from([1, 100, 499, 500, 1_500, 2_000, 60_000]))
    def pass_time(self, ms: int) -> None:
        """Pass time as an owner does: no tick comes later than the deadline that the core asked for."""
        end_ms = self.node.now.monotonic_ms + ms
        while (deadline_ms := self.node.core.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            step_ms = max(0, deadline_ms - self.node.now.monotonic_ms)
            self.note(self.node.pass_ms(step_ms))
            after = self.node.core.next_deadline_ms()
            assert after is None or after > self.node.now.monotonic_ms, "a deadline that never ends"
        self.note(self.node.pass_ms(end_ms - self.node.now.monotonic_ms))

    # Observers.

    @rule(node_id=st.sampled_from(OBSERVERS), knows=st.booleans(), wait_ms=st.sampled_from([0, 100, 500]))
    def observe(self, node_id: int, knows: bool, wait_ms: int) -> None:
        observer = self.observers[node_id]
        if observer.waits_until_ms is not None:
            return
        known = observer.high_watermark if knows else 2**63 - 1
        observer.waits_until_ms = self.node.now.monotonic_ms + wait_ms
        request = fetch(
            observer.end_offset,
            observer.last_epoch,
            epoch=max(observer.leader_epoch, observer.last_epoch),
            replica=node_id,
            high_watermark=known,
            max_wait_ms=wait_ms,
        )
        self.note(self.node.ask(request, 18, token=node_id))

    # Strangers.

    @rule(rise=st.integers(0, 3), is_ahead=st.booleans(), pre_vote=st.booleans(), candidate=st.integers(1, 3))
    def vote(self, rise: int, is_ahead: bool, pre_vote: bool, candidate: int) -> None:
        epoch = self.node.core.epoch + rise
        last = (max(0, epoch - 1), self.node.core.log_end_offset + 5) if is_ahead else (0, 0)
        partition = vote_request.PartitionData(
            replica_epoch=epoch,
            replica_id=candidate,
            replica_directory_id=OTHER_DIRECTORY,
            voter_directory_id=DIRECTORY,
            last_offset_epoch=last[0],
            last_offset=last[1],
            pre_vote=pre_vote,
        )
        topic = vote_request.TopicData(topic_name="__cluster_metadata", partitions=[partition])
        self.sequence += 1
        token = ("vote", self.sequence)
        until_ms = self.node.now.monotonic_ms + RAISE_DOUBT_MS
        self.asked_votes[token] = AskedVote(epoch, candidate, pre_vote, until_ms)
        self.note(self.node.ask(VoteRequest(voter_id=1, topics=[topic]), 2, token=token))

    @rule(rise=st.integers(0, 2), leader=st.integers(1, 3))
    def claim_to_lead(self, rise: int, leader: int) -> None:
        partition = begin_quorum_epoch_request.PartitionData(
            leader_id=leader, leader_epoch=self.node.core.epoch + rise, voter_directory_id=DIRECTORY
        )
        request = BeginQuorumEpochRequest(
            voter_id=1,
            topics=[
                begin_quorum_epoch_request.TopicData(topic_name="__cluster_metadata", partitions=[partition])
            ],
            leader_endpoints=[
                begin_quorum_epoch_request.LeaderEndpoint(name="CONTROLLER", host="stranger", port=1)
            ],
        )
        self.note(self.node.ask(request, 1, token="begin"))
        self.node.answers.pop("begin")

    # Snapshots.

    @precondition(lambda self: self.node.core.is_leader and self.node.core.high_watermark is not None)
    @rule(size_bytes=st.integers(100, 400))
    def write_snapshot(self, size_bytes: int) -> None:
        latest, committed = self.node.core.latest_snapshot, self.node.core.high_watermark
        assert committed is not None
        if latest is None or latest.end_offset < committed:
            self.note(self.node.write_snapshot(size_bytes))

    @rule(deleted_bytes=st.integers(0, 200))
    def report_trim(self, deleted_bytes: int) -> None:
        if self.trims_to_report:
            self.trims_to_report -= 1
            self.note(self.node.log_trimmed(min(deleted_bytes, self.node.core._quorum.log.size_bytes)))

    # Invariants.

    @invariant()
    def monotonic_epoch(self) -> None:
        assert self.node.core.epoch >= self.epoch
        self.epoch = self.node.core.epoch
        assert self.node.election is not None
        assert self.node.election.leader_epoch == self.epoch

    @invariant()
    def monotonic_high_watermark(self) -> None:
        announced = self.node.high_watermarks
        assert announced == sorted(set(announced))
        known = self.node.core.high_watermark
        if announced:
            self.high_watermark = announced[-1]
        if known is not None and announced:
            assert known <= self.high_watermark

    @invariant()
    def nothing_above_the_flushed_end_is_committed(self) -> None:
        assert self.high_watermark <= self.node.flushed_end_offset
        assert self.node.core.flushed_offset == self.node.flushed_end_offset
        for observer in self.observers.values():
            assert observer.high_watermark <= max(self.high_watermark, 0)

    @invariant()
    def committed_data_is_the_same_everywhere(self) -> None:
        leaders = {batch.header.base_offset: batch.data for batch in self.node.batches}
        for observer in self.observers.values():
            for batch in observer.batches:
                if batch.header.base_offset < observer.high_watermark:
                    assert batch.data == leaders[batch.header.base_offset]

    @invariant()
    def snapshot_at_log_start(self) -> None:
        start = self.node.core.log_start_offset
        assert start == self.node.log_start_offset
        assert start == 0 or start in {info.id.end_offset for info in self.node.snapshots}
        assert start <= max(self.high_watermark, 0)

    @invariant()
    def nobody_waits_beyond_the_deadline(self) -> None:
        waits = [observer.waits_until_ms for observer in self.observers.values()]
        waits += [asked.until_ms for asked in self.asked_votes.values()]
        for deadline_ms in waits:
            if deadline_ms is not None:
                assert deadline_ms > self.node.now.monotonic_ms
                armed_ms = self.node.core.next_deadline_ms()
                assert armed_ms is not None
                assert armed_ms <= deadline_ms

    @invariant()
    def one_vote_an_epoch(self) -> None:
        for epoch, candidate in self.votes.items():
            state = self.node.election
            if state is not None and state.leader_epoch == epoch:
                assert state.voted_id == candidate
                assert state.leader_id != 1

    @invariant()
    def the_leader_leads(self) -> None:
        core = self.node.core
        assert core.role in {Role.LEADER, Role.UNATTACHED, Role.FOLLOWER}
        assert core.is_leader == (core.role is Role.LEADER) == (core.leader_id == 1)

    def teardown(self) -> None:
        """Check liveness: without further events the leader commits, and observers get everything."""
        if not hasattr(self, "node"):
            return
        self.pass_time(10_000)
        assert self.node.core.is_leader
        self.flush(100)
        for _ in range(20):
            for node_id in OBSERVERS:
                self.observe(node_id, True, 0)
        for observer in self.observers.values():
            assert observer.end_offset == observer.high_watermark == self.node.core.log_end_offset


TestLoneLeader = LoneLeader.TestCase
TestLoneLeader.settings = settings(max_examples=150, stateful_step_count=60)
