"""A quorum of raft cores without I/O.

Only the test moves the clock. Links can be cut, and disks lose what isn't flushed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from typing import Any

from kraft_wire.log.batch import Batch, frame_values, record_values
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.files import ElectionState
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft import effects as raft_effects
from kraft_wire.raft.config import DurableState, RaftConfig, SnapshotInfo
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.drafted.dialect import DRAFTED
from kraft_wire.raft.events import (
    Event,
    Failure,
    Flushed,
    Now,
    Propose,
    RequestFailed,
    ResponseReceived,
    RpcRequest,
    ShutDown,
    SnapshotWritten,
    Start,
    Tick,
)
from kraft_wire.raft.executor import execute_all
from kraft_wire.raft.membership.voters import (
    Peer,
    ReplicaKey,
    Voter,
    VoterSet,
    endpoints_of,
    static_voters,
    voter_set,
)
from kraft_wire.raft.roles import Role
from kraft_wire.sim.network.wire import Wire
from tests.raft.lone_node import CLUSTER_ID, LISTENER
from tests.raft.quorum_ports import FLUSH_MS, Caller, QuorumPorts, Snapshot

ONE_WAY_MS = 1
BEGIN_WALL_MS = 1_700_000_000_000
PORT = 9093


class SeededRandomness:
    """A source of randomness with the same sequence for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


class QuorumNode:
    """A core and its disk."""

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
        self.effects: list[raft_effects.Effect] = []
        self.high_watermark = 0
        self.is_flushing = False
        self.disk_is_stuck = False
        self.verify_ms = FLUSH_MS
        self.lost_below_offset: int | None = None
        self.no_vote_up_to_epoch = -1
        self.remembered_commit = 0
        self.versions = ApiVersionsResponse(
            api_keys=[ApiVersion(api_key=VoteRequest.API_KEY)],
            supported_features=[SupportedFeatureKey("kraft.version", 0, 1)],
        )
        self._ports = QuorumPorts(self)

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

    def step(self, event: Event) -> list[raft_effects.Effect]:
        done = self.running.step(event, self.quorum.now)
        self.effects.extend(done)
        execute_all(done, self._ports)
        self.quorum.arm(self)
        return done

    def propose(self, *values: bytes) -> None:
        self.step(Propose(frame_values(values or (b"record",))))

    def step_flushed(self, end_offset: int, generation: int) -> None:
        """Report that a flush that began at this generation of the log is done."""
        self.step(Flushed(end_offset, generation))

    def lose_from(self, offset: int) -> None:
        """Cut damage out of a log that had been durable up to its end."""
        self.lost_below_offset = self.end_offset
        self.batches = [batch for batch in self.batches if batch.header.next_offset <= offset]
        self.flushed_offset = self.end_offset

    def lose_quorum_state(self, spare_epochs: int = 1000) -> None:
        """Lose quorum-state: the epochs in which the node voted are unknown, except that none is above
        this."""
        epoch = 0 if self.election is None else self.election.leader_epoch
        self.no_vote_up_to_epoch = max(self.no_vote_up_to_epoch, epoch + spare_epochs)
        self.election = None

    def free_disk(self) -> None:
        """Let a disk that was stuck flush what was appended meanwhile."""
        self.disk_is_stuck = False
        self._ports.log.begin_flush()

    def alive(self, act: Callable[[], object]) -> Callable[[], None]:
        """The act, unless this life of the node is over by then."""
        life = self.life

        def run() -> None:
            if self.life == life:
                act()

        return run

    def write_snapshot(self) -> SnapshotId:
        """Write a snapshot of everything that is committed on this node."""
        end_offset = self.high_watermark
        snapshot_id = SnapshotId(end_offset, self.running.epoch_at(end_offset - 1))
        control = [message for _, message in self.durable_state().control_records][-2:]
        data = self.quorum.snapshot_bytes(self.id, snapshot_id, control)
        self.snapshots[snapshot_id] = Snapshot(SnapshotInfo(snapshot_id, len(data), 0), data, control)
        self.step(SnapshotWritten(snapshot_id, len(data), 0))
        return snapshot_id


