"""Run one exporter: take the steps that its ``Cursor`` decides on, and try again for ever."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from traceback import format_exception
from typing import Final

import trio

from kraft_wire.exporters.cursor import PACE_MS, Cursor, Look, Open, ReadLog, ReadSnapshot, Send, Step, Wait
from kraft_wire.exporters.messages import Begin, Exported, Failing, NoBase, Recovered, Restarted, Told
from kraft_wire.exporters.reading import FolderReader, NotThere, Selection
from kraft_wire.exporters.records import ExportBatch, ExportRecord, resync_record
from kraft_wire.exporters.resync.bases import BaseNotKept
from kraft_wire.exporters.settings import ExporterSettings
from kraft_wire.exporters.sinks import Sink, SinkFailed
from kraft_wire.log.errors import LogError

HANGS_MS: Final = 30_000
"""A step that takes so long is reported."""
BASE_INTERVAL_S: Final = 10.0
"""It is looked so often whether the state has to be kept."""
IDLE_POSITION_MS: Final = 10_000
"""A position that only skips unwanted records is told so often: each is a write of the controller's."""
_EXPECTED: Final = (SinkFailed, OSError, LogError)


class Exporting:
    """One exporter of the process. ``tell`` gets what the controller should know; ``jitter`` returns a random
    number in [0, 1)."""

    def __init__(
        self,
        settings: ExporterSettings,
        begin: Begin,
        reader: FolderReader,
        sink: Sink,
        tell: Callable[[Told], None],
        jitter: Callable[[], float],
        pace_ms: int = PACE_MS,
    ) -> None:
        self.name = settings.name
        self._cluster = begin.cluster
        self._cursor = Cursor(
            settings.start, begin.positions.get(settings.name), begin.high_watermark, pace_ms
        )
        self._reader = reader
        self._sink = sink
        self._tell = tell
        self._jitter = jitter
        self._batch: ExportBatch | None = None
        self._must_close = False
        self._told_position = self._cursor.position
        self._told_ms = _now_ms()
        self._busy_since_ms: int | None = None
        self._has_hung = False
        self._must_finish = False
        self._news = trio.Event()

    def advance(self, high_watermark: int) -> None:
        """Take note that everything below this offset is committed."""
        self._cursor.advanced(high_watermark)
        self._news.set()

    def finish(self) -> None:
        """Let ``run`` end after the step that it takes now: what a sink gets is acknowledged before that."""
        self._must_finish = True
        self._news.set()

    def complain(self) -> None:
        """Report a step that hangs, once."""
        if self._busy_since_ms is not None and _now_ms() - self._busy_since_ms >= HANGS_MS:
            self._busy_since_ms, self._has_hung = None, True
            problem = f"no answer for {HANGS_MS / 1000:g} s; still waiting"
            self._tell(Failing(self.name, problem, self._cursor.failures, None))

    async def run(self) -> None:
        """Export until ``finish`` is called."""
        while not self._must_finish:
            step = self._cursor.next_step(_now_ms())
            if isinstance(step, Wait):
                await self._wait(step)
                continue
            self._busy_since_ms = _now_ms()
            try:
                await self._take(step)
            except NotThere:
                self._cursor.must_look()
            except Exception as error:  # noqa: BLE001 - whatever a sink does, only its own exporter waits
                self._failed(step, error)
            self._busy_since_ms = None

    async def keep_base(self) -> None:
        """Keep the state that the sink has while the log may be deleted that leads on from it, until
        cancelled. That of a sink which goes on would soon be of no use."""
        base = self._reader.base
        if base is None:
            return
        before: int | None = None
        failed: int | None = None
        while True:
            await trio.sleep(BASE_INTERVAL_S)
            wanted = before
            try:
                view = await trio.to_thread.run_sync(self._reader.look, abandon_on_cancel=True)
                wanted = self._cursor.state_to_keep(view)
                if wanted == before and (wanted is None or wanted != failed):
                    await base.keep(wanted)
            except (BaseNotKept, OSError) as error:
                failed = wanted
                self._tell(NoBase(self.name, str(error)))
            before = wanted

    async def _wait(self, step: Wait) -> None:
        until_s = math.inf if step.until_ms is None else (step.until_ms - _now_ms()) / 1000
        self._news = trio.Event()
        with trio.move_on_after(max(0.0, until_s)):
            await self._news.wait()

    async def _take(self, step: Step) -> None:
        match step:
            case Look():
                view = await trio.to_thread.run_sync(self._reader.look, abandon_on_cancel=True)
                restart = self._cursor.looked(view)
                if restart is not None:
                    self._tell(Restarted(self.name, *restart))
                self._tell_position()
            case ReadLog(offset, end_offset):
                self._has_read(
                    await trio.to_thread.run_sync(
                        self._reader.read_log, offset, end_offset, abandon_on_cancel=True
                    )
                )
            case ReadSnapshot(snapshot_id, base):
                read = self._reader.read_snapshot if base is None else self._reader.read_difference
                self._has_read(await trio.to_thread.run_sync(read, snapshot_id, abandon_on_cancel=True))
            case Open():
                if self._must_close:
                    await self._sink.close()
                    self._must_close = False
                await self._sink.open()
                self._cursor.opened()
            case Send():
                await self._send()

    def _has_read(self, found: Selection) -> None:
        records = self._after_resync(found.records)
        self._batch = ExportBatch(self._cluster, records, found.ends_snapshot) if records else None
        self._cursor.has_read(
            found.next_offset,
            _now_ms(),
            has_records=self._batch is not None,
            is_backlog=found.is_backlog,
        )
        if self._batch is None and _now_ms() - self._told_ms >= IDLE_POSITION_MS:
            self._tell_position()

    def _after_resync(self, records: Sequence[ExportRecord]) -> Sequence[ExportRecord]:
        resync = self._cursor.resync
        if resync is None:
            return records
        return [resync_record(resync, time.time_ns() // 1_000_000), *records]

    async def _send(self) -> None:
        assert self._batch is not None, "the cursor sends what was read"
        await self._sink.export(self._batch)
        self._batch = None
        failures = self._cursor.failures
        self._cursor.sent()
        self._tell_position()
        if failures or self._has_hung:
            self._has_hung = False
            self._tell(Recovered(self.name, failures))

    def _failed(self, step: Step, error: Exception) -> None:
        self._must_close = True
        if isinstance(step, ReadLog | ReadSnapshot):
            self._cursor.must_look()
        retry_ms = self._cursor.failed(_now_ms(), self._jitter())
        is_expected = isinstance(error, _EXPECTED)
        problem = str(error) if is_expected else repr(error)
        traceback = "" if is_expected else "".join(format_exception(error))
        self._tell(Failing(self.name, problem, self._cursor.failures, retry_ms, traceback))

    def _tell_position(self) -> None:
        position = self._cursor.position
        if position is not None and position != self._told_position:
            self._told_position, self._told_ms = position, _now_ms()
            self._tell(Exported(self.name, position))


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
