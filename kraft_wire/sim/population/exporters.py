"""Simulate exporters: the leader sends committed records to a sink, and followers ask it for the position.

What an exporter does next is decided by the product's own ``Cursor``. The sink is out of reach now and then,
and its answers get lost.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kraft_wire.exporters.cursor import (
    Cursor,
    LogView,
    Look,
    Open,
    ReadLog,
    ReadSnapshot,
    Send,
    Wait,
)
from kraft_wire.exporters.positions import wanted_from
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.own_messages.resync import Resync
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.events import KeepRecords
from kraft_wire.sim.checkers.exporters import ExportedIsCommitted
from kraft_wire.sim.machines.node import SimNode
from kraft_wire.sim.network.links import Links
from kraft_wire.sim.scheduler import MS, Scheduler

EXPORTER: Final = "audit"
FIRST_OFFSET: Final = 0
TICK_US: Final = 50 * MS
INTERVAL_US: Final = 1_000 * MS
"""Positions are asked for, and written, so often."""
MOST_BATCHES: Final = 20
LONGEST_SENDING_US: Final = 200 * MS


class Shipment(msgspec.Struct, frozen=True):
    """What is sent together: batches of the log, or the state up to ``snapshot_end``."""

    resync: Resync | None
    batches: Sequence[AppendBatch]
    snapshot_end: int | None = None


class Sink:
    """The place that all exporters send to. Everything below ``end_offset`` is there."""

    def __init__(self, scheduler: Scheduler, chance: random.Random, rules: ExportedIsCommitted) -> None:
        self.end_offset = 0
        self.rules = rules
        self.is_calm = False
        self._scheduler = scheduler
        self._chance = chance
        self._away_until_us = 0

    def start(self) -> None:
        self._scheduler.after(1 + self._chance.randrange(20_000 * MS), self._go_away)

    def _go_away(self) -> None:
        self._away_until_us = self._scheduler.now_us + self._chance.choice((100, 2_000, 20_000)) * MS
        self.start()

    @property
    def is_away(self) -> bool:
        return not self.is_calm and self._scheduler.now_us < self._away_until_us

    def take(self, node: SimNode, shipment: Shipment) -> bool:
        """Store what a node sends. Returns False if it can't be reached."""
        if self.is_away:
            return False
        if shipment.resync is not None:
            self.rules.check_resync(node, shipment.resync, self.end_offset)
            self.end_offset = max(self.end_offset, shipment.resync.to)
        for batch in shipment.batches:
            self.rules.check_batch(node, batch, self.end_offset)
            self.end_offset = max(self.end_offset, batch.last_offset + 1)
        if shipment.snapshot_end is not None:
            self.rules.check_state(node, shipment.snapshot_end, self.end_offset)
        return True


class Exporters:
    """The exporters of all nodes, and their sink."""

    def __init__(
        self,
        scheduler: Scheduler,
        links: Links,
        nodes: Mapping[int, SimNode],
        chance: random.Random,
        rules: ExportedIsCommitted,
    ) -> None:
        self.sink = Sink(scheduler, chance, rules)
        exporters: dict[int, NodeExporter] = {}
        for id, node in nodes.items():
            exporters[id] = NodeExporter(scheduler, links, node, exporters, self.sink, chance)
        self._exporters = exporters

    def start(self) -> None:
        self.sink.start()
        for exporter in self._exporters.values():
            exporter.start()

    def calm(self) -> None:
        """Let the sink answer from now on."""
        self.sink.is_calm = True


