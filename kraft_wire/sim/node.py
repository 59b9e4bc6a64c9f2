"""A machine with a node on it: executes what the core decides, as the server's owner does, and dies in all
the ways in which processes and machines die."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, Final, NoReturn, Protocol

import msgspec

from kraft_wire.log.errors import LogError
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft import effects as fx
from kraft_wire.raft.config import DurableState, RaftConfig
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.events import (
    Event,
    Flushed,
    LogTrimmed,
    LogTruncated,
    Now,
    Propose,
    RpcRequest,
    ShutDown,
    SnapshotRejected,
    SnapshotVerified,
    SnapshotWritten,
    Start,
    Tick,
)
from kraft_wire.sim.checkers import Checkers
from kraft_wire.sim.clock import Clock
from kraft_wire.sim.describe import describe
from kraft_wire.sim.disk import Disk, FlushMark
from kraft_wire.sim.network import Network
from kraft_wire.sim.randomness import CoreRandomness, stream
from kraft_wire.sim.scheduler import MS, Scheduler
from kraft_wire.sim.snapshot_file import SnapshotFile, make_snapshot, read_snapshot
from kraft_wire.sim.trace import Trace
from kraft_wire.sim.violations import Violation

NO_STATE = b""
MAX_UNACKNOWLEDGED = 100


class DiskSpeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """How long a flush takes."""

    min_us: int = 100
    max_us: int = 4_000


class NextFlush(msgspec.Struct, frozen=True):
    """A flush during which the power is to fail: the next one, or the first behind the next truncation,
    unless there is none before ``until_us``. It takes ``stall_us`` longer than it would. ``then`` is called
    when the power has failed."""

    until_us: int
    stall_us: int
    is_after_truncation: bool
    then: Callable[[SimNode], None]

    def is_due(self, now_us: int) -> bool:
        return not self.is_after_truncation and now_us < self.until_us


class Machine(Protocol):
    """The core alone, or a node with its state machine."""

    def step(self, event: Any, now: Now) -> Sequence[Any]: ...
    def next_deadline_ms(self) -> int | None: ...


class World(msgspec.Struct):
    """What all nodes of a simulation share."""

    seed: int
    scheduler: Scheduler
    network: Network
    trace: Trace
    checkers: Checkers


class SimNode:
    """``life`` counts process starts and ends; what a former life had under way does nothing.
    ``leading`` is the epoch that it leads and that epoch's first offset, as its effects said in order."""

    def __init__(self, world: World, config: RaftConfig, disk: Disk, clock: Clock, speed: DiskSpeed) -> None:
        self.id = config.node_id
        self.config = config
        self.disk = disk
        self.clock = clock
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
        self._world = world
        self.speed = speed
        self._chance = stream(world.seed, f"node {self.id}")
        self._core: RaftCore | None = None
        self._machine: Machine
        self._is_flushing = False
        self._armed_us: int | None = None
        self._paused_until_us: int | None = None
        self._backlog: deque[Event] = deque()
        self._votes_asked: dict[int, Message] = {}
        self._verified: dict[SnapshotId, SnapshotFile] = {}
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
        """How far its state machine is."""
        return self._applied_end

    @property
    def digest(self) -> bytes:
        """Of all batches that its state machine has taken in."""
        return self._digest

    def request_of(self, token: int) -> Message | None:
        """A vote request that is being answered."""
        return self._votes_asked.get(token)

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
            self._machine = self._build(durable, stream(self._world.seed, purpose))
            self._catch_up(durable.committed_offset)
        except Violation:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the run has found
            self._broken(error)
        for check in self._world.checkers.started:
            check(self)
        self._step(Start())

    def _build(self, durable: DurableState, chance: random.Random) -> Machine:
        """What runs on this machine: the core alone."""
        core = self._core = RaftCore(self.config, durable, CoreRandomness(chance))
        return core

    def _load(self, latest: SnapshotFile | None) -> None:
        """Start the state machine from the newest snapshot."""
        self._applied_end, self._digest = 0, NO_STATE
        if latest is not None and latest.data:
            self._applied_end = latest.id.end_offset
            self._digest = self._digest_of(read_snapshot(latest.id, latest.data))

    def _catch_up(self, committed_offset: int) -> None:
        """Apply what is known to be committed already."""
        self._apply(committed_offset)

    def _apply(self, committed_offset: int) -> None:
        for batch in self.disk.batches_between(self._applied_end, committed_offset):
            self._digest = blake2b(self._digest + batch.data, digest_size=16).digest()
            self._applied_end = batch.last_offset + 1
            for check in self._world.checkers.applied:
                check(self, batch, self._digest)

    def _digest_of(self, snapshot: SnapshotFile) -> bytes:
        """The digest of all batches that a snapshot stands for: it is the state here."""
        return snapshot.values[0]

    def _forget(self) -> None:
        self.leading = None
        self._is_flushing = False
        self._armed_us = None
        self._paused_until_us = None
        self.effects_to_live = None
        self.next_flush_fails = False
        self.next_read_fails = False
        self.flush_to_die_in = None
        self._backlog.clear()
        self._votes_asked.clear()
        self._verified.clear()
        self._unacknowledged.clear()

    def kill(self) -> None:
        """The process dies: the kernel keeps what was written, and closes the connections."""
        if self.is_up:
            self._end("killed")
            self._world.network.process_died(self.id)

    def lose_power(self, chance: random.Random) -> None:
        """The machine dies: what isn't flushed may be gone, and nobody is told."""
        if self.is_up:
            self._end("lost power")
            self.disk.lose_power(chance)
            self.is_powered = False
            self._world.network.machine_died(self.id)

    def _end(self, how: str) -> None:
        self._world.trace.add(f"{self._world.scheduler.now_us} {self.id} {how}")
        self.is_up = False
        self.leading = None
        self.life += 1
        self._core = None

    def die_within(self, effects: int, *, power_fails: bool) -> None:
        """Die after so many of the effects to come, most likely between two of one step."""
        self.effects_to_live = effects
        self._power_fails = power_fails

    def pause(self, duration_us: int) -> None:
        """SIGSTOP: time goes on, this process doesn't."""
        if self.is_up and self._paused_until_us is None:
            until_us = self._world.scheduler.now_us + duration_us
            self._paused_until_us = until_us
            self._world.scheduler.at(until_us, self._resume, self.life)

    def _resume(self, life: int) -> None:
        if life == self.life:
            self.resume()

    def resume(self) -> None:
        """SIGCONT: what has come meanwhile is taken in."""
        self._paused_until_us = None
        while self._backlog and self.is_up and self._paused_until_us is None:
            self._step(self._backlog.popleft())
        if self.is_up:
            self._arm()

    def shut_down(self) -> None:
        """SIGTERM."""
        if self.is_up and not self.is_shutting_down:
            self.is_shutting_down = True
            self.take(ShutDown())

    # Events.

    def take(self, event: Event) -> None:
        """Something happens to this node."""
        if not self.is_up:
            return
        if type(event) is RpcRequest and isinstance(event.request, VoteRequest):
            token: Any = event.token
            self._votes_asked[token] = event.request
        if self._paused_until_us is not None:
            self._backlog.append(event)
            return
        self._step(event)

    def _later(self, life: int, event: Event) -> None:
        if life == self.life:
            self.take(event)

    def propose(self, values: tuple[bytes, ...]) -> bool:
        """A client wants records in the log. False if this node doesn't take them, or has enough to do."""
        if len(self._unacknowledged) >= MAX_UNACKNOWLEDGED:
            return False
        if not self.is_up or self._paused_until_us is not None or not self.raft.accepts_proposals:
            return False
        self._step(Propose(values))
        return True

    def _step(self, event: Event) -> None:
        core = self.raft
        try:
            effects = self._machine.step(event, self.clock.now())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the run has found
            self._broken(error)
        self._world.trace.add(
            f"{self._world.scheduler.now_us} {self.id} {describe(event)} -> {core.epoch} {core.role.value}"
            f" {core.log_start_offset} {core.flushed_offset} {core.log_end_offset} {core.high_watermark}"
            f" {len(effects)}"
        )
        self._foresee(effects)
        for effect in effects:
            if self.effects_to_live is not None and self._dies_now():
                return
            if type(effect) in _WRITES and self._world.scheduler.now_us < self.disk_full_until_us:
                self.kill()
                return
            if self.next_read_fails and type(effect) in _READS:
                self.kill()
                return
            self.execute(effect)
        if type(event) is Propose and self.is_up:
            self._unacknowledged.append((core.epoch, self.disk.batches[-1]))
        if self.is_up:
            for check in self._world.checkers.stepped:
                check(self)
            self._arm()

    def _foresee(self, effects: Sequence[Any]) -> None:
        """Let checkers know what the step's effects take for granted."""

    def execute(self, effect: Any) -> None:
        """Do what the core wants done."""
        _EXECUTE[type(effect)](self, effect)

    def _dies_now(self) -> bool:
        assert self.effects_to_live is not None
        self.effects_to_live -= 1
        if self.effects_to_live > 0:
            return False
        if self._power_fails:
            self.lose_power(self._chance)
        else:
            self.kill()
        return True

    def _broken(self, error: Exception) -> NoReturn:
        raise Violation("NoDefect", f"node {self.id}: {type(error).__name__}: {error}") from error

    def _arm(self) -> None:
        """Have a Tick come when the core wants one. A deadline that moves away leaves the old wake-up be."""
        deadline_ms = self._machine.next_deadline_ms()
        if deadline_ms is None:
            return
        scheduler = self._world.scheduler
        at_us = max(self.clock.simulated_us(deadline_ms), scheduler.now_us)
        if self._armed_us is None or at_us < self._armed_us:
            self._armed_us = at_us
            scheduler.at(at_us, self._wake, self.life, at_us)

    def _wake(self, life: int, at_us: int) -> None:
        if life != self.life or self._armed_us != at_us:
            return
        self._armed_us = None
        if self._paused_until_us is not None:
            return
        deadline_ms = self._machine.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= self.clock.now().monotonic_ms:
            self._step(Tick())
        else:
            self._arm()

    # Effects.

    def _append(self, effect: fx.AppendBatch) -> None:
        self.disk.append(effect)
        for check in self._world.checkers.appended:
            check(self, effect)
        if not self._is_flushing:
            self._is_flushing = True
            # What is appended in the same step is covered too: the flush begins when the step is over.
            self._world.scheduler.after(0, self._begin_flush, self.life)

    def _begin_flush(self, life: int) -> None:
        if life == self.life:
            speed = self.speed
            share = self._chance.random()
            took_us = speed.min_us + int(share * share * (speed.max_us - speed.min_us))
            scheduler = self._world.scheduler
            at_us = max(scheduler.now_us + took_us, self.disk_stalled_until_us)
            wanted = self.flush_to_die_in
            if wanted is not None and not wanted.is_after_truncation and scheduler.now_us < wanted.until_us:
                at_us += wanted.stall_us
                fails_us = self._chance.randrange(scheduler.now_us, at_us)
                scheduler.at(fails_us, self._fail_power, life, wanted)
            scheduler.at(at_us, self._end_flush, life, self.disk.flush_mark(), self.raft.log_generation)

    def _fail_power(self, life: int, wanted: NextFlush) -> None:
        """Unless peace has come meanwhile."""
        if life == self.life and self.flush_to_die_in is wanted:
            self.lose_power(self._chance)
            wanted.then(self)

    def _end_flush(self, life: int, mark: FlushMark, generation: int) -> None:
        if life != self.life:
            return
        if self.next_flush_fails:
            self.disk.lose_unflushed()
            self.kill()
            return
        self.disk.flushed(mark)
        self._is_flushing = False
        if self.disk.flushed_offset < self.disk.end_offset:
            self._is_flushing = True
            self._world.scheduler.after(0, self._begin_flush, self.life)
        self.take(Flushed(mark.end_offset, generation))

    def _persist(self, effect: fx.PersistElectionState) -> None:
        state = effect.state
        if not effect.kraft_version:
            state = msgspec.structs.replace(state, voted_directory_id=Uuid.ZERO)  # as the file's version 0
        self.disk.write_election_state(state)
        for check in self._world.checkers.persisted:
            check(self, state)

    def _reply(self, effect: fx.Reply) -> None:
        self._answer(effect.token, effect.response)

    def _answer(self, token: Any, response: Message) -> None:
        for check in self._world.checkers.answering:
            check(self, token, response)
        if self._votes_asked:
            self._votes_asked.pop(token, None)
        self._world.network.answer(token, response)

    def _send(self, effect: fx.SendRequest) -> None:
        for check in self._world.checkers.sending:
            check(self, effect.request)
        self._world.network.send(self, effect.request_id, effect.peer, effect.request)

    def _cancel(self, effect: fx.CancelRequest) -> None:
        self._world.network.cancel(self, effect.request_id)

    def _truncate(self, effect: fx.TruncateLog) -> None:
        if self.flush_to_die_in is not None:
            self.flush_to_die_in = msgspec.structs.replace(self.flush_to_die_in, is_after_truncation=False)
        size_bytes = self.disk.size_bytes
        gone = self.disk.truncate(effect.end_offset)
        for check in self._world.checkers.truncated:
            check(self, gone, effect.end_offset)
        if self.disk.batches and self.disk.batches[-1].last_offset >= effect.end_offset:
            raise Violation("WholeBatches", f"node {self.id}: {effect.end_offset} is within a batch")
        done = LogTruncated(effect.end_offset, size_bytes - self.disk.size_bytes)
        self._world.scheduler.after(0, self._later, self.life, done)

    def _reply_records(self, effect: fx.ReplyRecords) -> None:
        response = effect.response
        assert isinstance(response, FetchResponse)
        records = self.disk.read(effect.offset, effect.end_offset, effect.max_bytes)
        response.responses[0].partitions[0].records = records
        self._answer(effect.token, response)

    def _reply_snapshot_bytes(self, effect: fx.ReplySnapshotBytes) -> None:
        response = effect.response
        assert isinstance(response, FetchSnapshotResponse)
        data = self.disk.snapshots[effect.snapshot_id].data
        piece = data[effect.position : effect.position + effect.max_bytes]
        response.topics[0].partitions[0].unaligned_records = piece
        self._answer(effect.token, response)

    def _advance(self, effect: fx.HighWatermarkAdvanced) -> None:
        checkers = self._world.checkers
        self._check_advance(effect)
        self.high_watermark = effect.offset
        self.disk.note_committed(effect.offset)
        self._apply(effect.offset)
        waiting = self._unacknowledged
        while waiting and waiting[0][1].last_offset < effect.offset:
            epoch, batch = waiting.popleft()
            if self.leading is not None and epoch == self.leading[0]:
                for check in checkers.acknowledged:
                    check(self, batch)

    def _check_advance(self, effect: fx.HighWatermarkAdvanced) -> None:
        for check in self._world.checkers.advanced:
            check(self, effect.offset)

    def _lead(self, effect: fx.BecameLeader) -> None:
        self.leading = effect.epoch, effect.epoch_start_offset
        for check in self._world.checkers.led:
            check(self, effect.epoch)

    def _lose_leadership(self, effect: fx.LostLeadership) -> None:
        self.leading = None
        self._unacknowledged.clear()

    def _append_snapshot_bytes(self, effect: fx.AppendSnapshotBytes) -> None:
        self.disk.append_part(effect.snapshot_id, effect.position, effect.data)

    def _verify_snapshot(self, effect: fx.VerifySnapshot) -> None:
        data = self.disk.parts[effect.snapshot_id]
        try:
            snapshot = read_snapshot(effect.snapshot_id, data)
        except LogError as error:
            self.disk.parts.pop(effect.snapshot_id)
            event: Event = SnapshotRejected(effect.snapshot_id, str(error))
        else:
            self._verified[snapshot.id] = snapshot
            info = snapshot.info
            event = SnapshotVerified(
                info.id, info.size_bytes, info.last_contained_log_timestamp_ms, snapshot.control
            )
        took_us = self._chance.randrange(self.speed.min_us, 20 * self.speed.max_us)
        self._world.scheduler.after(took_us, self._later, self.life, event)

    def _install_snapshot(self, effect: fx.InstallSnapshot) -> None:
        snapshot = self._verified.pop(effect.snapshot_id)
        self.disk.install(snapshot)
        self._applied_end = snapshot.id.end_offset
        self._digest = self._digest_of(snapshot)
        for check in self._world.checkers.installed:
            check(self, snapshot)
        self._trimmed()

    def _abandon_snapshot(self, effect: fx.AbandonSnapshot) -> None:
        self.disk.parts.pop(effect.snapshot_id, None)

    def _forget_loss(self, effect: fx.LossMadeGood) -> None:
        self.disk.forget_loss()

    def _trim(self, effect: fx.TrimLog) -> None:
        deleted_bytes = self.disk.trim(effect.start_offset)
        self._trimmed()
        self._world.scheduler.after(0, self._later, self.life, LogTrimmed(deleted_bytes))

    def _delete_snapshot(self, effect: fx.DeleteSnapshot) -> None:
        self.disk.snapshots.pop(effect.snapshot_id, None)
        self._trimmed()

    def _trimmed(self) -> None:
        for check in self._world.checkers.trimmed:
            check(self)

    def _stop(self, effect: fx.ReadyToStop) -> None:
        self._world.scheduler.after(0, self._stop_now, self.life)

    def _stop_now(self, life: int) -> None:
        if life == self.life:
            self.kill()

    def _keep_committed(self, effect: fx.LeaderLacksCommitted) -> None:
        raise Violation(
            "LeaderCompleteness",
            f"node {self.id} keeps its log, of which all below offset {effect.committed_offset} is committed:"
            f" node {effect.leader_id}, which leads epoch {effect.epoch}, has it end at {effect.end_offset}",
        )

    def _nothing(self, effect: object) -> None:
        """For operators to read."""

    # Snapshots of its own.

    def take_snapshot(self) -> None:
        """Begin to write a snapshot of everything that the state machine has taken in."""
        if not self.is_up or self._applied_end <= self.raft.log_start_offset:
            return
        end_offset = self._applied_end
        snapshot_id = SnapshotId(end_offset, self.raft.epoch_at(end_offset - 1))
        if snapshot_id in self.disk.snapshots:
            return
        control = self.disk.control_at(end_offset)
        snapshot = make_snapshot(snapshot_id, control, [self._digest], self.clock.now().wall_ms)
        took_us = self._chance.randrange(MS, 500 * MS)
        self._world.scheduler.after(took_us, self._snapshot_written, self.life, snapshot)

    def _snapshot_written(self, life: int, snapshot: SnapshotFile) -> None:
        if life == self.life and snapshot.id not in self.disk.snapshots:
            self.disk.snapshots[snapshot.id] = snapshot
            info = snapshot.info
            self.take(SnapshotWritten(info.id, info.size_bytes, info.last_contained_log_timestamp_ms))


