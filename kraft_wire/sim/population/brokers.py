"""Simulate brokers, as controllers know them: they register, send heartbeats, follow the metadata log, alter
the ISRs of the partitions they lead, stop, die, and come back as new incarnations."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kraft_wire.metadata.features.supported import supported_ranges
from kraft_wire.metadata.partitions.partition import RECOVERED, Partition
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraft_wire.protocol.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.broker_registration_request import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from kraft_wire.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.sim.checkers.committed import CommittedMetadata
from kraft_wire.sim.machines.node import SimNode
from kraft_wire.sim.population.clients import Clients, Take, error_of
from kraft_wire.sim.scheduler import MS, Scheduler
from kraft_wire.sim.trace import Trace

HEARTBEAT_US: Final = 2_000 * MS
RETRY_US: Final = 500 * MS
READ_US: Final = 500 * MS
REPLICATE_US: Final = 1_000 * MS
GIVE_UP_SHUTDOWN_US: Final = 20_000 * MS
REGISTRATION_VERSION: Final = 4
HEARTBEAT_VERSION: Final = 2
PRODUCER_IDS_VERSION: Final = 0
EPOCHS_SINCE_VERSION: Final = 3
MAX_PROPOSALS: Final = 3


class BrokerWorld(msgspec.Struct):
    """The values that all brokers share."""

    scheduler: Scheduler
    trace: Trace
    clients: Clients
    committed: CommittedMetadata
    nodes: Mapping[int, SimNode]
    brokers: dict[int, SimBroker]
    cluster_id: str
    is_calm: bool = False


class SimBroker:
    """A broker. ``life`` counts starts and ends; work that a former life had in flight does nothing. ``view``
    is the metadata that this broker has read so far; its disk survives a crash."""

    def __init__(self, broker_id: int, world: BrokerWorld, chance: random.Random) -> None:
        self.id = broker_id
        self.life = 0
        self.is_up = False
        self.is_stopping = False
        self.epoch: int | None = None
        self.view = MetadataState()
        self.view_end = 0
        self._read = 0
        self._held: list[tuple[int, Callable[..., None], tuple[Any, ...]]] = []
        self._world = world
        self._chance = chance
        self._incarnation = Uuid.ZERO
        self._last_epoch = -1
        self._down_us = 0
        self._paused_until_us = 0
        self._known_epochs: dict[int, int] = {}
        self._controllers: Sequence[int] = sorted(world.nodes)
        self._guess = 0

    # Life.

    def start(self) -> None:
        if self.is_up:
            return
        self.life += 1
        self._trace("starts")
        self.is_up = True
        self.is_stopping = False
        self.epoch = None
        self._paused_until_us = 0
        self._incarnation = Uuid.from_random(self._chance.randbytes(16))
        self._later(self._chance.randrange(READ_US), self._read_metadata)
        self._later(self._chance.randrange(RETRY_US), self._register)
        self._later(self._chance.randrange(REPLICATE_US), self._replicate)

    def kill(self, down_us: int) -> None:
        """End the process at once and start another one later."""
        if self.is_up:
            self._last_epoch = -1
            self._end(down_us)

    def shut_down(self, down_us: int) -> None:
        """Shut down in a controlled way: ask the controller, stop when it agrees, and start again later."""
        if self.is_up and not self.is_stopping:
            self._trace("wants to stop")
            self.is_stopping = True
            self._down_us = down_us
            self._later(GIVE_UP_SHUTDOWN_US, self.kill, down_us)

    def pause(self, duration_us: int) -> None:
        """Stop the process as SIGSTOP does: events wait."""
        self._trace(f"stands still, for {duration_us} us")
        self._paused_until_us = max(self._paused_until_us, self._world.scheduler.now_us + duration_us)
        self._world.scheduler.at(self._paused_until_us, self._resume_if_awake)

    def resume(self) -> None:
        """Continue the process as SIGCONT does."""
        self._paused_until_us = 0
        held, self._held = self._held, []
        for due in held:
            self._act(*due)

    def calm(self) -> None:
        """Undo all faults of this broker."""
        self.resume()
        self._down_us = 0
        self.start()

    def _end(self, down_us: int) -> None:
        self._trace(f"ends, for {down_us} us")
        self.is_up = False
        self.life += 1
        life = self.life
        self._world.scheduler.after(down_us, self._start_again, life)

    def _start_again(self, life: int) -> None:
        if life == self.life:
            self.start()

    @property
    def is_awake(self) -> bool:
        return self.is_up and self._world.scheduler.now_us >= self._paused_until_us

    def _trace(self, what: str) -> None:
        self._world.trace.add(f"{self._world.scheduler.now_us} broker {self.id} {what}")

    # Calls: they do nothing in another life, and during a pause they wait for its end.

    def _later(self, delay_us: int, act: Callable[..., None], *arguments: Any) -> None:
        self._world.scheduler.after(delay_us, self._act, self.life, act, arguments)

    def _act(self, life: int, act: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if life != self.life or not self.is_up:
            return
        if self.is_awake:
            act(*arguments)
        else:
            self._held.append((life, act, arguments))

    def _resume_if_awake(self) -> None:
        if self.is_awake:
            self.resume()

    def _ask(self, request: Message, version: int, take: Take) -> None:
        def taken(response: Message | None, life: int = self.life) -> None:
            self._act(life, take, (response,))

        self._world.clients.ask(self.id, self._controller, request, version, taken)

    @property
    def _controller(self) -> int:
        return self._controllers[self._guess % len(self._controllers)]

    def _ask_next_controller(self) -> None:
        self._guess += 1

    # The committed metadata log of some controller.

    def _read_metadata(self) -> None:
        self._later(READ_US // 2 + self._chance.randrange(READ_US), self._read_metadata)
        life = self.life

        def taken(end_offset: int) -> None:
            self._act(life, self._take_metadata, (end_offset,))

        self._world.clients.read(self.id, self._controller, taken)

    def _take_metadata(self, end_offset: int) -> None:
        records = self._world.committed.records
        while self._read < len(records) and records[self._read][0] < end_offset:
            offset, record = records[self._read]
            self.view.replay(record, offset)
            self._read += 1
        self.view_end = max(self.view_end, end_offset)

    # Registration and heartbeats.

    def _register(self) -> None:
        request = BrokerRegistrationRequest(
            broker_id=self.id,
            cluster_id=self._world.cluster_id,
            incarnation_id=self._incarnation,
            listeners=[Listener("PLAINTEXT", f"broker-{self.id}", 9092, 0)],
            features=[Feature(name, low, high) for name, (low, high) in supported_ranges().items()],
            log_dirs=(Uuid.from_random(bytes([self.id] * 16)),),
            previous_broker_epoch=self._last_epoch,
        )
        self._ask(request, REGISTRATION_VERSION, self._take_registration)

    def _take_registration(self, response: Message | None) -> None:
        if response is None or error_of(response):
            self._ask_next_controller()
            self._later(self._chance.randrange(RETRY_US), self._register)
            return
        assert isinstance(response, BrokerRegistrationResponse)
        self.epoch = response.broker_epoch
        self._trace(f"has epoch {self.epoch}")
        self._heartbeat()

    def _heartbeat(self) -> None:
        assert self.epoch is not None
        request = BrokerHeartbeatRequest(
            broker_id=self.id,
            broker_epoch=self.epoch,
            current_metadata_offset=self.view_end - 1,
            want_shut_down=self.is_stopping,
            cordoned_log_dirs=(),
        )
        self._ask(request, HEARTBEAT_VERSION, self._take_heartbeat)

    def _take_heartbeat(self, response: Message | None) -> None:
        error = None if response is None else error_of(response)
        if error == ErrorCode.STALE_BROKER_EPOCH:
            self.kill(RETRY_US)
        elif error != ErrorCode.NONE:
            self._ask_next_controller()
            self._later(self._chance.randrange(RETRY_US), self._heartbeat)
        else:
            assert isinstance(response, BrokerHeartbeatResponse)
            if response.should_shut_down and self.is_stopping:
                assert self.epoch is not None
                self._last_epoch = self.epoch
                self._end(self._down_us)
                return
            is_urgent = response.is_fenced or self.is_stopping
            self._later(RETRY_US if is_urgent else HEARTBEAT_US, self._heartbeat)

    # Leading partitions.

    def _replicate(self) -> None:
        self._later(REPLICATE_US // 2 + self._chance.randrange(REPLICATE_US), self._replicate)
        version = self._chance.choice((2, 3, 3, 3))
        topics = [] if self.epoch is None else self._proposals(version)
        self._note_epochs()
        if topics:
            assert self.epoch is not None
            request = AlterPartitionRequest(broker_id=self.id, broker_epoch=self.epoch, topics=topics)
            self._ask(request, version, self._take_answer)
        if self.epoch is not None and self._chance.random() < 0.1:
            block = AllocateProducerIdsRequest(broker_id=self.id, broker_epoch=self.epoch)
            self._ask(block, PRODUCER_IDS_VERSION, self._take_answer)

    def _take_answer(self, response: Message | None) -> None:
        if response is None or error_of(response) == ErrorCode.NOT_CONTROLLER:
            self._ask_next_controller()

    def _note_epochs(self) -> None:
        """Learn the epochs of the followers, as from their fetches. A known epoch may be old."""
        for broker in self._world.brokers.values():
            is_heard = self._world.is_calm or self._chance.random() < 0.5
            if is_heard and broker.is_awake and broker.epoch is not None:
                self._known_epochs[broker.id] = broker.epoch

    def _proposals(self, version: int) -> list[TopicData]:
        found = []
        for ref in self.view.partitions.led_by(self.id):
            partition = self.view.partitions.get(ref.topic_id, ref.index)
            assert partition is not None
            isr = self._wanted_isr(partition)
            if set(isr) != set(partition.isr) or partition.leader_recovery_state != RECOVERED:
                found.append(TopicData(ref.topic_id, [self._proposal(ref.index, partition, isr, version)]))
        return found[:MAX_PROPOSALS]

    def _wanted_isr(self, partition: Partition) -> tuple[int, ...]:
        if partition.leader_recovery_state != RECOVERED:
            return (self.id,)
        return tuple(id for id in partition.replicas if id == self.id or self._is_in_sync(id))

    def _is_in_sync(self, broker_id: int) -> bool:
        """Whether a follower may be in the ISR. The leader decides by its own view, which may be old."""
        follower = self._world.brokers[broker_id]
        if not follower.is_awake or broker_id not in self._known_epochs:
            return False
        seen = self.view.brokers.get(broker_id)
        may_join = seen is not None and not seen.fenced and not seen.in_controlled_shutdown
        if self._world.is_calm:
            return may_join
        lags = self._chance.random() < 0.1
        return (may_join or self._chance.random() < 0.1) and not lags

    def _proposal(
        self, index: int, partition: Partition, isr: tuple[int, ...], version: int
    ) -> PartitionData:
        epochs = {**self._known_epochs, self.id: self.epoch or 0}
        proposal = PartitionData(
            partition_index=index,
            leader_epoch=partition.leader_epoch,
            leader_recovery_state=RECOVERED,
            partition_epoch=partition.partition_epoch,
        )
        if version < EPOCHS_SINCE_VERSION:
            proposal.new_isr = isr
        else:
            proposal.new_isr_with_epochs = [BrokerState(id, epochs[id]) for id in isr]
        return proposal