class CoreQuorum:
    """Nodes 1 to ``voters``, and observers after them.

    With ``drafted_listeners`` they speak KIP-853's draft.

    Checks at any time: one vote per voter and epoch, one leader per epoch, the same committed batches on all
    nodes, and high watermarks that never decrease.
    """

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
        self.now = Now(0, BEGIN_WALL_MS)
        self._clock_shift_ms = 0
        self._sequence = count()
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self.refuse_pre_votes = False
        is_drafted = LISTENER in settings.get("drafted_listeners", ())
        self._wire = Wire(is_encoded=True, dialect=DRAFTED if is_drafted else None)
        self.garble_records = False
        self._cut: set[tuple[int, int]] = set()
        self.impostors: dict[str, Callable[[Message], Message]] = {}
        """Who answers at a host that is none of the nodes'."""
        self.aliases: dict[str, int] = {}
        """Hosts that lead to a node, too, by node id."""
        self.black_holes: set[str] = set()
        """Hosts where nobody answers, and that no error comes from."""
        self.unserved: dict[int, set[type[Message]]] = {}
        """Requests that a node doesn't know, by node id."""
        self.unroutable: set[tuple[int, int]] = set()
        """The first of each pair can't connect to the second."""
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

    def led(self) -> CoreQuorum:
        """Start all nodes, and run until they agree on a leader."""
        self.start().elect()
        self.run_until(self.agree)
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
        """Run until a condition holds. Returns the number of milliseconds that this took."""
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
        self.now = Now(ms, BEGIN_WALL_MS + self._clock_shift_ms + ms)

    def set_clocks(self, shift_ms: int) -> None:
        """Set the wall clocks of all nodes, this far from where they were at first."""
        self._clock_shift_ms = shift_ms

    # The network.

    def cut(self, *pairs: tuple[int, int]) -> None:
        """Drop everything that the first of each pair sends to the second, without an error."""
        self._cut.update(pairs)

    def isolate(self, id: int) -> None:
        self.cut(*[pair for other in self.nodes if other != id for pair in ((id, other), (other, id))])

    def heal(self) -> None:
        self._cut.clear()

    def send(self, source: QuorumNode, request_id: int, peer: Peer, request: Message) -> None:
        call = Caller(source.id, source.life, request_id)
        target = self._node_at(peer)
        if target is None and peer.host in self.impostors:
            self._in_flight[call] = peer.id
            self.later(ONE_WAY_MS, partial(self._ask_impostor, call, peer.host, request))
            return
        if target is None and peer.host in self.black_holes:
            self._in_flight[call] = peer.id
            return
        if target is None:
            self._in_flight[call] = peer.id
            self.later(ONE_WAY_MS, partial(self._lose, call))
            return
        self._in_flight[call] = target.id

        def arrive() -> None:
            if (source.id, target.id) in self._cut:
                return
            if not target.is_up or (source.id, target.id) in self.unroutable:
                self._lose(call)
                return
            if self.refuse_pre_votes and _is_pre_vote(request):
                source.step(RequestFailed(request_id, Failure.UNSUPPORTED))
                return
            if isinstance(request, ApiVersionsRequest):
                self.answer(target, call, target.versions)
                return
            if type(request) in self.unserved.get(target.id, ()) or not self._wire.can_carry(request):
                source.step(RequestFailed(request_id, Failure.UNSUPPORTED))
                return
            read, version = self._wire.request(request)
            target.step(RpcRequest(call, read, version, LISTENER))

        self.later(ONE_WAY_MS, arrive)

    def _ask_impostor(self, call: Caller, host: str, request: Message) -> None:
        response = self.impostors[host](request)

        def arrive() -> None:
            source = self.nodes[call.id]
            if self._in_flight.pop(call, None) and source.life == call.life:
                source.step(ResponseReceived(call.request_id, response))

        self.later(ONE_WAY_MS, arrive)

    def _node_at(self, peer: Peer) -> QuorumNode | None:
        """Return the node that listens at an address."""
        if peer.host in self.aliases:
            return self.nodes[self.aliases[peer.host]]
        listening = (
            node
            for node in self.nodes.values()
            if any((each.host, each.port) == (peer.host, peer.port) for each in node.config.endpoints)
        )
        return next(listening, None)

    def cancel(self, source: QuorumNode, request_id: int) -> None:
        self._in_flight.pop(Caller(source.id, source.life, request_id), None)

    def answer(self, target: QuorumNode, caller: Caller, response: Message) -> None:
        source = self.nodes[caller.id]

        def arrive() -> None:
            if (target.id, caller.id) in self._cut:
                return
            if self._in_flight.pop(caller, None) and source.life == caller.life:
                source.step(ResponseReceived(caller.request_id, self._wire.response(response)))

        self.later(ONE_WAY_MS, arrive)

    def break_connections(self, id: int, of: int | None = None) -> None:
        """Break all connections of a node, or only those to one other node."""
        for call in [
            call for call, target in self._in_flight.items() if target == id and of in (None, call.id)
        ]:
            self.later(ONE_WAY_MS, partial(self._lose, call))

    def _lose(self, caller: Caller) -> None:
        source = self.nodes[caller.id]
        if self._in_flight.pop(caller, None) and source.life == caller.life:
            source.step(RequestFailed(caller.request_id, Failure.LOST))

    # Invariants.

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

    # Queries.

    @property
    def leaders(self) -> list[QuorumNode]:
        return [node for node in self.nodes.values() if node.core is not None and node.core.is_leader]

    @property
    def leader(self) -> QuorumNode:
        """The leader of the highest epoch."""
        return max(self.leaders, key=lambda node: node.running.epoch)

    def others_than(self, node: QuorumNode) -> list[QuorumNode]:
        """Return the nodes that lead besides this one."""
        return [leader for leader in self.leaders if leader is not node]

    def elect(self) -> QuorumNode:
        """Run until a node leads and has committed a record of its epoch."""
        self.run_until(lambda: bool(self.leaders) and self.leader.running.high_watermark is not None)
        return self.leader

    def followers(self) -> list[QuorumNode]:
        return [
            node
            for node in self.nodes.values()
            if node.core is not None and node.core.role is Role.FOLLOWER and node.core.is_voter
        ]

    def agree(self) -> bool:
        """Whether every running node has the leader's log, and knows that all of it is committed."""
        if not self.leaders:
            return False
        end = self.leader.end_offset
        return all(
            node.end_offset == end and node.high_watermark == end and node.flushed_offset == end
            for node in self.nodes.values()
            if node.is_up
        )

    def shut_down(self, node: QuorumNode) -> None:
        """Stop a node gracefully, and end its process when it is ready."""
        node.step(ShutDown())

        def is_ready() -> bool:
            return any(isinstance(effect, raft_effects.ReadyToStop) for effect in node.effects)

        self.run_until(is_ready)
        node.crash()

    # The bytes of snapshots.

    def snapshot_bytes(self, id: int, snapshot_id: SnapshotId, control: list[Message]) -> bytes:
        data = f"snapshot {snapshot_id} of node {id} ".encode() * 50
        self._controls[data] = control
        return data

    def control_of(self, data: bytes) -> list[Message]:
        return self._controls[data]


def values(node: QuorumNode) -> list[bytes]:
    return [value for batch in node.batches if not batch.header.is_control for value in record_values(batch)]


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