_WRITES: Final = (fx.AppendBatch, fx.PersistElectionState, fx.AppendSnapshotBytes)
_READS: Final = (fx.ReplyRecords, fx.ReplySnapshotBytes)

_EXECUTE: Final[dict[type[Any], Callable[[SimNode, Any], None]]] = {
    fx.AppendBatch: SimNode._append,
    fx.PersistElectionState: SimNode._persist,
    fx.Reply: SimNode._reply,
    fx.ReplyRecords: SimNode._reply_records,
    fx.ReplySnapshotBytes: SimNode._reply_snapshot_bytes,
    fx.SendRequest: SimNode._send,
    fx.CancelRequest: SimNode._cancel,
    fx.TruncateLog: SimNode._truncate,
    fx.HighWatermarkAdvanced: SimNode._advance,
    fx.BecameLeader: SimNode._lead,
    fx.LostLeadership: SimNode._lose_leadership,
    fx.AppendSnapshotBytes: SimNode._append_snapshot_bytes,
    fx.VerifySnapshot: SimNode._verify_snapshot,
    fx.InstallSnapshot: SimNode._install_snapshot,
    fx.AbandonSnapshot: SimNode._abandon_snapshot,
    fx.LossMadeGood: SimNode._forget_loss,
    fx.TrimLog: SimNode._trim,
    fx.DeleteSnapshot: SimNode._delete_snapshot,
    fx.ReadyToStop: SimNode._stop,
    fx.RoleChanged: SimNode._nothing,
    fx.BadFetch: SimNode._nothing,
    fx.LeaderLacksCommitted: SimNode._keep_committed,
    fx.EpochsUsedUp: SimNode._nothing,
}
