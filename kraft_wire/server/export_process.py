"""Run the exporters in a child process while this node is the active controller, or if it only observes.

The child (``kraft_wire.exporters.process``) reads the committed log from this node's own files. It gets the
high watermark over a pipe, and ends when that is closed: its controller died, or leads no more. It is told to
finish before its controller stops, and before another child is started for new orders of an operator.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import trio

from kraft_wire.configs.exporter_orders import Orders
from kraft_wire.controller.node.effects import Activated, NodeEffect
from kraft_wire.controller.node.node import NodeEvent
from kraft_wire.exporters.messages import (
    Begin,
    Committed,
    Exported,
    Failing,
    Finish,
    NoBase,
    Recovered,
    Restarted,
    Told,
    line_of,
    told_in,
)
from kraft_wire.exporters.pipes import lines_of
from kraft_wire.exporters.retries import pause_ms
from kraft_wire.exporters.settings import ExporterSettings, ordered
from kraft_wire.metrics.exporters import ExporterFigures
from kraft_wire.raft.effects import BecameLeader, HighWatermarkAdvanced, LostLeadership
from kraft_wire.raft.events import Now
from kraft_wire.server.clocks import monotonic_ms
from kraft_wire.server.exporter_positions import ExporterPositions
from kraft_wire.server.reports.exporters import ExporterReports

TELL_INTERVAL_S: Final = 0.01
"""The high watermark is told at most so often."""
FINISH_S: Final = 3.0
"""The process may need so long to finish: it waits two seconds for its sinks."""
STOP_S: Final = 2.0
"""The process is killed if it needs longer to end."""
LONGEST_FINISH_S: Final = FINISH_S + 2 * STOP_S
"""No exporter keeps its controller from stopping for longer."""
ORDERS_INTERVAL_S: Final = 1.0
"""New orders are noticed so soon."""
STEADY_S: Final = 60.0
"""A process that ends after this time is started again at once, nearly: its end isn't one of a row."""
_ERROR_BYTES: Final = 4096
"""The end of what the process writes to its standard error is kept for the log."""


OrdersOf = Callable[[], Mapping[str, Orders]]
"""Returns the orders of now, by exporter."""


