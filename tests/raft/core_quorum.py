"""A quorum of raft cores without I/O: a clock that only the test moves, links that can be cut, disks that
lose what isn't flushed."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from lone_node import CLUSTER_ID, LISTENER

from kraft_wire.log.batch import Batch, split_batches
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft import effects as fx
from kraft_wire.raft.config import DurableState, RaftConfig, SnapshotInfo
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.events import (
    Event,
    Failure,
    Flushed,
    LogTrimmed,
    LogTruncated,
    Now,
    Propose,
    RequestFailed,
    ResponseReceived,
    RpcRequest,
    ShutDown,
    SnapshotVerified,
    SnapshotWritten,
    Start,
    Tick,
)
from kraft_wire.raft.roles import Role
from kraft_wire.raft.voters import Peer, ReplicaKey, Voter, VoterSet, endpoints_of, static_voters, voter_set

ONE_WAY_MS = 1
FLUSH_MS = 2
VERSIONS = {1: 18, 52: 2, 53: 1, 54: 1, 59: 1}
PORT = 9093


class SeededRandomness:
    """The same sequence for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


class Caller(NamedTuple):
    """The token of a request: who sent it, in which of its lives."""

    id: int
    life: int
    request_id: int


class Snapshot:
    """A snapshot's file, whose bytes mean nothing here, and what it says of voters."""

    def __init__(self, info: SnapshotInfo, data: bytes, control: list[Message]) -> None:
        self.info = info
        self.data = data
        self.control = control


