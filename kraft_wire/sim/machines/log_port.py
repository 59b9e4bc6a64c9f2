"""Execute effects on a simulated log: flushes take time, may fail, and the power may fail during one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.events import Flushed, LogTrimmed, LogTruncated
from kraft_wire.sim.checkers.violations import Violation
from kraft_wire.sim.machines.disk import FlushMark
from kraft_wire.sim.machines.world import NextFlush

if TYPE_CHECKING:
    from kraft_wire.sim.machines.node import SimNode


class SimLog:
    """The log of one node, on the node's disk (``LogPort``)."""

    def __init__(self, node: SimNode) -> None:
        self._node = node
        self._is_flushing = False

    def reset(self) -> None:
        """Forget the flush that the former process had in flight."""
        self._is_flushing = False

    def append(self, appends: Sequence[AppendBatch]) -> None:
        node = self._node
        for append in appends:
            node.disk.append(append)
            for check in node.world.checkers.appended:
                check(node, append)
        if not self._is_flushing:
            self._is_flushing = True
            # What is appended in the same step is covered too: the flush begins when the step is over.
            node.after(0, node.when_free, self._begin_flush)

    def read(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        return self._node.disk.read(offset, end_offset, max_bytes)

    def _begin_flush(self) -> None:
        node = self._node
        scheduler = node.world.scheduler
        speed = node.speed
        share = node.chance.random()
        took_us = speed.min_us + int(share * share * (speed.max_us - speed.min_us))
        at_us = max(scheduler.now_us + took_us, node.disk_stalled_until_us)
        wanted = node.flush_to_die_in
        if wanted is not None and wanted.is_due(scheduler.now_us):
            at_us += wanted.stall_us
            node.at(node.chance.randrange(scheduler.now_us, at_us), self._fail_power, wanted)
        node.at(at_us, self._end_flush, node.disk.flush_mark(), node.raft.log_generation)

    def _fail_power(self, wanted: NextFlush) -> None:
        # The faults may have ended meanwhile.
        node = self._node
        if node.flush_to_die_in is wanted:
            node.lose_power(node.chance)
            wanted.then(node)

    def _end_flush(self, mark: FlushMark, generation: int) -> None:
        node = self._node
        if node.next_flush_fails:
            node.disk.lose_unflushed()
            node.kill()
            return
        node.disk.flushed(mark)
        node.when_free(self._flush_on)
        node.take(Flushed(mark.end_offset, generation))

    def _flush_on(self) -> None:
        node = self._node
        self._is_flushing = node.disk.flushed_offset < node.disk.end_offset
        if self._is_flushing:
            node.after(0, node.when_free, self._begin_flush)

    def truncate(self, end_offset: int) -> None:
        node, disk = self._node, self._node.disk
        if node.flush_to_die_in is not None:
            node.flush_to_die_in = msgspec.structs.replace(node.flush_to_die_in, is_after_truncation=False)
        old_bytes = disk.size_bytes
        removed = disk.truncate(end_offset)
        for check in node.world.checkers.truncated:
            check(node, removed, end_offset)
        if disk.batches and disk.batches[-1].last_offset >= end_offset:
            raise Violation("WholeBatches", f"node {node.id}: {end_offset} is within a batch")
        node.after(0, node.take, LogTruncated(end_offset, old_bytes - disk.size_bytes))

    def trim(self, start_offset: int) -> None:
        node = self._node
        deleted_bytes = node.disk.trim(start_offset)
        node.check_log_start()
        node.after(0, node.take, LogTrimmed(deleted_bytes))

    def note_committed(self, offset: int) -> None:
        self._node.advance(offset)

    def forget_loss(self) -> None:
        self._node.disk.forget_loss()