class ExportProcess:
    """The exporters of one node (a ``Tap`` of the owner). ``run`` starts and stops their process."""

    def __init__(
        self,
        exporters: Sequence[ExporterSettings],
        folder: Path,
        cluster: str,
        positions: ExporterPositions,
        reports: ExporterReports,
        *,
        is_observer: bool,
    ) -> None:
        self._exporters = tuple(exporters)
        self._is_observer = is_observer
        self._folder = folder
        self._cluster = cluster
        self.figures = {exporter.name: ExporterFigures() for exporter in exporters}
        """The counts of each exporter, which metrics show."""
        self._reports = reports
        self._positions = positions
        self._high_watermark = 0
        self._epoch_start = 0
        self._is_active = False
        self._leaderships_lost = 0
        self._must_finish = False
        self._ended = trio.Event()
        self._ended.set()
        self._news = trio.Event()

    def stepped(self, event: NodeEvent, effects: Sequence[NodeEffect], now: Now) -> None:
        """Follow this node's leadership and the high watermark."""
        for effect in effects:
            match effect:
                case HighWatermarkAdvanced(offset):
                    self._high_watermark = offset
                case BecameLeader():
                    self._epoch_start = effect.epoch_start_offset
                case Activated():
                    self._is_active = True
                case LostLeadership():
                    self._is_active = False
                    self._leaderships_lost += 1
                case _:
                    continue
            self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = trio.Event()

    async def finish(self) -> None:
        """Export nothing more, and wait until what the sinks are getting is acknowledged, for a bounded time.
        This node still leads: so nobody else exports meanwhile."""
        self._must_finish = True
        self._wake()
        with trio.move_on_after(LONGEST_FINISH_S):
            await self._ended.wait()

    @property
    def _exports(self) -> bool:
        """Whether this node exports."""
        return self._may_export and not self._must_finish

    @property
    def _may_export(self) -> bool:
        """Whether nobody else exports, and this node knows of everything that was exported before: as the
        active controller, when a record of its own epoch is committed."""
        if self._is_observer:
            return self._high_watermark >= max([1, *self._positions.known.values()])
        return self._is_active and self._high_watermark > self._epoch_start

    async def run(self, orders: OrdersOf) -> None:
        """Export whenever this node leads, or always if it observes, until cancelled. Whatever happens to the
        exporters, the node goes on."""
        while True:
            await self._until(exports=True)
            failures = 0
            while self._exports:
                began_s = trio.current_time()
                self._ended = trio.Event()
                try:
                    problem = await self._export(orders)
                finally:
                    self._ended.set()
                if problem is None:
                    self._reports.stopped(is_active=self._exports)
                    break
                failures = 1 if trio.current_time() - began_s >= STEADY_S else failures + 1
                retry_ms = pause_ms(failures, random.random())
                self._reports.ended(problem, retry_ms)
                with trio.move_on_after(retry_ms / 1000):
                    await self._until(exports=False)

    async def _until(self, *, exports: bool) -> None:
        while self._exports is not exports:
            await self._news.wait()

    async def _until_over(self, orders: Mapping[str, Orders], orders_of: OrdersOf) -> None:
        """Wait until this node must not export any more, or until there are other orders."""
        while self._exports and orders_of() == orders:
            with trio.move_on_after(ORDERS_INTERVAL_S):
                await self._until(exports=False)

    async def _export(self, orders_of: OrdersOf) -> str | None:
        """Carry out the orders, then export until the process ends, this node must not any more, or there are
        other orders. Returns why the process ended; None if it was stopped."""
        orders, leaderships_lost = orders_of(), self._leaderships_lost
        for name, each in orders.items():
            if each.reset and self._positions.begin_again(name, each.reset):
                self._reports.reset(name, each.reset)
        for name, figures in self.figures.items():
            figures.is_paused = name in orders and orders[name].is_paused
        await self._positions.write()
        exporters = ordered(self._exporters, orders)
        over = partial(self._until_over, orders, orders_of)
        if exporters:
            return await self._run_process(exporters, over, leaderships_lost)
        await over()
        return None

    async def _run_process(
        self,
        exporters: Sequence[ExporterSettings],
        over: Callable[[], Awaitable[None]],
        leaderships_lost: int,
    ) -> str | None:
        """Run the process until it ends, or until it is ``over``. Returns why it ended; None if it was
        stopped."""
        command = [sys.executable, "-m", "kraft_wire.exporters", os.fspath(self._folder)]
        try:
            child = _Child(
                await trio.lowlevel.open_process(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
                ),
                leaderships_lost,
            )
        except OSError as error:
            return f"{sys.executable} can't be started: {error}"
        names = [exporter.name for exporter in exporters]
        self._reports.started(names, child.process.pid, self._high_watermark)
        for figures in self.figures.values():
            figures.recovered()
            figures.advanced(monotonic_ms())
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(child.keep_errors)
                nursery.start_soon(self._feed, child, exporters)
                nursery.start_soon(self._stop_when, over, child, nursery.cancel_scope)
                await self._listen(child)
                await child.end()
                with trio.move_on_after(STOP_S):
                    await child.errors_ended.wait()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await child.end()
                if not child.complaint:
                    with trio.move_on_after(STOP_S):
                        await self._listen(child)  # what it told last
                await child.close()
                with trio.move_on_after(STOP_S):
                    await self._positions.write()
        return None if child.is_stopped else child.problem

    async def _stop_when(
        self, over: Callable[[], Awaitable[None]], child: _Child, scope: trio.CancelScope
    ) -> None:
        """Stop the process when it is over, also if the process reads nothing. Cancel ``scope`` if somebody
        else holds its standard output then."""
        await over()
        child.is_stopped = True
        if self._may_export:
            child.must_finish = True
            self._wake()
            with trio.move_on_after(FINISH_S) as patience:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._cancel_when_deposed, patience)
                    await child.process.wait()
                    nursery.cancel_scope.cancel()
        await child.end()
        await trio.sleep(STOP_S)
        scope.cancel()

    async def _cancel_when_deposed(self, scope: trio.CancelScope) -> None:
        """Cancel ``scope`` when the next leader may export."""
        while self._may_export:
            await self._news.wait()
        scope.cancel()

    async def _feed(self, child: _Child, exporters: Sequence[ExporterSettings]) -> None:
        """Tell what is committed, and when to finish."""
        told = self._high_watermark
        begin = Begin(self._cluster, tuple(exporters), self._positions.known, told)
        await child.send(line_of(begin))
        while True:
            while self._high_watermark <= told and not child.must_finish:
                await self._news.wait()
            if child.must_finish:
                await child.send(line_of(Finish()))
                return
            told = self._high_watermark
            await child.send(line_of(Committed(told)))
            await trio.sleep(TELL_INTERVAL_S)

    async def _listen(self, child: _Child) -> None:
        """Take what the exporters tell, until their process ends."""
        async with aclosing(child.lines()) as lines:
            async for line in lines:
                try:
                    told = told_in(line)
                except msgspec.DecodeError as error:
                    child.complaint = f"its process wrote {line[:100]!r}: {error}"
                    return
                self._take(told, child)

    def _take(self, told: Told, child: _Child) -> None:
        match told:
            case Exported() if child.leaderships_lost != self._leaderships_lost:
                pass  # the next leader knows better, and may have begun again by an order
            case Exported(exporter, position):
                self._positions.note(exporter, position)
                self.figures[exporter].advanced(monotonic_ms())
            case Failing():
                self._reports.failing(told)
                self.figures[told.exporter].failed(told.failures)
            case Recovered():
                self._reports.recovered(told)
                self.figures[told.exporter].recovered()
            case NoBase():
                self._reports.no_base(told)
            case Restarted():
                self._reports.restarted(told)
                self.figures[told.exporter].restarts += 1