class QuorumNode:
    """One core and its disk."""

    def __init__(self, quorum: CoreQuorum, config: RaftConfig, formatted: DurableState) -> None:
        self.quorum = quorum
        self.config = config
        self.election: ElectionState | None = None
        self.start_offset = 0
        self.batches: list[Batch] = []
        self.flushed_offset = 0
        self.snapshots: dict[SnapshotId, Snapshot] = {}
        self.parts: dict[SnapshotId, bytes] = {}
        self.formatted = formatted
        self.core: RaftCore | None = None
        self.life = 0
        self.effects: list[fx.Effect] = []
        self.high_watermark = 0
        self.is_flushing = False
        self.disk_is_stuck = False
        self.verify_ms = FLUSH_MS
        self.lost_below_offset: int | None = None
        self.no_vote_up_to_epoch = -1
        self.remembered_commit = 0

    @property
    def id(self) -> int:
        return self.config.node_id

    @property
    def is_up(self) -> bool:
        return self.core is not None

    @property
    def running(self) -> RaftCore:
        assert self.core is not None, f"node {self.id} is down"
        return self.core

    @property
    def end_offset(self) -> int:
        return self.batches[-1].header.next_offset if self.batches else self.start_offset

    # Life.

    def start(self) -> None:
        self.life += 1
        self.high_watermark = 0
        self.is_flushing = False
        seed = self.quorum.seed * 1000 + self.id * 100 + self.life
        self.core = RaftCore(self.config, self.durable_state(), SeededRandomness(seed))
        self.step(Start())

    def durable_state(self) -> DurableState:
        epochs: dict[int, int] = {}
        for batch in self.batches:
            epochs.setdefault(batch.header.leader_epoch, batch.header.base_offset)
        latest = max(self.snapshots, default=SnapshotId(0, 0))
        control = list(self.formatted.control_records)
        if latest.end_offset:
            control = [(latest.end_offset - 1, message) for message in self.snapshots[latest].control]
        control += _voter_records(
            batch for batch in self.batches if batch.header.base_offset >= latest.end_offset
        )
        return DurableState(
            election=self.election,
            log_start_offset=self.start_offset,
            log_end_offset=self.end_offset,
            log_size_bytes=sum(len(batch.data) for batch in self.batches),
            epochs=EpochCache(sorted(epochs.items())),
            snapshots=[*self.formatted.snapshots, *(snapshot.info for snapshot in self.snapshots.values())],
            control_records=control,
            committed_offset=min(self.remembered_commit, self.end_offset),
            lost_below_offset=self.lost_below_offset,
            no_vote_up_to_epoch=self.no_vote_up_to_epoch,
        )

    def crash(self) -> None:
        """Lose what isn't flushed, and every connection."""
        self.core = None
        self.life += 1
        self.batches = [b for b in self.batches if b.header.next_offset <= self.flushed_offset]
        self.parts.clear()
        self.quorum.break_connections(self.id)

    # Events.

    def step(self, event: Event) -> list[fx.Effect]:
        done = self.running.step(event, self.quorum.now)
        self.effects.extend(done)
        for effect in done:
            self._execute(effect)
        self.quorum.arm(self)
        return done

    def propose(self, *values: bytes) -> None:
        self.step(Propose(values or (b"record",)))

    def _execute(self, effect: fx.Effect) -> None:
        match effect:
            case fx.AppendBatch(data):
                self.batches.append(split_batches(data)[0][0])
                self._begin_flush()
            case fx.PersistElectionState(state):
                if self.election is not None:
                    assert state.leader_epoch >= self.election.leader_epoch, "the epoch went back"
                self.election = state
                self.quorum.note_vote(self.id, state)
            case fx.TruncateLog(end_offset):
                self._truncate(end_offset)
            case fx.SendRequest(request_id, peer, request):
                self.quorum.send(self, request_id, peer, request)
            case fx.Reply(Caller() as caller, response):
                self.quorum.answer(self, caller, response)
            case fx.ReplyRecords(Caller() as caller, response):
                wanted = [
                    batch.data
                    for batch in self.batches
                    if batch.header.base_offset >= effect.offset
                    and batch.header.last_offset < effect.end_offset
                ]
                if self.quorum.garble_records and wanted:
                    wanted[0] = wanted[0][:-1] + bytes([wanted[0][-1] ^ 1])
                response.responses[0].partitions[0].records = b"".join(wanted)  # type: ignore[attr-defined]
                self.quorum.answer(self, caller, response)
            case fx.ReplySnapshotBytes(Caller() as caller, response, snapshot_id, position, size):
                data = self.snapshots[snapshot_id].data[position : position + size]
                response.topics[0].partitions[0].unaligned_records = data  # type: ignore[attr-defined]
                self.quorum.answer(self, caller, response)
            case fx.HighWatermarkAdvanced(offset):
                assert offset > self.high_watermark, "the high watermark went back"
                self.high_watermark = self.remembered_commit = offset
                self.quorum.check_committed(self)
            case fx.BecameLeader(epoch):
                self.quorum.note_leader(self.id, epoch)
            case _:
                self._execute_on_snapshots(effect)

    def step_flushed(self, end_offset: int, generation: int) -> None:
        """A flush that began at this generation of the log is done."""
        self.step(Flushed(end_offset, generation))

    def lose_from(self, offset: int) -> None:
        """Damage was cut out of the log, which had been durable up to its end."""
        self.lost_below_offset = self.end_offset
        self.batches = [batch for batch in self.batches if batch.header.next_offset <= offset]
        self.flushed_offset = self.end_offset

    def lose_quorum_state(self, spare_epochs: int = 1000) -> None:
        """Nobody knows any longer in which epochs it voted, only that they aren't above this."""
        epoch = 0 if self.election is None else self.election.leader_epoch
        self.no_vote_up_to_epoch = max(self.no_vote_up_to_epoch, epoch + spare_epochs)
        self.election = None

    def _execute_on_snapshots(self, effect: fx.Effect) -> None:
        match effect:
            case fx.AppendSnapshotBytes(snapshot_id, position, data):
                so_far = b"" if position == 0 else self.parts[snapshot_id]
                assert len(so_far) == position
                self.parts[snapshot_id] = so_far + data
            case fx.VerifySnapshot(snapshot_id):
                self.quorum.later(self.verify_ms, self._verified(snapshot_id))
            case fx.InstallSnapshot(snapshot_id):
                data = self.parts.pop(snapshot_id)
                info = SnapshotInfo(snapshot_id, len(data), 0)
                self.snapshots[snapshot_id] = Snapshot(info, data, self.quorum.control_of(data))
                self.batches, self.start_offset = [], snapshot_id.end_offset
                self.flushed_offset = snapshot_id.end_offset
            case fx.LossMadeGood():
                self.lost_below_offset = None
            case fx.AbandonSnapshot(snapshot_id):
                self.parts.pop(snapshot_id, None)
            case fx.TrimLog(start_offset):
                dropped = [batch for batch in self.batches if batch.header.last_offset < start_offset]
                self.batches = self.batches[len(dropped) :]
                self.start_offset = start_offset
                size_bytes = sum(len(batch.data) for batch in dropped)
                self.quorum.later(0, self._alive(lambda: self.step(LogTrimmed(size_bytes))))
            case fx.DeleteSnapshot(snapshot_id):
                self.snapshots.pop(snapshot_id, None)
            case _:
                pass

    def _alive(self, act: Callable[[], object]) -> Callable[[], None]:
        """The act, unless this life of the node is over by then."""
        life = self.life

        def run() -> None:
            if self.life == life:
                act()

        return run

    def _truncate(self, end_offset: int) -> None:
        kept = [batch for batch in self.batches if batch.header.next_offset <= end_offset]
        deleted_bytes = sum(len(batch.data) for batch in self.batches[len(kept) :])
        self.batches = kept
        self.flushed_offset = self.end_offset
        done = LogTruncated(self.end_offset, deleted_bytes)
        self.quorum.later(0, self._alive(lambda: self.step(done)))

    def _begin_flush(self) -> None:
        if self.is_flushing or self.disk_is_stuck:
            return
        self.is_flushing = True
        # What is appended in the same step is covered too: the flush begins when the step is over.
        self.quorum.later(0, self._alive(self._flush))

    def _flush(self) -> None:
        end_offset, generation = self.end_offset, self.running.log_generation

        def done() -> None:
            self.is_flushing = False
            if generation == self.running.log_generation:
                self.flushed_offset = end_offset
            self.step(Flushed(end_offset, generation))
            if self.flushed_offset < self.end_offset:
                self._begin_flush()

        self.quorum.later(FLUSH_MS, self._alive(done))

    def _verified(self, snapshot_id: SnapshotId) -> Callable[[], None]:
        verified = self.parts[snapshot_id]

        def done() -> None:
            data = self.parts.get(snapshot_id)
            if data is not verified:
                return  # it was given up, or is fetched anew
            self.step(SnapshotVerified(snapshot_id, len(data), 0, self.quorum.control_of(data)))

        return self._alive(done)

    def write_snapshot(self) -> SnapshotId:
        """A snapshot of all that is committed here."""
        end_offset = self.high_watermark
        snapshot_id = SnapshotId(end_offset, self.running.epoch_at(end_offset - 1))
        control = [message for _, message in self.durable_state().control_records][-2:]
        data = self.quorum.snapshot_bytes(self.id, snapshot_id, control)
        self.snapshots[snapshot_id] = Snapshot(SnapshotInfo(snapshot_id, len(data), 0), data, control)
        self.step(SnapshotWritten(snapshot_id, len(data), 0))
        return snapshot_id


