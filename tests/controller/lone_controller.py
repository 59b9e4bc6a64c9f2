"""A whole node, raft core and handlers, on a simulated disk: appends are lost unless they are flushed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar, cast

from controller_harness import CLUSTER_ID, uuid
from scripted_entropy import SeededEntropy

from kraft_wire.controller.context import ControllerState
from kraft_wire.controller.node import Node, NodeEffect, NodeEvent
from kraft_wire.controller.requests import (
    ApiRequest,
    CommittedBatches,
    Peer,
    ReadCommitted,
    ReplyCommitted,
    WriteSnapshot,
)
from kraft_wire.controller.sessions import BrokerSessions
from kraft_wire.controller.settings import Settings
from kraft_wire.log.batch import Batch, iter_records, split_batches
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.files import ElectionState
from kraft_wire.metadata.features import bootstrap_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.controller_registration_request import (
    ControllerRegistrationRequest,
    Listener,
)
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.raft import effects as raft_effects
from kraft_wire.raft.config import DurableState, RaftConfig
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.events import Flushed, Now, Start, Tick
from kraft_wire.raft.voters import endpoints_of, static_voters

NODE_ID = 3000
LISTENER = "CONTROLLER"

M = TypeVar("M", bound=Message)


class Disk:
    """What the node has written; ``flushed`` batches survive a crash, and so does what is ``committed``."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.flushed = 0
        self.committed = 0
        self.election: ElectionState | None = None

    @property
    def end_offset(self) -> int:
        return self.batches[-1].header.next_offset if self.batches else 0

    def lose_unflushed(self) -> None:
        self.batches = [batch for batch in self.batches if batch.header.next_offset <= self.flushed]

    def records(self) -> list[Message]:
        """Every metadata record in the log."""
        return [
            decode_metadata_record(record.value)[0]
            for batch in self.batches
            if not batch.header.is_control
            for record in iter_records(batch)
        ]

    def durable_state(self) -> DurableState:
        epochs = EpochCache()
        for batch in self.batches:
            epochs.assign(batch.header.leader_epoch, batch.header.base_offset)
        return DurableState(
            election=self.election,
            log_end_offset=self.end_offset,
            epochs=epochs,
            committed_offset=self.committed,
        )

    def below(self, end_offset: int) -> list[Batch]:
        return [batch for batch in self.batches if batch.header.next_offset <= end_offset]


class LoneController:
    """Feeds a node, executes its effects; nothing is flushed unless a test says so."""

    def __init__(self, disk: Disk | None = None, settings: Settings | None = None) -> None:
        self.disk = Disk() if disk is None else disk
        self.now_ms = 10_000
        self.replies: dict[Hashable, Message] = {}
        self.effects: list[NodeEffect] = []
        entropy = SeededEntropy()
        settings = Settings(node_id=NODE_ID) if settings is None else settings
        voters = static_voters(LISTENER, {NODE_ID: ("localhost", 9093)})
        raft = RaftConfig(
            node_id=NODE_ID,
            directory_id=uuid(1),
            cluster_id=CLUSTER_ID,
            endpoints=endpoints_of([(LISTENER, "localhost", 9093)]),
            static_voters=voters,
        )
        self.state = ControllerState(
            metadata=MetadataState(),
            sessions=BrokerSessions(settings.broker_session_timeout_ms),
            settings=settings,
            cluster_id=CLUSTER_ID,
            node_id=NODE_ID,
        )
        self.node = Node(
            RaftCore(raft, self.disk.durable_state(), entropy),
            self.state,
            entropy,
            start_offset=0,
            bootstrap=bootstrap_records(),
            registration=ControllerRegistrationRequest(
                controller_id=NODE_ID,
                incarnation_id=uuid(77),
                listeners=[Listener(LISTENER, "localhost", 9093, 0)],
            ),
        )
        self.node.catch_up(self.disk.below(self.disk.committed), self._now())
        self.step(Start())

    def _now(self) -> Now:
        return Now(self.now_ms, 1_700_000_000_000 + self.now_ms)

    def step(self, event: NodeEvent) -> list[NodeEffect]:
        effects = self.node.step(event, self._now())
        self.effects += effects
        for effect in effects:
            self._execute(effect)
        return effects

    def _execute(self, effect: NodeEffect) -> None:
        match effect:
            case raft_effects.AppendBatch(data=data):
                batches, consumed = split_batches(data)
                assert consumed == len(data)
                self.disk.batches += batches
            case raft_effects.PersistElectionState(state=state):
                self.disk.election = state
            case raft_effects.HighWatermarkAdvanced(offset):
                self.disk.committed = offset
            case raft_effects.Reply(token=token, response=response):
                assert token not in self.replies, "a request is answered once"
                self.replies[token] = response
            case ReplyCommitted(token=token, read=read):
                read.records_of.records = self._read(read.offset, read.end_offset)
                self.replies[token] = read.response
            case ReadCommitted(start_offset=start, end_offset=end):
                batches, _ = split_batches(self._read(start, end))
                self.step(CommittedBatches(batches, end))
            case _:
                pass

    def _read(self, start: int, end: int) -> bytes:
        return b"".join(b.data for b in self.disk.below(end) if b.header.last_offset >= start)

    def flush(self) -> None:
        self.disk.flushed = self.disk.end_offset
        self.step(Flushed(self.disk.flushed))

    def tick(self, elapsed_ms: int = 0) -> None:
        self.now_ms += elapsed_ms
        self.step(Tick())

    def live(self, duration_ms: int) -> None:
        """Time passes without a pause: a Tick at every deadline, everything flushed at once."""
        end_ms = self.now_ms + duration_ms
        while (deadline_ms := self.node.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.tick()
            self.flush()
        self.now_ms = end_ms

    def ask(self, token: Hashable, request: Message, version: int) -> None:
        """A request comes in, through its encoding."""
        decoded = type(request).decode(request.encode(version), version)
        self.step(ApiRequest(token, request.API_KEY, version, decoded, Peer(LISTENER, "peer:1")))

    def answer(self, token: Hashable, kind: type[M]) -> M:
        """The response to a request. Fails where there is none yet."""
        return cast(M, self.replies[token])

    def snapshots_wanted(self) -> list[WriteSnapshot]:
        return [effect for effect in self.effects if isinstance(effect, WriteSnapshot)]

    def crash_and_restart(self) -> LoneController:
        """A new process on what was flushed."""
        self.disk.lose_unflushed()
        return LoneController(self.disk, self.state.settings)


def active_controller(settings: Settings | None = None) -> LoneController:
    """A lone controller whose bootstrap is committed."""
    controller = LoneController(settings=settings)
    controller.flush()
    controller.flush()
    return controller
