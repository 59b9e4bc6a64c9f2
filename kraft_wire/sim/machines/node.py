"""Simulate a machine with a node on it: it executes the core's effects, as the server does, and it dies in
all the ways in which processes and machines die.

A step takes time: its effects are executed when it is over, and what comes meanwhile waits.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Final, NoReturn, Protocol

from kraft_wire.log.batch import frame_values
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.raft import effects as fx
from kraft_wire.raft import executor
from kraft_wire.raft.config import DurableState, RaftConfig
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.events import Event, Now, Propose, RpcRequest, ShutDown, SnapshotWritten, Start, Tick
from kraft_wire.sim.checkers.violations import Violation
from kraft_wire.sim.describe import describe
from kraft_wire.sim.machines.clock import Clock
from kraft_wire.sim.machines.disk import Disk
from kraft_wire.sim.machines.event_loop import EventLoop
from kraft_wire.sim.machines.handler_cost import HandlerCost, StepRecords, appended_records
from kraft_wire.sim.machines.ports import SimPorts
from kraft_wire.sim.machines.served import SERVED
from kraft_wire.sim.machines.snapshot_file import SnapshotFile, make_snapshot, read_snapshot
from kraft_wire.sim.machines.world import DiskSpeed, NextFlush, World
from kraft_wire.sim.randomness import CoreRandomness, stream
from kraft_wire.sim.scheduler import MS

NO_STATE = b""
MAX_UNACKNOWLEDGED = 100

CHECKED: Final = (VoteRequest, AddRaftVoterRequest)
_WRITES: Final = (fx.AppendBatch, fx.PersistElectionState, fx.AppendSnapshotBytes)
_READS: Final = (fx.ReplyRecords, fx.ReplySnapshotBytes)


class Machine(Protocol):
    """The core alone, or a node with its state machine."""

    def step(self, event: Any, now: Now) -> Sequence[Any]: ...
    def next_deadline_ms(self) -> int | None: ...


class SimNode:
    """A machine, its disk, and the process on it. ``life`` counts the starts and the ends of the process;
    work that a former life had in flight does nothing. ``leading`` is the epoch that the node leads and that
    epoch's first offset, as its latest effects tell."""

    def __init__(self, world: World, config: RaftConfig, disk: Disk, clock: Clock, speed: DiskSpeed) -> None:
        self.id = config.node_id
        self.config = config
        self.disk = disk
        self.clock = clock
        self.speed = speed
        self.cost = HandlerCost()
        self.world = world
        self.chance = stream(world.seed, f"node {self.id}")
        self.life = 0
        self.is_up = False
        self.is_powered = True
        self.is_shutting_down = False
        self.high_watermark = 0
        self.leading: tuple[int, int] | None = None
        self.effects_to_live: int | None = None
        self.next_flush_fails = False
        self.next_read_fails = False
        self.flush_to_die_in: NextFlush | None = None
        self.disk_stalled_until_us = 0
        self.disk_full_until_us = 0
        self._power_fails = False
        self._core: RaftCore | None = None
        self._machine: Machine
        self._ports = self._build_ports()
        self._armed_us: int | None = None
        self._loop = EventLoop()
        self._tick_waits = False
        self._asked: dict[int, Message] = {}
        self._unacknowledged: deque[tuple[int, fx.AppendBatch]] = deque()
        self._applied_end = 0
        self._digest = NO_STATE

    @property
    def raft(self) -> RaftCore:
        if self._core is None:
            raise ValueError(f"node {self.id} is down")
        return self._core

    @property
    def applied_end(self) -> int:
        """The offset up to which the state machine has applied the log."""
        return self._applied_end

    @property
    def digest(self) -> bytes:
        """The digest of all batches that the state machine has applied."""
        return self._digest

    def request_of(self, token: int) -> Message | None:
        """Return the request that is being answered, if a checker wants to see it."""
        return self._asked.get(token)

    # Life.

    def start(self) -> None:
        """Start the process, if it isn't running."""
        if self.is_up:
            return
        self.life += 1
        self.is_up = self.is_powered = True
        self.is_shutting_down = False
        self.high_watermark = 0
        self._forget()
        purpose = f"core of node {self.id}, life {self.life}"
        try:
            durable = self.disk.recover()
            self._load(self.disk.latest_snapshot)
            self._machine = self._build(durable, stream(self.world.seed, purpose))
            self._catch_up(durable.committed_offset)
        except Violation:
            raise
        except Exception as error:  # noqa: BLE001 - any exception is a finding of this run
            self._broken(error)
        for check in self.world.checkers.started:
            check(self)
        self._step(Start())

    def _build(self, durable: DurableState, chance: random.Random) -> Machine:
        """Return what runs on this machine: the core alone."""
        core = self._core = RaftCore(self.config, durable, CoreRandomness(chance))
        return core

    def _build_ports(self) -> SimPorts:
        return SimPorts(self)

    def _forget(self) -> None:
        self.leading = None
        self._ports.reset()
        self._armed_us = None
        self._tick_waits = False
        self._loop.reset()
        self.effects_to_live = None
        self.next_flush_fails = False
        self.next_read_fails = False
        self.flush_to_die_in = None
        self._asked.clear()
        self._unacknowledged.clear()

    def kill(self) -> None:
        """End the process: the kernel keeps what was written and closes the connections."""
        if self.is_up:
            self._end("killed")
            self.world.network.process_died(self.id)

    def lose_power(self, chance: random.Random) -> None:
        """End the machine: what isn't flushed may be lost, and no peer is notified."""
        if self.is_up:
            self._end("lost power")
            self.disk.lose_power(chance)
            self.is_powered = False
            self.world.network.machine_died(self.id)

    def _end(self, how: str) -> None:
        self.world.trace.add(f"{self.world.scheduler.now_us} {self.id} {how}")
        self.is_up = False
        self.leading = None
        self.life += 1
        self._core = None
        self._loop.reset()

    def die_within(self, effects: int, *, power_fails: bool) -> None:
        """Die after so many of the next effects, most likely between two effects of one step."""
        self.effects_to_live = effects
        self._power_fails = power_fails

    def pause(self, duration_us: int) -> None:
        """Stop the process as SIGSTOP does: time goes on, the process doesn't."""
        if self.is_up and not self._loop.is_paused:
            self._loop.pause()
            self.after(duration_us, self.resume)

    def resume(self) -> None:
        """Continue the process as SIGCONT does: it takes the events that came meanwhile."""
        self._loop.resume()
        if self.is_up and not self._loop.is_busy:
            self._arm()

    def shut_down(self) -> None:
        """Stop the process gracefully, as SIGTERM does."""
        if self.is_up and not self.is_shutting_down:
            self.is_shutting_down = True
            self.take(ShutDown())

    # Time.

    def at(self, time_us: int, act: Callable[..., None], *arguments: Any) -> None:
        """Do something at a time, unless this life of the process is over by then."""
        self.world.scheduler.at(time_us, self._act_if_alive, self.life, act, arguments)

    def after(self, delay_us: int, act: Callable[..., None], *arguments: Any) -> None:
        """Do something after a delay, unless this life of the process is over by then."""
        self.world.scheduler.after(delay_us, self._act_if_alive, self.life, act, arguments)

    def _act_if_alive(self, life: int, act: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if life == self.life:
            act(*arguments)

    def when_free(self, act: Callable[..., object], *arguments: Any) -> None:
        """Do something on the node's event loop, unless the process ends before its turn comes."""
        self._loop.when_free(act, *arguments)

    def _arm(self) -> None:
        """Schedule the Tick that the core wants. If the deadline moves away, the old wake-up stays."""
        if self._tick_waits:
            return
        deadline_ms = self._machine.next_deadline_ms()
        if deadline_ms is None:
            return
        at_us = max(self.clock.simulated_us(deadline_ms), self.world.scheduler.now_us)
        if self._armed_us is None or at_us < self._armed_us:
            self._armed_us = at_us
            self.at(at_us, self._wake, at_us)

    def _wake(self, at_us: int) -> None:
        if self._armed_us != at_us:
            return
        self._armed_us = None
        if not self._loop.is_paused:
            self._tick_waits = True
            self.when_free(self._tick_if_due)

    def _tick_if_due(self) -> None:
        self._tick_waits = False
        deadline_ms = self._machine.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= self.clock.now().monotonic_ms:
            self._step(Tick())
        else:
            self._arm()

    # Events.

    def take(self, event: Event) -> None:
        """Give an event to this node."""
        if not self.is_up:
            return
        if type(event) is RpcRequest and isinstance(event.request, CHECKED):
            token: Any = event.token
            self._asked[token] = event.request
        if type(event) is RpcRequest and isinstance(event.request, ApiVersionsRequest):
            self.when_free(self._answer_versions, event)
        else:
            self.when_free(self._step, event)

    def _answer_versions(self, event: RpcRequest) -> None:
        """Answer ApiVersions, which is not the core's to answer."""
        token: Any = event.token
        self.world.network.answer(token, SERVED)

    def propose(self, values: tuple[bytes, ...]) -> bool:
        """Append a client's records. Returns False if this node doesn't take them, or has enough to do. Those
        that wait for the end of a step may still be refused then."""
        if len(self._unacknowledged) >= MAX_UNACKNOWLEDGED:
            return False
        if not self.is_up or self._loop.is_paused:
            return False
        event = Propose(frame_values(values))
        if self._loop.is_busy:
            self.when_free(self.take_as_leader, event)
            return True
        return self.take_as_leader(event)

    def take_as_leader(self, event: Event) -> bool:
        """Give an event to this node, which is free. Returns False if it doesn't lead."""
        if not self.raft.accepts_proposals:
            return False
        self._step(event)
        return True

    # Steps.

    def _step(self, event: Event) -> None:
        core = self.raft
        try:
            effects = self._machine.step(event, self.clock.now())
        except Exception as error:  # noqa: BLE001 - any exception is a finding of this run
            self._broken(error)
        took_us = self.cost.of(self._records_of(event, effects))
        self.world.trace.add(
            f"{self.world.scheduler.now_us} {self.id} {describe(event)} -> {core.epoch} {core.role.value}"
            f" {core.log_start_offset} {core.flushed_offset} {core.log_end_offset} {core.high_watermark}"
            f" {len(effects)}{'' if took_us == 0 else f' takes {took_us}'}"
        )
        for check in self.world.checkers.timed:
            check(self, took_us)
        if took_us == 0:
            self._finish(event, effects)
            return
        self._loop.begin_step()
        self.after(took_us, self._loop.end_step, self._finish, event, effects)

    def _records_of(self, event: Event, effects: Sequence[Any]) -> StepRecords:
        return StepRecords(replayed=appended_records(effects))

    def _finish(self, event: Event, effects: Sequence[Any]) -> None:
        """End a step: execute its effects."""
        core = self.raft
        self._foresee(effects)
        for effect in effects:
            if self._dies_before(effect):
                return
            self._execute(effect)
        if type(event) is Propose and self.is_up:
            self._unacknowledged.append((core.epoch, self.disk.batches[-1]))
        if self.is_up:
            for check in self.world.checkers.stepped:
                check(self)
            self._arm()

    def _foresee(self, effects: Sequence[Any]) -> None:
        """Let checkers know what the step's effects take for granted."""

    def _execute(self, effect: Any) -> None:
        executor.execute(effect, self._ports)

    def _dies_before(self, effect: Any) -> bool:
        """Whether a fault ends the process or the machine before this effect is executed."""
        if self.effects_to_live is not None:
            self.effects_to_live -= 1
            if self.effects_to_live <= 0:
                self._die()
                return True
        is_disk_full = self.world.scheduler.now_us < self.disk_full_until_us
        if (is_disk_full and type(effect) in _WRITES) or (self.next_read_fails and type(effect) in _READS):
            self.kill()
            return True
        return False

    def _die(self) -> None:
        if self._power_fails:
            self.lose_power(self.chance)
        else:
            self.kill()

    def _broken(self, error: Exception) -> NoReturn:
        raise Violation("NoDefect", f"node {self.id}: {type(error).__name__}: {error}") from error

    # What effects do to this node.

    def answer(self, token: Any, response: Message) -> None:
        """Answer a request that came over the network."""
        for check in self.world.checkers.answering:
            check(self, token, response)
        if self._asked:
            self._asked.pop(token, None)
        self.world.network.answer(token, response)

    def become_leader(self, epoch: int, epoch_start_offset: int) -> None:
        self.leading = epoch, epoch_start_offset
        for check in self.world.checkers.led:
            check(self, epoch)

    def lose_leadership(self) -> None:
        self.leading = None
        self._unacknowledged.clear()

    def advance(self, high_watermark: int) -> None:
        """Apply what is committed now, and acknowledge it to the clients that proposed it."""
        self._check_advance(high_watermark)
        self.high_watermark = high_watermark
        self.disk.note_committed(high_watermark)
        self._apply(high_watermark)
        waiting = self._unacknowledged
        while waiting and waiting[0][1].last_offset < high_watermark:
            epoch, batch = waiting.popleft()
            if self.leading is not None and epoch == self.leading[0]:
                for check in self.world.checkers.acknowledged:
                    check(self, batch)

    def _check_advance(self, high_watermark: int) -> None:
        for check in self.world.checkers.advanced:
            check(self, high_watermark)

    def check_log_start(self) -> None:
        """Check the log's start after it has moved, or after a snapshot was deleted."""
        for check in self.world.checkers.trimmed:
            check(self)

    # The state machine: here a digest of all that it has applied.

    def _load(self, latest: SnapshotFile | None) -> None:
        """Start the state machine from the newest snapshot."""
        self._applied_end, self._digest = 0, NO_STATE
        if latest is not None and latest.data:
            self.start_again_from(read_snapshot(latest.id, latest.data))

    def start_again_from(self, snapshot: SnapshotFile) -> None:
        """Replace the state by that of a snapshot."""
        self._applied_end = snapshot.id.end_offset
        self._digest = self._digest_of(snapshot)

    def _digest_of(self, snapshot: SnapshotFile) -> bytes:
        """Return the digest of all batches that a snapshot stands for: it is the state here."""
        return snapshot.values[0]

    def _catch_up(self, committed_offset: int) -> None:
        """Apply what is known to be committed already."""
        self._apply(committed_offset)

    def _apply(self, committed_offset: int) -> None:
        checks = [] if self.disk.is_estranged else self.world.checkers.applied
        for batch in self.disk.batches_between(self._applied_end, committed_offset):
            self._digest = blake2b(self._digest + batch.data, digest_size=16).digest()
            self._applied_end = batch.last_offset + 1
            for check in checks:
                check(self, batch, self._digest)

    # Snapshots of its own.

    def take_snapshot(self) -> None:
        """Begin to write a snapshot of everything that the state machine has applied."""
        self.when_free(self._take_snapshot)

    def _take_snapshot(self) -> None:
        if not self.is_up or self._applied_end <= self.raft.log_start_offset:
            return
        end_offset = self._applied_end
        snapshot_id = SnapshotId(end_offset, self.raft.epoch_at(end_offset - 1))
        if snapshot_id not in self.disk.snapshots:
            self.write_snapshot(snapshot_id, [self._digest])

    def write_snapshot(self, snapshot_id: SnapshotId, values: Sequence[bytes]) -> None:
        """Write a snapshot of these values, which takes a while."""
        control = self.disk.control_at(snapshot_id.end_offset)
        snapshot = make_snapshot(snapshot_id, control, values, self.clock.now().wall_ms)
        self.after(self.chance.randrange(MS, 500 * MS), self._snapshot_written, snapshot)

    def _snapshot_written(self, snapshot: SnapshotFile) -> None:
        if snapshot.id not in self.disk.snapshots:
            self.disk.snapshots[snapshot.id] = snapshot
            info = snapshot.info
            self.take(SnapshotWritten(info.id, info.size_bytes, info.last_contained_log_timestamp_ms))