class CoreQuorum:
    """Nodes 1 to ``voters``, observers after them. Checks, whatever happens: one vote a voter and epoch, one
    leader an epoch, the same committed batches everywhere, high watermarks that never go back."""

    def __init__(
        self,
        voters: int = 3,
        observers: int = 0,
        *,
        seed: int = 1,
        kraft_version: int = 1,
        **settings: Any,
    ) -> None:
        self.seed = seed
        self.now = Now(0, 1_700_000_000_000)
        self._sequence = count()
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self.refuse_pre_votes = False
        self.garble_records = False
        self._cut: set[tuple[int, int]] = set()
        self._votes: dict[tuple[int, int], int] = {}
        self._leaders: dict[int, int] = {}
        self._committed: dict[int, bytes] = {}
        self._controls: dict[bytes, list[Message]] = {}
        self._in_flight: dict[Caller, int] = {}
        ids = range(1, voters + observers + 1)
        keys = {id: Uuid(bytes([id] * 16)) for id in ids}
        members = voter_set(
            Voter(ReplicaKey(id, keys[id]), endpoints_of([(LISTENER, f"node-{id}", PORT)]))
            for id in ids[:voters]
        )
        addresses = {id: (f"node-{id}", PORT) for id in ids[:voters]}
        formatted = DurableState()
        if kraft_version:
            control = [(-1, KRaftVersionRecord(kraft_version=1)), (-1, members.to_record())]
            formatted = DurableState(
                snapshots=[SnapshotInfo(SnapshotId(0, 0), 494, 0)], control_records=control
            )
        self.nodes = {
            id: QuorumNode(
                self,
                RaftConfig(
                    node_id=id,
                    directory_id=keys[id],
                    cluster_id=CLUSTER_ID,
                    endpoints=endpoints_of([(LISTENER, f"node-{id}", PORT)]),
                    listener=LISTENER,
                    static_voters=VoterSet() if kraft_version else static_voters(LISTENER, addresses),
                    bootstrap_servers=tuple(addresses.values()),
                    **settings,
                ),
                formatted if id <= voters else DurableState(),
            )
            for id in ids
        }

    def start(self) -> CoreQuorum:
        for node in self.nodes.values():
            node.start()
        return self

    # Time.

    def later(self, ms: int, act: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now.monotonic_ms + ms, next(self._sequence), act))

    def arm(self, node: QuorumNode) -> None:
        deadline_ms = node.running.next_deadline_ms()
        if deadline_ms is not None:
            life = node.life

            def tick() -> None:
                due_ms = node.running.next_deadline_ms() if node.life == life and node.is_up else None
                if due_ms is not None and due_ms <= self.now.monotonic_ms:
                    node.step(Tick())

            heapq.heappush(self._queue, (max(deadline_ms, self.now.monotonic_ms), next(self._sequence), tick))

    def run_for(self, ms: int) -> None:
        until_ms = self.now.monotonic_ms + ms
        while self._queue and self._queue[0][0] <= until_ms:
            self._run_next()
        self._set_time(until_ms)

    def run_until(self, condition: Callable[[], bool], within_ms: int = 20_000) -> int:
        """Run on until something holds; returns how many milliseconds that took."""
        started_ms = self.now.monotonic_ms
        while not condition():
            assert self._queue[0][0] <= started_ms + within_ms, f"not within {within_ms} ms"
            self._run_next()
        return self.now.monotonic_ms - started_ms

    def _run_next(self) -> None:
        at_ms, _, act = heapq.heappop(self._queue)
        self._set_time(at_ms)
        act()

    def _set_time(self, ms: int) -> None:
        self.now = Now(ms, 1_700_000_000_000 + ms)

    # The network.

    def cut(self, *pairs: tuple[int, int]) -> None:
        """Nothing gets from the first to the second of each pair, and nobody is told."""
        self._cut.update(pairs)

    def isolate(self, id: int) -> None:
        self.cut(*[pair for other in self.nodes if other != id for pair in ((id, other), (other, id))])

    def heal(self) -> None:
        self._cut.clear()

    def send(self, source: QuorumNode, request_id: int, peer: Peer, request: Message) -> None:
        assert peer.port == PORT
        target = self.nodes[int(peer.host.removeprefix("node-"))]
        call = Caller(source.id, source.life, request_id)
        self._in_flight[call] = target.id

        def arrive() -> None:
            if (source.id, target.id) in self._cut:
                return
            if not target.is_up:
                self._lose(call)
                return
            if self.refuse_pre_votes and _is_pre_vote(request):
                source.step(RequestFailed(request_id, Failure.UNSUPPORTED))
                return
            raw = request.encode(VERSIONS[request.API_KEY])
            decoded = type(request).decode(raw, VERSIONS[request.API_KEY])
            target.step(RpcRequest(call, decoded, VERSIONS[request.API_KEY], LISTENER))

        self.later(ONE_WAY_MS, arrive)

    def answer(self, target: QuorumNode, caller: Caller, response: Message) -> None:
        source = self.nodes[caller.id]

        def arrive() -> None:
            if (target.id, caller.id) in self._cut:
                return
            if self._in_flight.pop(caller, None) and source.life == caller.life:
                source.step(ResponseReceived(caller.request_id, response))

        self.later(ONE_WAY_MS, arrive)

    def break_connections(self, id: int, of: int | None = None) -> None:
        """Those to a node: all of them, or those of one other node."""
        for call in [
            call for call, target in self._in_flight.items() if target == id and of in (None, call.id)
        ]:
            self.later(ONE_WAY_MS, partial(self._lose, call))

    def _lose(self, caller: Caller) -> None:
        source = self.nodes[caller.id]
        if self._in_flight.pop(caller, None) and source.life == caller.life:
            source.step(RequestFailed(caller.request_id, Failure.LOST))

    # What must hold.

    def note_vote(self, id: int, state: ElectionState) -> None:
        if state.has_voted:
            assert state.leader_epoch > self.nodes[id].no_vote_up_to_epoch, "it may have voted already"
            key = (id, state.leader_epoch)
            assert self._votes.setdefault(key, state.voted_id) == state.voted_id, "two votes in an epoch"

    def note_leader(self, id: int, epoch: int) -> None:
        assert self._leaders.setdefault(epoch, id) == id, "two leaders of an epoch"

    def check_committed(self, node: QuorumNode) -> None:
        for batch in node.batches:
            if batch.header.next_offset <= node.high_watermark:
                known = self._committed.setdefault(batch.header.base_offset, batch.data)
                assert known == batch.data, f"two committed batches at offset {batch.header.base_offset}"

    # What there is.

    @property
    def leaders(self) -> list[QuorumNode]:
        return [node for node in self.nodes.values() if node.core is not None and node.core.is_leader]

    @property
    def leader(self) -> QuorumNode:
        """The one of the highest epoch."""
        return max(self.leaders, key=lambda node: node.running.epoch)

    def others_than(self, node: QuorumNode) -> list[QuorumNode]:
        """The leaders beside this one."""
        return [leader for leader in self.leaders if leader is not node]

    def elect(self) -> QuorumNode:
        """Run until somebody leads and has committed a record of its epoch."""
        self.run_until(lambda: bool(self.leaders) and self.leader.running.high_watermark is not None)
        return self.leader

    def followers(self) -> list[QuorumNode]:
        return [
            node
            for node in self.nodes.values()
            if node.core is not None and node.core.role is Role.FOLLOWER and node.core.is_voter
        ]

    def agree(self) -> bool:
        """Whether every node that is up has the leader's log, and knows all of it to be committed."""
        if not self.leaders:
            return False
        end = self.leader.end_offset
        return all(
            node.end_offset == end and node.high_watermark == end and node.flushed_offset == end
            for node in self.nodes.values()
            if node.is_up
        )

    def shut_down(self, node: QuorumNode) -> None:
        """Stop gracefully, and end the process when it is ready."""
        node.step(ShutDown())

        def is_ready() -> bool:
            return any(isinstance(effect, fx.ReadyToStop) for effect in node.effects)

        self.run_until(is_ready)
        node.crash()

    # Snapshots' bytes.

    def snapshot_bytes(self, id: int, snapshot_id: SnapshotId, control: list[Message]) -> bytes:
        data = f"snapshot {snapshot_id} of node {id} ".encode() * 50
        self._controls[data] = control
        return data

    def control_of(self, data: bytes) -> list[Message]:
        return self._controls[data]


def _voter_records(batches: Iterable[Batch]) -> list[tuple[int, Message]]:
    return [
        (offset, message)
        for batch in batches
        if batch.header.is_control
        for offset, message in enumerate(decode_control_batch(batch), batch.header.base_offset)
        if isinstance(message, KRaftVersionRecord | VotersRecord)
    ]


def _is_pre_vote(request: Message) -> bool:
    return isinstance(request, VoteRequest) and request.topics[0].partitions[0].pre_vote
