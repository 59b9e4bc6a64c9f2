"""Run a whole node on a simulated disk, where appends are lost unless they are flushed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar, cast

from kraft_wire.controller.apis import OUR_CONTROLLER_APIS
from kraft_wire.controller.decision.context import Authorizer, ControllerState
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.sessions import BrokerSessions
from kraft_wire.controller.node.effects import NodeEffect, WriteSnapshot
from kraft_wire.controller.node.events import ApiRequest, Caller
from kraft_wire.controller.node.executor import execute_all
from kraft_wire.controller.node.node import Node, NodeEvent
from kraft_wire.controller.settings import Settings
from kraft_wire.log.batch import Batch, iter_records
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.files import ElectionState
from kraft_wire.metadata.features.supported import bootstrap_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.controller_registration_request import (
    ControllerRegistrationRequest,
    Listener,
)
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.raft.config import DurableState, RaftConfig
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.events import Flushed, Now, Start, Tick
from kraft_wire.raft.membership.voters import endpoints_of, static_voters
from tests.controller.controller_harness import CLUSTER_ID, uuid
from tests.controller.lone_ports import LonePorts
from tests.controller.scripted_entropy import SeededEntropy

NODE_ID = 3000
LISTENER = "CONTROLLER"

M = TypeVar("M", bound=Message)


class Disk:
    """The files of the node. Batches below ``flushed`` and the ``committed`` offset survive a crash."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.flushed = 0
        self.committed = 0
        self.election: ElectionState | None = None

    @property
    def end_offset(self) -> int:
        return self.batches[-1].header.next_offset if self.batches else 0

    @property
    def size_bytes(self) -> int:
        return sum(batch.header.size_bytes for batch in self.batches)

    def lose_unflushed(self) -> None:
        self.batches = [batch for batch in self.batches if batch.header.next_offset <= self.flushed]

    def records(self) -> list[Message]:
        """Return every metadata record in the log."""
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
    """A node whose effects are executed at once. Only ``flush`` flushes the log."""

    def __init__(
        self,
        disk: Disk | None = None,
        settings: Settings | None = None,
        authorizer: Authorizer | None = None,
        bootstrap: Sequence[VersionedRecord] | None = None,
    ) -> None:
        self.disk = Disk() if disk is None else disk
        self.now_ms = 10_000
        self.replies: dict[Hashable, Message] = {}
        self.effects: list[NodeEffect] = []
        self._ports = LonePorts(self)
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
            OUR_CONTROLLER_APIS,
            start_offset=0,
            bootstrap=bootstrap_records() if bootstrap is None else bootstrap,
            registration=ControllerRegistrationRequest(
                controller_id=NODE_ID,
                incarnation_id=uuid(77),
                listeners=[Listener(LISTENER, "localhost", 9093, 0)],
            ),
            authorizer=authorizer,
        )
        self.node.catch_up(self.disk.below(self.disk.committed), self._now())
        self.step(Start())

    def _now(self) -> Now:
        return Now(self.now_ms, 1_700_000_000_000 + self.now_ms)

    def step(self, event: NodeEvent) -> list[NodeEffect]:
        effects = self.node.step(event, self._now())
        self.effects += effects
        execute_all(effects, self._ports)
        return effects

    def flush(self) -> None:
        self.disk.flushed = self.disk.end_offset
        self.step(Flushed(self.disk.flushed))

    def tick(self, elapsed_ms: int = 0) -> None:
        self.now_ms += elapsed_ms
        self.step(Tick())

    def live(self, duration_ms: int) -> None:
        """Let time pass without a pause: a Tick at every deadline, and a flush after it."""
        end_ms = self.now_ms + duration_ms
        while (deadline_ms := self.node.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.tick()
            self.flush()
        self.now_ms = end_ms

    def ask(self, token: Hashable, request: Message, version: int) -> None:
        """Send a request, encoded and decoded."""
        decoded = type(request).decode(request.encode(version), version)
        self.step(ApiRequest(token, request.API_KEY, version, decoded, Caller(LISTENER, "peer:1")))

    def answer(self, token: Hashable, kind: type[M]) -> M:
        """Return the response to a request. Raises KeyError if there is none yet."""
        return cast(M, self.replies[token])

    def snapshots_wanted(self) -> list[WriteSnapshot]:
        return [effect for effect in self.effects if isinstance(effect, WriteSnapshot)]

    def crash_and_restart(self) -> LoneController:
        """Return a new process on the flushed log."""
        self.disk.lose_unflushed()
        return LoneController(self.disk, self.state.settings)


def active_controller(settings: Settings | None = None) -> LoneController:
    """Return a controller whose bootstrap is committed."""
    controller = LoneController(settings=settings)
    controller.flush()
    controller.flush()
    return controller
