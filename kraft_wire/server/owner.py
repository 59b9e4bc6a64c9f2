"""Own the node: feed it events, execute its effects, keep its time.

Everything runs on one thread, except slow work, which runs beside the event loop and comes back as events
(see ``kraft_wire.server.ports``).
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol

import trio

from kraft_wire.controller.node.effects import Activated, NodeEffect, NodeNotice
from kraft_wire.controller.node.events import ApiRequest
from kraft_wire.controller.node.executor import execute_all
from kraft_wire.controller.node.node import Node, NodeEvent
from kraft_wire.protocol.message import Message
from kraft_wire.raft.effects import ReadyToStop, RoleChanged, VotersChanged
from kraft_wire.raft.events import (
    Failure,
    KeepRecords,
    Now,
    RequestAbandoned,
    RequestFailed,
    ResponseReceived,
    ShutDown,
    Start,
    Tick,
)
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.raft.roles import Role
from kraft_wire.server.clocks import read_clocks
from kraft_wire.server.log_levels import set_log_levels
from kraft_wire.server.network.peers import Peers
from kraft_wire.server.ports.background import Background
from kraft_wire.server.ports.log_files import LogFiles
from kraft_wire.server.ports.snapshot_files import SnapshotFiles
from kraft_wire.server.reports.step_times import StepTimes
from kraft_wire.server.snapshot_process import SnapshotProcess
from kraft_wire.storage.store import Store
from kraft_wire.wire.address import Address
from kraft_wire.wire.dialect import Dialect
from kraft_wire.wire.server_side import Slot, answer_alike

STOP_SECONDS = 5.0


class Tap(Protocol):
    """A listener to the node's steps: logs, watches and metrics are taps."""

    def stepped(self, event: NodeEvent, effects: Sequence[NodeEffect], now: Now) -> None:
        """Take note of an event and of its effects, which are executed."""


class NodeOwner:
    """The owner of a node and of its folder (``NodePorts``). Connections call ``submit`` and ``abandon``;
    ``run`` keeps everything going. ``settled`` is set when the node is the active controller or follows one
    for the first time.
    """

    def __init__(
        self,
        node: Node,
        store: Store,
        process: SnapshotProcess,
        taps: Sequence[Tap],
        *,
        client_id: str,
        unreachable: Callable[[Address, str], None],
        dialect: Dialect | None = None,
    ) -> None:
        self._node = node
        self._taps = taps
        self.step_times = StepTimes()
        self._background = Background()
        self.log = LogFiles(store, self._step, self._background, lambda: node.core.log_generation)
        self.snapshots = SnapshotFiles(store, process, self._step, self._background, self.log.stop_reading)
        self.election = store
        self.peers = Peers(
            self._answered,
            self._failed_to_ask,
            client_id=client_id,
            unreachable=unreachable,
            dialect=dialect,
        )
        self.settled = trio.Event()
        self._events: deque[NodeEvent] = deque()
        self._deadline_moved = trio.Event()
        self._armed_deadline_ms: int | None = None
        self._ready_to_stop = trio.Event()
        self._failure: Exception | None = None
        self._failed = trio.Event()

    async def run(self) -> None:
        """Start the node and keep it going until cancelled. A failed write or flush, or a broken invariant,
        ends it with that error: nothing may be acknowledged after it.
        """
        async with trio.open_nursery() as nursery:
            self._background.open(nursery)
            nursery.start_soon(self.log.keep_flushing)
            nursery.start_soon(self._keep_time)
            nursery.start_soon(self._end_on_failure)
            nursery.start_soon(self.peers.run)
            nursery.start_soon(self.step_times.report_regularly)
            self._step(Start())

    async def stop(self) -> None:
        """Hand over leadership, if there is anybody to hand over to. What was appended is committed first."""
        self._step(ShutDown())
        with trio.move_on_after(STOP_SECONDS):
            await self._ready_to_stop.wait()
        self.step_times.report()

    # Events.

    def submit(self, request: ApiRequest) -> None:
        """Serve a request that a connection received."""
        self._step(request)

    def keep_records(self, from_offset: int) -> None:
        """Keep the records from an offset on, as far as the limits for them allow."""
        self._step(KeepRecords(from_offset))

    def abandon(self, slot: Slot) -> None:
        """Forget a request: its connection was closed before the response."""
        self._step(RequestAbandoned(slot))

    def _answered(self, request_id: int, response: Message) -> None:
        self._step(ResponseReceived(request_id, response))

    def _failed_to_ask(self, request_id: int, failure: Failure) -> None:
        self._step(RequestFailed(request_id, failure))

    def _step(self, event: NodeEvent) -> None:
        """Feed the node. Events that its effects cause at once are fed after all effects are executed.

        After an error nothing is fed any more and ``run`` ends, even if the caller that brought the event,
        such as a connection, catches the error.
        """
        if self._failure is not None:
            return
        self._events.append(event)
        if len(self._events) > 1:
            return
        try:
            while self._events:
                self._take_step(self._events[0])
                self._events.popleft()
            self.log.flush_appended()
        except Exception as error:
            self._failure = error
            self._failed.set()
            raise
        if self._node.next_deadline_ms() != self._armed_deadline_ms:
            self._deadline_moved.set()

    def _take_step(self, event: NodeEvent) -> None:
        began_s = time.perf_counter()
        now = read_clocks()
        effects = self._node.step(event, now)
        try:
            execute_all(effects, self)
        finally:  # if an effect fails, the log lines of its step tell what led to it
            for tap in self._taps:
                tap.stepped(event, effects, now)
            took_ms = (time.perf_counter() - began_s) * 1000
            self._node.note_time(took_ms)
            self.step_times.note(event, effects, took_ms)

    async def _end_on_failure(self) -> None:
        await self._failed.wait()
        assert self._failure is not None, "set before the event"
        raise self._failure

    async def _keep_time(self) -> None:
        while True:
            self._deadline_moved = trio.Event()
            deadline_ms = self._armed_deadline_ms = self._node.next_deadline_ms()
            until = math.inf if deadline_ms is None else deadline_ms / 1000
            with trio.move_on_at(until):
                await self._deadline_moved.wait()
                continue
            self._step(Tick())

    def known_peers(self) -> list[Peer]:
        """Return the nodes that stay connected: the other voters, the bootstrap servers and the leader."""
        core = self._node.core
        leader = core.leader_peer
        return core.known_peers if leader is None else [*core.known_peers, leader]

    # Effects that neither files nor peers execute.

    def reply(self, token: Hashable, response: Message) -> None:
        _slot(token).answer(response)

    def reply_alike(self, tokens: Sequence[Hashable], response: Message) -> None:
        answer_alike(map(_slot, tokens), response)

    def set_log_levels(self, levels: Mapping[str, str | None]) -> None:
        set_log_levels(levels)

    def notice(self, notice: NodeNotice) -> None:
        match notice:
            case RoleChanged(role):
                self.peers.know(self.known_peers())
                for peer in self._node.core.other_voters:
                    self.peers.warm(peer)
                if role is Role.FOLLOWER:
                    self.settled.set()
            case VotersChanged():
                self.peers.know(self.known_peers())
                for peer in self._node.core.other_voters:
                    self.peers.warm(peer)
            case Activated():
                self.settled.set()
            case ReadyToStop():
                self._ready_to_stop.set()
            case _:
                pass  # taps report the rest


def _slot(token: Hashable) -> Slot:
    if not isinstance(token, Slot):
        raise TypeError(f"{token!r} is no connection's token")
    return token
