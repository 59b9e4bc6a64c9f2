"""Simulate a machine with a whole node on it: core, controller state and handlers. Clients send real
requests."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from kraft_wire.controller.apis import OUR_CONTROLLER_APIS
from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.sessions import BrokerSessions
from kraft_wire.controller.decision.work import SliceLimits
from kraft_wire.controller.node import executor
from kraft_wire.controller.node.events import (
    ApiRequest,
    Caller,
    CommittedBatches,
    SnapshotFailed,
)
from kraft_wire.controller.node.node import Node
from kraft_wire.controller.settings import Settings
from kraft_wire.log.batch import Batch, record_values, split_batches
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.features.supported import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    bootstrap_records,
    supported_ranges,
)
from kraft_wire.metadata.snapshot import snapshot_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.controller_registration_request import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from kraft_wire.protocol.metadata_record import decode_metadata_record, encode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft import effects as fx
from kraft_wire.raft.config import DurableState
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.events import Event, RpcRequest, Start
from kraft_wire.raft.roles import Role
from kraft_wire.sim.machines.controller_ports import ControllerPorts
from kraft_wire.sim.machines.handler_cost import StepRecords, appended_records
from kraft_wire.sim.machines.metadata_state import state_hash, state_in
from kraft_wire.sim.machines.node import Machine, SimNode
from kraft_wire.sim.machines.releases import Release
from kraft_wire.sim.machines.snapshot_file import SnapshotFile
from kraft_wire.sim.network.connections import LISTENER, PORT, host_of
from kraft_wire.sim.randomness import CoreRandomness

SNAPSHOT_BYTES: Final = 20_000
"""A node writes a snapshot after so many bytes of the log."""

LOOK_AT_STATE_EVERY: Final = 16
"""The number of batches between two checks of the whole state, which are the most expensive checks."""


class Entropy(CoreRandomness):
    """The randomness of handlers (``controller.decision.context.Entropy``)."""

    __slots__ = ()

    def uuid(self) -> Uuid:
        while True:
            drawn = Uuid.from_random(self._random.randbytes(16))
            if not str(drawn).startswith("-"):
                return drawn


class ControllerNode(SimNode):
    """A machine with a whole node. ``on_answer`` gets the responses to clients' requests, whose tokens are
    tuples."""

    has_elr: bool = True
    release: Release = Release.NEWER
    slice_limits: SliceLimits = SliceLimits()
    on_answer: Callable[[Any, Message], None] | None = None
    _node: Node
    _ports: ControllerPorts
    _since_look: int = 0
    _foreseen: Sequence[int] = ()
    _replayed_before_start: int = 0

    def _build_ports(self) -> ControllerPorts:
        return ControllerPorts(self)

    def _build(self, durable: DurableState, chance: random.Random) -> Machine:
        entropy = Entropy(chance)
        core = self._core = RaftCore(self.config, durable, entropy)
        latest = self.disk.latest_snapshot
        kind = self.release.value
        state = ControllerState(
            metadata=kind() if latest is None else state_in(latest, kind),
            sessions=BrokerSessions(9_000),
            settings=Settings(
                node_id=self.id,
                metadata_log_max_record_bytes_between_snapshots=SNAPSHOT_BYTES,
                metadata_max_idle_interval_ms=self.release.idle_interval_ms,
                leader_imbalance_check_interval_seconds=20,
                unclean_leader_election_interval_ms=10_000,
            ),
            cluster_id=self.config.cluster_id,
            node_id=self.id,
            slice_limits=self.slice_limits,
        )
        self._node = Node(
            core,
            state,
            entropy,
            OUR_CONTROLLER_APIS,
            start_offset=0 if latest is None else latest.id.end_offset,
            bootstrap=bootstrap_records(
                overrides=None if self.has_elr else {ELIGIBLE_LEADER_REPLICAS_VERSION: 0},
                dynamic_quorum=self.config.static_voters.voters == (),
            ),
            registration=_registration(self.id, entropy),
        )
        return self._node

    def _catch_up(self, committed_offset: int) -> None:
        batches = self.batches(self._applied_end, committed_offset)
        super()._catch_up(committed_offset)
        latest = self.disk.latest_snapshot
        self._replayed_before_start = records_in(batches) + (0 if latest is None else len(latest.values))
        self._node.catch_up(batches, self.clock.now())

    @property
    def is_active(self) -> bool:
        """Whether this node is the active controller."""
        return self.is_up and self._node.is_active

    @property
    def metadata(self) -> MetadataState:
        """The node's state, including records that aren't committed yet."""
        return self._node.state.metadata

    def _digest_of(self, snapshot: SnapshotFile) -> bytes:
        return self.world.checkers.committed_data.digest_at(snapshot.id.end_offset)

    def setting(self, resource_type: int, name: str, key: str) -> str | None:
        """Return the value of a setting in this node's state."""
        return self._node.state.metadata.configs.value(resource_type, name, key)

    # Events.

    def ask(self, token: tuple[object, ...], request: Message, version: int) -> bool:
        """Take a client's request. Return False if the node is down."""
        if not self.is_up:
            return False
        self.take(ApiRequest(token, request.API_KEY, version, request, Caller(LISTENER)))  # type: ignore[arg-type]
        return True

    def _step(self, event: Event) -> None:
        if type(event) is RpcRequest:
            request = event.request
            caller = Caller(event.listener)
            event = ApiRequest(event.token, request.API_KEY, event.version, request, caller)  # type: ignore[assignment]
        super()._step(event)

    def _records_of(self, event: Any, effects: Sequence[Any]) -> StepRecords:
        appended = appended_records(effects)
        replayed = self._replayed_by(event)
        if self.raft.role is Role.LEADER:
            return StepRecords(decided=appended, replayed=replayed)
        return StepRecords(replayed=appended + replayed)

    def _replayed_by(self, event: Any) -> int:
        """Return how many committed records the node applies in a step."""
        if type(event) is Start:
            return self._replayed_before_start
        return records_in(event.batches) if type(event) is CommittedBatches else 0

    def _finish(self, event: Event, effects: Sequence[Any]) -> None:
        super()._finish(event, effects)
        if self.is_up:
            self.world.checkers.stopped_is_never_active.check(self, self._node)
            self._look_at_state()

    def _foresee(self, effects: Sequence[Any]) -> None:
        """Apply a leader's new high watermark early: its effect follows the responses that already show
        it."""
        self._foreseen = ()
        if self.leading is None:
            return
        self._foreseen = [effect.offset for effect in effects if type(effect) is fx.HighWatermarkAdvanced]
        for high_watermark in self._foreseen:
            super()._check_advance(high_watermark)
            self._apply(high_watermark)

    def _check_advance(self, high_watermark: int) -> None:
        if high_watermark not in self._foreseen:
            super()._check_advance(high_watermark)

    def _look_at_state(self) -> None:
        """Check the active controller's state; as a whole now and then, when it holds no uncommitted
        records."""
        node = self._node
        if not node.is_active:
            return
        self.world.checkers.shutdowns.check(self, node.state)
        if node.core.high_watermark != node.core.log_end_offset:
            return
        self._since_look += 1
        if self._since_look >= LOOK_AT_STATE_EVERY:
            self._since_look = 0
            self._check_state(node.core.log_end_offset, node.state.metadata)

    def look_at_whole_state(self) -> None:
        """Check the state of a standby at the end of a run."""
        if self.is_up:
            self.world.checkers.all_apply.check(self, self._node)
        if self.is_up and not self._node.is_active:
            metadata = self._node.state.metadata
            self._check_state(metadata.last_applied_offset + 1, metadata)

    def _check_state(self, end_offset: int, metadata: MetadataState) -> None:
        self.world.checkers.equal_state.check(self, end_offset, state_hash(metadata))

    def answer(self, token: Any, response: Message) -> None:
        if isinstance(token, tuple):
            if self.on_answer is not None:
                self.on_answer(token, response)
        else:
            super().answer(token, response)

    # Effects.

    def _execute(self, effect: Any) -> None:
        executor.execute(effect, self._ports)

    def read_committed(self, start_offset: int, end_offset: int) -> None:
        """Give the node the committed batches that it asked for."""
        batches = self.batches(start_offset, end_offset)
        read_end = batches[-1].header.next_offset if batches else start_offset
        self.take(CommittedBatches(batches, read_end))  # type: ignore[arg-type]

    def batches(self, start_offset: int, end_offset: int) -> list[Batch]:
        """Return the whole batches of the log in a range."""
        found = self.disk.batches_between(start_offset, end_offset)
        return [split_batches(batch.data)[0][0] for batch in found]

    def write_own_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Write a snapshot from the last one and the committed log, and check that the live state agrees."""
        latest = self.disk.latest_snapshot
        if snapshot_id in self.disk.snapshots or latest is None:
            self.after(0, self.take, SnapshotFailed(snapshot_id))
            return
        metadata = self._state_at(snapshot_id, latest)
        self._check_state(snapshot_id.end_offset, metadata)
        values = [encode_metadata_record(record, version) for record, version in snapshot_records(metadata)]
        self.write_snapshot(snapshot_id, values)

    def _state_at(self, snapshot_id: SnapshotId, latest: SnapshotFile) -> MetadataState:
        metadata = state_in(latest)
        for batch in self.batches(latest.id.end_offset, snapshot_id.end_offset):
            if not batch.header.is_control:
                for offset, value in enumerate(record_values(batch), batch.header.base_offset):
                    metadata.replay(decode_metadata_record(value)[0], offset)
        return metadata

    def take_snapshot(self) -> None:
        """Do nothing: a whole node writes snapshots by its own policy."""


def records_in(batches: Sequence[Batch]) -> int:
    """Return how many records these batches have."""
    return sum(batch.header.next_offset - batch.header.base_offset for batch in batches)


def _registration(node_id: int, entropy: Entropy) -> ControllerRegistrationRequest:
    return ControllerRegistrationRequest(
        controller_id=node_id,
        incarnation_id=entropy.uuid(),
        zk_migration_ready=False,
        listeners=[Listener(name=LISTENER, host=host_of(node_id), port=PORT, security_protocol=0)],
        features=[
            Feature(name=name, min_supported_version=lowest, max_supported_version=highest)
            for name, (lowest, highest) in supported_ranges().items()
        ],
    )
