"""A machine with a whole node on it: core, controller state and handlers. Clients send it real requests."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Final

from kraft_wire.controller import requests as nx
from kraft_wire.controller.context import ControllerState
from kraft_wire.controller.node import Node
from kraft_wire.controller.requests import ApiRequest, CommittedBatches, Peer, SnapshotFailed, StateLoaded
from kraft_wire.controller.sessions import BrokerSessions
from kraft_wire.controller.settings import Settings
from kraft_wire.log.batch import Batch, record_values, split_batches
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.features import (
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
from kraft_wire.raft.events import Event, RpcRequest
from kraft_wire.sim.network import LISTENER, PORT, host_of
from kraft_wire.sim.node import Machine, SimNode
from kraft_wire.sim.randomness import CoreRandomness
from kraft_wire.sim.scheduler import MS
from kraft_wire.sim.snapshot_file import SnapshotFile, make_snapshot, read_snapshot
from kraft_wire.sim.violations import Violation

SNAPSHOT_BYTES: Final = 20_000
"""After so much of the log a node makes a snapshot."""

LOOK_AT_STATE_EVERY: Final = 16
"""How many batches go by between two looks at the whole state, which cost more than all else."""


class Entropy(CoreRandomness):
    """What handlers draw from (``controller.context.Entropy``)."""

    __slots__ = ()

    def uuid(self) -> Uuid:
        while True:
            drawn = Uuid.from_random(self._random.randbytes(16))
            if not str(drawn).startswith("-"):
                return drawn


class ControllerNode(SimNode):
    """``on_answer`` hears the answers to clients' requests, whose tokens are tuples."""

    has_elr: bool = True
    on_answer: Callable[[Any, Message], None] | None = None
    _node: Node
    _since_look: int = 0
    _foreseen: Sequence[fx.HighWatermarkAdvanced] = ()

    def _build(self, durable: DurableState, chance: random.Random) -> Machine:
        entropy = Entropy(chance)
        core = self._core = RaftCore(self.config, durable, entropy)
        latest = self.disk.latest_snapshot
        state = ControllerState(
            metadata=MetadataState() if latest is None else state_in(latest),
            sessions=BrokerSessions(9_000),
            settings=Settings(
                node_id=self.id,
                metadata_log_max_record_bytes_between_snapshots=SNAPSHOT_BYTES,
                leader_imbalance_check_interval_seconds=20,
                unclean_leader_election_interval_ms=10_000,
            ),
            cluster_id=self.config.cluster_id,
            node_id=self.id,
        )
        self._node = Node(
            core,
            state,
            entropy,
            start_offset=0 if latest is None else latest.id.end_offset,
            bootstrap=bootstrap_records(
                overrides=None if self.has_elr else {ELIGIBLE_LEADER_REPLICAS_VERSION: 0},
                dynamic_quorum=self.config.static_voters.voters == (),
            ),
            registration=_registration(self.id, entropy),
        )
        return self._node

    def _catch_up(self, committed_offset: int) -> None:
        batches = self._batches(self._applied_end, committed_offset)
        super()._catch_up(committed_offset)
        self._node.catch_up(batches, self.clock.now())

    @property
    def is_active(self) -> bool:
        """Whether it processes writes."""
        return self.is_up and self._node.is_active

    @property
    def metadata(self) -> MetadataState:
        """Its state, what isn't committed included."""
        return self._node.state.metadata

    def _digest_of(self, snapshot: SnapshotFile) -> bytes:
        return self._world.checkers.committed_data.digest_at(snapshot.id.end_offset)

    def setting(self, resource_type: int, name: str, key: str) -> str | None:
        """A setting, as this node's state has it."""
        return self._node.state.metadata.configs.value(resource_type, name, key)

    # Events.

    def ask(self, token: tuple[object, ...], request: Message, version: int) -> bool:
        """A client's request. False if there is nobody to take it."""
        if not self.is_up:
            return False
        self.take(ApiRequest(token, request.API_KEY, version, request, Peer(LISTENER)))  # type: ignore[arg-type]
        return True

    def _step(self, event: Event) -> None:
        if type(event) is RpcRequest:
            request = event.request
            peer = Peer(event.listener)
            event = ApiRequest(event.token, request.API_KEY, event.version, request, peer)  # type: ignore[assignment]
        super()._step(event)
        if self.is_up:
            self._look_at_state()

    def _foresee(self, effects: Sequence[Any]) -> None:
        """A leader tells of a higher high watermark after the answers that show it already."""
        self._foreseen = ()
        if self.leading is None:
            return
        advances = [effect for effect in effects if type(effect) is fx.HighWatermarkAdvanced]
        for effect in advances:
            self._check_advance(effect)
            self._apply(effect.offset)
        self._foreseen = advances

    def _check_advance(self, effect: fx.HighWatermarkAdvanced) -> None:
        if not any(effect is foreseen for foreseen in self._foreseen):
            super()._check_advance(effect)

    def _look_at_state(self) -> None:
        """Where nothing is speculative, the state is what the log below the high watermark says."""
        node = self._node
        if not node.is_active or node.core.high_watermark != node.core.log_end_offset:
            return
        self._since_look += 1
        if self._since_look >= LOOK_AT_STATE_EVERY:
            self._since_look = 0
            self._check_state(node.core.log_end_offset, node.state.metadata)

    def look_at_whole_state(self) -> None:
        """As a standby has it now."""
        if self.is_up and not self._node.is_active:
            metadata = self._node.state.metadata
            self._check_state(metadata.last_applied_offset + 1, metadata)

    def _check_state(self, end_offset: int, metadata: MetadataState) -> None:
        self._world.checkers.equal_state.check(self, end_offset, state_hash(metadata))

    def _answer(self, token: Any, response: Message) -> None:
        if isinstance(token, tuple):
            if self.on_answer is not None:
                self.on_answer(token, response)
        else:
            super()._answer(token, response)

    # Effects.

    def execute(self, effect: Any) -> None:
        own = _EXECUTE.get(type(effect))
        if own is None:
            super().execute(effect)
        else:
            own(self, effect)

    def _read_committed(self, effect: nx.ReadCommitted) -> None:
        self._world.scheduler.after(0, self._committed, self.life, effect)

    def _committed(self, life: int, effect: nx.ReadCommitted) -> None:
        if life != self.life:
            return
        batches = self._batches(effect.start_offset, effect.end_offset)
        if batches:
            self.take(CommittedBatches(batches, batches[-1].header.next_offset))  # type: ignore[arg-type]

    def _batches(self, start_offset: int, end_offset: int) -> list[Batch]:
        found = self.disk.batches_between(start_offset, end_offset)
        return [split_batches(batch.data)[0][0] for batch in found]

    def _install_snapshot(self, effect: fx.InstallSnapshot) -> None:
        snapshot = self._verified[effect.snapshot_id]
        super()._install_snapshot(effect)
        loaded = StateLoaded(snapshot.id, state_in(snapshot))
        took_us = self._chance.randrange(MS, 500 * MS)
        self._world.scheduler.after(took_us, self._later, self.life, loaded)

    def _write_snapshot(self, effect: nx.WriteSnapshot) -> None:
        """From the last snapshot and the committed log, not from the live state: they have to agree."""
        snapshot_id = effect.snapshot_id
        latest = self.disk.latest_snapshot
        if snapshot_id in self.disk.snapshots or latest is None:
            self._world.scheduler.after(0, self._later, self.life, SnapshotFailed(snapshot_id))
            return
        metadata = self._state_at(snapshot_id, latest)
        self._check_state(snapshot_id.end_offset, metadata)
        values = [encode_metadata_record(record, version) for record, version in snapshot_records(metadata)]
        control = self.disk.control_at(snapshot_id.end_offset)
        snapshot = make_snapshot(snapshot_id, control, values, self.clock.now().wall_ms)
        took_us = self._chance.randrange(MS, 500 * MS)
        self._world.scheduler.after(took_us, self._snapshot_written, self.life, snapshot)

    def _state_at(self, snapshot_id: SnapshotId, latest: SnapshotFile) -> MetadataState:
        metadata = state_in(latest)
        for batch in self._batches(latest.id.end_offset, snapshot_id.end_offset):
            if not batch.header.is_control:
                for offset, value in enumerate(record_values(batch), batch.header.base_offset):
                    metadata.replay(decode_metadata_record(value)[0], offset)
        return metadata

    def _handler_failed(self, effect: nx.HandlerFailed) -> None:
        raise Violation("NoDefect", f"node {self.id}: a handler failed: {effect.error!r}")

    def take_snapshot(self) -> None:
        """It makes them by its own policy."""


def state_in(snapshot: SnapshotFile) -> MetadataState:
    """The state that a snapshot's bytes hold; format's holds none."""
    if not snapshot.data:
        return MetadataState()
    values = read_snapshot(snapshot.id, snapshot.data).values
    records = (decode_metadata_record(value)[0] for value in values)
    return MetadataState.from_snapshot(records, snapshot.id.end_offset - 1)


def state_hash(metadata: MetadataState) -> bytes:
    """Equal for equal states."""
    digest = blake2b(digest_size=16)
    for record, version in snapshot_records(metadata):
        digest.update(encode_metadata_record(record, version))
    return digest.digest()


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


def _ignore(node: ControllerNode, effect: object) -> None:
    """For operators to read."""


_EXECUTE: Final[dict[type[Any], Callable[[ControllerNode, Any], None]]] = {
    nx.ReadCommitted: ControllerNode._read_committed,
    nx.WriteSnapshot: ControllerNode._write_snapshot,
    nx.HandlerFailed: ControllerNode._handler_failed,
    fx.InstallSnapshot: ControllerNode._install_snapshot,
    nx.Activated: _ignore,
    nx.FirstWrite: _ignore,
    nx.Decided: _ignore,
    nx.Refused: _ignore,
}
