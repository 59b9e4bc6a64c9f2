"""The only owner of the node: feeds it events, executes its effects on files and connections, keeps its time.

Everything runs on one thread but slow things, which go on beside it and come back as events: the log's flush
(at most one under way; what is appended meanwhile is covered by the next), the reading of committed batches,
the making of a snapshot, and the checking and loading of one that was fetched.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from itertools import groupby
from typing import cast

import trio

from kraft_wire.controller import consumer_list_offsets
from kraft_wire.controller.node import Node, NodeEffect, NodeEvent
from kraft_wire.controller.requests import (
    Activated,
    ApiRequest,
    CommittedBatches,
    Decided,
    FindTimestamps,
    FirstWrite,
    ReadCommitted,
    Refused,
    ReplyCommitted,
    SnapshotFailed,
    StateLoaded,
    WriteSnapshot,
)
from kraft_wire.log.batch import split_batches
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraft_wire.raft import effects as raft_effects
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import (
    Failure,
    Flushed,
    LogTrimmed,
    LogTruncated,
    Now,
    RequestAbandoned,
    RequestFailed,
    ResponseReceived,
    ShutDown,
    SnapshotRejected,
    SnapshotVerified,
    Start,
    Tick,
)
from kraft_wire.server.connection import Slot
from kraft_wire.server.logging import get_logger
from kraft_wire.server.news import tell_decisions, tell_refusal, tell_trouble
from kraft_wire.server.peers import Peers
from kraft_wire.server.quorum_watch import QuorumWatch
from kraft_wire.server.snapshot_process import SnapshotProcess, SnapshotProcessFailed
from kraft_wire.server.timestamps import find_timestamps
from kraft_wire.storage.errors import CorruptSnapshot
from kraft_wire.storage.incoming_snapshot import IncomingSnapshot
from kraft_wire.storage.snapshots import SnapshotReader
from kraft_wire.storage.state_loading import read_state
from kraft_wire.storage.store import Store

READ_BYTES = 4 * 1024 * 1024
STOP_SECONDS = 5.0

log = get_logger(__name__)


def read_clocks() -> Now:
    """Now, by both clocks."""
    return Now(monotonic_ms=int(trio.current_time() * 1000), wall_ms=time.time_ns() // 1_000_000)


class NodeOwner:
    """Runs a node on its folder. ``submit`` and ``abandon`` are for connections; ``run`` keeps everything
    going.
    """

    def __init__(
        self, node: Node, store: Store, snapshots: SnapshotProcess, watch: QuorumWatch, *, client_id: str
    ) -> None:
        self._node = node
        self._store = store
        self._snapshots = snapshots
        self._watch = watch
        self._peers = Peers(
            self._answered, self._failed_to_ask, client_id=client_id, unreachable=watch.unreachable
        )
        self._incoming = IncomingSnapshot(store.snapshots, store.log)
        self._reading = trio.CancelScope()
        self._loading = trio.CancelScope()
        self._told_of: tuple[int, int | None] | None = None
        self._flush_wanted = trio.Event()
        self._deadline_moved = trio.Event()
        self._armed_deadline_ms: int | None = None
        self._nursery: trio.Nursery | None = None
        self._is_stopping = False
        self._ready_to_stop = trio.Event()
        self.activated = trio.Event()
        self._failure: Exception | None = None
        self._failed = trio.Event()
        # Whoever looks timestamps up reads the whole log: many of them must not take the flush's thread.
        self._readers = trio.CapacityLimiter(1)
        self._events: deque[NodeEvent] = deque()

    def submit(self, request: ApiRequest) -> None:
        """A connection has a whole request."""
        self._watch.asked(request)
        self._step(request)

    def abandon(self, slot: Slot) -> None:
        """A connection is gone before its response."""
        self._step(RequestAbandoned(slot))

    def _answered(self, request_id: int, response: Message) -> None:
        self._watch.answered(request_id, response)
        self._step(ResponseReceived(request_id, response))

    def _failed_to_ask(self, request_id: int, failure: Failure) -> None:
        self._watch.failed(request_id, failure)
        self._step(RequestFailed(request_id, failure))

    async def run(self) -> None:
        """Start the node and keep it going until cancelled. A failed write or flush, or a broken invariant,
        ends it with that error: nothing may be acknowledged after it.
        """
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._keep_flushing)
            nursery.start_soon(self._keep_time)
            nursery.start_soon(self._end_on_failure)
            nursery.start_soon(self._peers.run)
            self._step(Start())
            nursery.start_soon(self._watch.run)

    async def stop(self) -> None:
        """Hand over, if there is anybody to hand over to; everything that was appended is committed first."""
        self._is_stopping = True
        self._watch.stop()
        self._step(ShutDown())
        with trio.move_on_after(STOP_SECONDS):
            await self._ready_to_stop.wait()

    def _step(self, event: NodeEvent) -> None:
        """Feed the node; what its effects bring about at once is fed after all of them are executed.

        After an error nothing is fed any more, and ``run`` ends, whoever it was that brought the event: a
        connection may take the error for its own.
        """
        self._events.append(event)
        if len(self._events) > 1:
            return
        try:
            while self._events:
                self._execute_all(self._node.step(self._events[0], read_clocks()))
                self._events.popleft()
        except Exception as error:
            self._failure = error
            self._failed.set()
            raise
        if self._node.next_deadline_ms() != self._armed_deadline_ms:
            self._deadline_moved.set()

    def _execute_all(self, effects: list[NodeEffect]) -> None:
        # A run of appends becomes one write.
        for kind, run in groupby(effects, key=type):
            if kind is raft_effects.AppendBatch:
                self._append(cast(Iterable[raft_effects.AppendBatch], run))
            else:
                for effect in run:
                    self._execute(effect)

    def _append(self, appends: Iterable[raft_effects.AppendBatch]) -> None:
        self._store.log.append([append.data for append in appends])
        self._flush_wanted.set()

    def _execute(self, effect: NodeEffect) -> None:
        match effect:
            case raft_effects.Reply(token, response):
                _answer(token, response)
            case raft_effects.ReplyRecords():
                self._reply_records(effect)
            case raft_effects.ReplySnapshotBytes():
                self._reply_snapshot_bytes(effect)
            case ReplyCommitted(token, read):
                read.records_of.records = self._store.log.read(read.offset, read.end_offset, read.max_bytes)
                _answer(token, read.response)
            case raft_effects.SendRequest(request_id, peer, request):
                self._watch.sent(request_id, peer)
                self._peers.send(request_id, peer, request)
            case raft_effects.CancelRequest(request_id):
                self._watch.cancelled(request_id)
                self._peers.cancel(request_id)
            case _:
                self._execute_on_disk(effect)

    def _execute_on_disk(self, effect: NodeEffect) -> None:
        match effect:
            case raft_effects.PersistElectionState(state, kraft_version, voter_ids):
                self._store.write_election_state(state, kraft_version=kraft_version, voter_ids=voter_ids)
            case raft_effects.HighWatermarkAdvanced(offset):
                self._store.log.note_committed(offset)
            case raft_effects.TruncateLog(end_offset):
                self._truncate_log(end_offset)
            case raft_effects.TrimLog(start_offset):
                self._trim_log(start_offset)
            case raft_effects.DeleteSnapshot(snapshot_id):
                self._store.snapshots.delete(snapshot_id)
                log.info("snapshot deleted", end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)
            case raft_effects.AppendSnapshotBytes(snapshot_id, position, data):
                self._incoming.append(snapshot_id, position, data)
            case raft_effects.InstallSnapshot(snapshot_id):
                self._install_snapshot(snapshot_id)
            case raft_effects.LossMadeGood():
                self._store.forget_loss()
                log.info("the log holds again all that was committed before damage was cut out of it")
            case raft_effects.AbandonSnapshot(snapshot_id):
                self._incoming.abandon(snapshot_id)
            case _:
                self._begin(effect)

    def _begin(self, effect: NodeEffect) -> None:
        """What takes a while, and comes back as an event."""
        match effect:
            case FindTimestamps():
                self._spawn(self._find_timestamps, effect)
            case ReadCommitted(start_offset, end_offset):
                self._reading = trio.CancelScope()
                self._spawn(self._read_committed, start_offset, end_offset, self._reading)
            case WriteSnapshot(snapshot_id):
                self._spawn(self._write_snapshot, snapshot_id)
            case raft_effects.VerifySnapshot(snapshot_id):
                self._spawn(self._verify_snapshot, snapshot_id)
            case _:
                self._report(effect)

    def _report(self, effect: NodeEffect) -> None:
        match effect:
            case raft_effects.RoleChanged():
                self._tell_role(effect)
                for peer in self._node.core.other_voters:
                    self._peers.warm(peer)
            case raft_effects.BecameLeader(epoch, epoch_start_offset):
                log.info("became leader", epoch=epoch, epoch_start_offset=epoch_start_offset)
            case raft_effects.LostLeadership(epoch, leader_id):
                tell = log.info if self._is_stopping else log.warning
                tell("lost leadership", epoch=epoch, leader_id=leader_id)
            case Activated(epoch, after_ms):
                log.info("active controller", epoch=epoch, after_ms=after_ms)
                self.activated.set()
            case FirstWrite(epoch, after_ms):
                log.info("first write committed", epoch=epoch, after_ms=after_ms)
            case raft_effects.ReadyToStop():
                self._ready_to_stop.set()
            case Decided(records):
                tell_decisions(records)
            case Refused():
                tell_refusal(effect)
            case _:
                tell_trouble(effect)

    def _tell_role(self, changed: raft_effects.RoleChanged) -> None:
        """A node that stands in vain goes back and forth: only another epoch or leader is news."""
        news = changed.epoch, changed.leader_id
        tell = log.debug if news == self._told_of else log.info
        self._told_of = news
        tell("role changed", role=changed.role.value, epoch=changed.epoch, leader_id=changed.leader_id)

    def _reply_records(self, effect: raft_effects.ReplyRecords) -> None:
        response = cast(FetchResponse, effect.response)
        records = self._store.log.read(effect.offset, effect.end_offset, effect.max_bytes)
        response.responses[0].partitions[0].records = records
        _answer(effect.token, response)

    def _reply_snapshot_bytes(self, effect: raft_effects.ReplySnapshotBytes) -> None:
        response = cast(FetchSnapshotResponse, effect.response)
        data = self._store.snapshots.read(effect.snapshot_id, effect.position, effect.max_bytes)
        response.topics[0].partitions[0].unaligned_records = data
        _answer(effect.token, response)

    def _trim_log(self, start_offset: int) -> None:
        before_bytes = self._store.log.size_bytes
        self._store.log.delete_before(start_offset)
        deleted_bytes = before_bytes - self._store.log.size_bytes
        log.info("log trimmed", log_start_offset=start_offset, deleted_bytes=deleted_bytes)
        self._step(LogTrimmed(deleted_bytes))

    def _truncate_log(self, end_offset: int) -> None:
        before_bytes, before_end = self._store.log.size_bytes, self._store.log.end_offset
        now_end = self._store.log.truncate_to(end_offset)
        deleted_bytes = before_bytes - self._store.log.size_bytes
        log.warning("log truncated", end_offset=now_end, was=before_end, deleted_bytes=deleted_bytes)
        self._step(LogTruncated(now_end, deleted_bytes))

    def _install_snapshot(self, snapshot_id: SnapshotId) -> None:
        self._reading.cancel()
        self._loading.cancel()
        self._incoming.install(snapshot_id)
        log.info("snapshot installed", end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)
        self._loading = trio.CancelScope()
        self._spawn(self._load_state, snapshot_id, self._loading)

    # What goes on beside the event loop.

    def _spawn(self, function: Callable[..., Awaitable[None]], *arguments: object) -> None:
        if self._nursery is None:
            raise RuntimeError("the node acts before its owner runs")
        self._nursery.start_soon(function, *arguments)

    async def _end_on_failure(self) -> None:
        await self._failed.wait()
        assert self._failure is not None, "set before the event"
        raise self._failure

    async def _keep_flushing(self) -> None:
        while True:
            await self._flush_wanted.wait()
            self._flush_wanted = trio.Event()
            generation = self._node.core.log_generation
            end_offset = await trio.to_thread.run_sync(self._store.log.flush)
            self._step(Flushed(end_offset, generation))

    async def _keep_time(self) -> None:
        while True:
            self._deadline_moved = trio.Event()
            deadline_ms = self._armed_deadline_ms = self._node.next_deadline_ms()
            until = math.inf if deadline_ms is None else deadline_ms / 1000
            with trio.move_on_at(until):
                await self._deadline_moved.wait()
                continue
            self._step(Tick())

    async def _read_committed(self, start_offset: int, end_offset: int, scope: trio.CancelScope) -> None:
        position = start_offset
        with scope:
            while position < end_offset and not scope.cancel_called:
                data = self._store.log.read(position, end_offset, READ_BYTES)
                batches, _ = split_batches(data, check_crc=False)
                if not batches:
                    raise InvariantViolated(
                        f"all below offset {end_offset} is committed, and the log has nothing at {position}:"
                        f" it ends at {self._store.log.end_offset}"
                    )
                position = batches[-1].header.next_offset
                self._step(CommittedBatches(batches, position))
                await trio.lowlevel.checkpoint()

    async def _verify_snapshot(self, snapshot_id: SnapshotId) -> None:
        try:
            verified = await trio.to_thread.run_sync(self._incoming.verify, snapshot_id)
        except CorruptSnapshot as error:
            self._step(SnapshotRejected(snapshot_id, str(error)))
            return
        if verified is None:
            return
        self._step(
            SnapshotVerified(
                snapshot_id,
                verified.size_bytes,
                verified.last_contained_log_timestamp_ms,
                verified.control_records,
            )
        )

    async def _load_state(self, snapshot_id: SnapshotId, scope: trio.CancelScope) -> None:
        """Once another snapshot is installed nobody waits for this one, nor asks how it ends."""
        if scope.cancel_called:
            return
        snapshot = self._store.snapshots.open_reader(snapshot_id)
        with scope:
            metadata = await trio.to_thread.run_sync(_read_and_close, snapshot, abandon_on_cancel=True)
            self._step(StateLoaded(snapshot_id, metadata))

    async def _find_timestamps(self, effect: FindTimestamps) -> None:
        end_offset = effect.view.high_watermark or 0
        found = await trio.to_thread.run_sync(
            find_timestamps, self._store.log, effect.timestamps, end_offset, limiter=self._readers
        )
        response = consumer_list_offsets.respond(effect.request, effect.version, effect.view, found)
        _answer(effect.token, response)

    async def _write_snapshot(self, snapshot_id: SnapshotId) -> None:
        started = trio.current_time()
        try:
            written = await self._snapshots.make(snapshot_id)
        except SnapshotProcessFailed as error:
            if self._store.log.start_offset > snapshot_id.end_offset:
                log.info(
                    "snapshot given up for the one installed meanwhile", end_offset=snapshot_id.end_offset
                )
            else:
                log.error("snapshot failed", end_offset=snapshot_id.end_offset, error=str(error))
            self._step(SnapshotFailed(snapshot_id))
            return
        log.info(
            "snapshot written",
            end_offset=snapshot_id.end_offset,
            epoch=snapshot_id.epoch,
            size_bytes=written.size_bytes,
            took_ms=round((trio.current_time() - started) * 1000),
        )
        self._store.snapshots.add(snapshot_id)
        self._step(written)


def _read_and_close(snapshot: SnapshotReader) -> MetadataState:
    try:
        return read_state(snapshot)
    finally:
        snapshot.close()


def _answer(token: Hashable, response: Message) -> None:
    if not isinstance(token, Slot):
        raise TypeError(f"{token!r} is no connection's token")
    token.answer(response)