class _Child:
    """The process and its pipes. ``leaderships_lost`` are those of this node at its start."""

    def __init__(self, process: trio.Process, leaderships_lost: int) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.leaderships_lost = leaderships_lost
        self.complaint = ""
        self.is_stopped = False
        self.must_finish = False
        self.errors_ended = trio.Event()
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._stderr = process.stderr
        self._errors = b""

    @property
    def problem(self) -> str:
        """Why the process ended: what it wrote to its standard error, or its exit status."""
        words = self._errors.decode(errors="replace").strip()
        return self.complaint or words or f"the process ended with status {self.process.returncode}"

    async def send(self, line: bytes) -> None:
        """Write a line. A process that reads no more is about to end."""
        try:
            await self._stdin.send_all(line)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            await trio.sleep_forever()  # until the reader of its standard output notices, too

    def lines(self) -> AsyncGenerator[bytes, None]:
        """Yield the lines of its standard output."""
        return lines_of(self._stdout)

    async def keep_errors(self) -> None:
        """Read its standard error until it ends."""
        async for data in self._stderr:
            self._errors = (self._errors + data)[-_ERROR_BYTES:]
        self.errors_ended.set()

    async def end(self) -> None:
        """Close its standard input, and kill it if it doesn't end soon."""
        await self._stdin.aclose()
        with trio.move_on_after(STOP_S):
            await self.process.wait()
            return
        self.process.kill()
        with trio.move_on_after(STOP_S):
            await self.process.wait()

    async def close(self) -> None:
        """Close what is left of its pipes."""
        await self._stdout.aclose()
        await self._stderr.aclose()