class NodeExporter:
    """The exporter of one node. Its process ends when the node leads no more, and with the controller."""

    def __init__(
        self,
        scheduler: Scheduler,
        links: Links,
        node: SimNode,
        others: Mapping[int, NodeExporter],
        sink: Sink,
        chance: random.Random,
    ) -> None:
        self._scheduler = scheduler
        self._links = links
        self._node = node
        self._others = others
        self._sink = sink
        self._chance = chance
        self._on_disk: dict[str, int] = {}
        self._known: dict[str, int] = {}
        self._told: int | None = None
        self._life = -1
        self._run = 0
        self._cursor: Cursor | None = None
        self._shipment: Shipment | None = None
        self._is_sending = False

    def start(self) -> None:
        self._scheduler.after(self._chance.randrange(TICK_US), self._tick)
        self._scheduler.after(self._chance.randrange(INTERVAL_US), self._keep)

    @property
    def _leads(self) -> bool:
        """Whether the node leads, and knows of everything that former leaders committed."""
        leading = self._node.leading
        return leading is not None and self._node.high_watermark > leading[1]

    @property
    def _now_ms(self) -> int:
        return self._scheduler.now_us // MS

    def _notice_restart(self) -> None:
        if self._node.life != self._life:
            self._life, self._told = self._node.life, None
            self._known = dict(self._on_disk)
            self._end()

    def _end(self) -> None:
        self._cursor, self._shipment, self._is_sending = None, None, False
        self._run += 1

    # Positions.

    def _keep(self) -> None:
        """Write the position, tell raft of it, and ask the leader for its own."""
        self._scheduler.after(INTERVAL_US, self._keep)
        self._notice_restart()
        node = self._node
        if not node.is_up:
            return
        self._on_disk = dict(self._known)
        wanted = wanted_from(self._known, {EXPORTER: FIRST_OFFSET})
        if wanted is not None and wanted != self._told:
            self._told = wanted
            node.take(KeepRecords(wanted))
        leader = self._others.get(node.raft.leader_id if node.raft.leader_id is not None else -1)
        if leader is not None and leader is not self:
            self._links.carry((node.id, leader._node.id), 0, leader._answer, self, self._life)

    def _answer(self, asking: NodeExporter, life: int) -> None:
        if self._node.is_up and self._node.leading is not None and self._known:
            pair = (self._node.id, asking._node.id)
            self._links.carry(pair, 0, asking._learn, life, self._known[EXPORTER])

    def _learn(self, life: int, position: int) -> None:
        if life == self._node.life and self._node.leading is None:
            self._note(position)

    def _note(self, position: int) -> None:
        self._sink.rules.check_position(self._node, position, self._sink.end_offset)
        self._known[EXPORTER] = position

    # Steps.

    def _tick(self) -> None:
        self._scheduler.after(TICK_US, self._tick)
        self._notice_restart()
        if not self._node.is_up or not self._leads:
            if self._cursor is not None:
                self._end()
            return
        if self._cursor is None:
            self._cursor = Cursor(FIRST_OFFSET, self._known.get(EXPORTER), self._node.high_watermark)
        self._cursor.advanced(self._node.high_watermark)
        while not self._is_sending and self._take_step(self._cursor):
            pass

    def _take_step(self, cursor: Cursor) -> bool:
        """Take the cursor's next step. Returns whether another one may follow at once."""
        match cursor.next_step(self._now_ms):
            case Wait():
                return False
            case Look():
                self._look(cursor)
            case ReadLog(offset, end_offset):
                return self._read_log(cursor, offset, end_offset)
            case ReadSnapshot(snapshot_id):
                self._read_snapshot(cursor, snapshot_id)
            case Open():
                if self._sink.is_away:
                    cursor.failed(self._now_ms, self._chance.random())
                else:
                    cursor.opened()
            case Send():
                self._send()
        return True

    def _look(self, cursor: Cursor) -> None:
        disk = self._node.disk
        ids = [id for id in disk.snapshots if id.end_offset]
        newest = max(ids, key=lambda id: id.end_offset, default=None)
        restart = cursor.looked(LogView(disk.start_offset, newest))
        if restart is not None:
            self._sink.rules.check_restart(self._node, restart.position)

    def _read_log(self, cursor: Cursor, offset: int, end_offset: int) -> bool:
        disk = self._node.disk
        if offset < disk.start_offset:
            cursor.must_look()
            return True
        batches = disk.batches_between(offset, end_offset)[:MOST_BATCHES]
        if not batches:
            return False
        next_offset = batches[-1].last_offset + 1
        self._shipment = Shipment(cursor.resync, batches)
        is_backlog = next_offset < end_offset
        cursor.has_read(next_offset, self._now_ms, has_records=True, is_backlog=is_backlog)
        return True

    def _read_snapshot(self, cursor: Cursor, snapshot_id: SnapshotId) -> None:
        if snapshot_id not in self._node.disk.snapshots:
            cursor.must_look()
            return
        self._shipment = Shipment(cursor.resync, (), snapshot_id.end_offset)
        cursor.has_read(snapshot_id.end_offset, self._now_ms, has_records=True, is_backlog=True)

    # Sending.

    def _send(self) -> None:
        self._is_sending = True
        delay_us = 1 + self._chance.randrange(LONGEST_SENDING_US)
        assert self._shipment is not None, "the cursor sends what was read"
        self._scheduler.after(delay_us, self._arrive, self._run, self._life, self._shipment)

    def _arrive(self, run: int, life: int, shipment: Shipment) -> None:
        """Let the sink take a shipment, also if its sender has ended meanwhile. The answer may get lost."""
        is_taken = self._sink.take(self._node, shipment)
        is_heard = self._sink.is_calm or self._chance.random() < 0.95
        delay_us = 1 + self._chance.randrange(LONGEST_SENDING_US)
        self._scheduler.after(delay_us, self._answered, run, life, is_taken and is_heard)

    def _answered(self, run: int, life: int, is_acknowledged: bool) -> None:
        if run != self._run or life != self._node.life or self._cursor is None:
            return
        self._is_sending = False
        if not is_acknowledged:
            self._cursor.failed(self._now_ms, self._chance.random())
            return
        self._cursor.sent()
        if self._cursor.position is not None:
            self._note(self._cursor.position)
