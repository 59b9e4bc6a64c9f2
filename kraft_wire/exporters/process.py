"""Run all exporters of a controller: ``python -m kraft_wire.exporters FOLDER``.

The first line of standard input is a ``Begin``, each further one a ``Line``; standard output has what is
``Told`` (``messages.py``). The process ends when it was told to finish, or when its standard input, which the
controller holds open, is closed.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import AsyncIterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

import msgspec
import trio

from kraft_wire.exporters.cursor import PACE_MS
from kraft_wire.exporters.exporting import Exporting
from kraft_wire.exporters.filters import Filter
from kraft_wire.exporters.installed import kind_of
from kraft_wire.exporters.messages import Begin, Committed, Finish, Line, Told, line_of
from kraft_wire.exporters.pipes import lines_of
from kraft_wire.exporters.reading import FolderReader
from kraft_wire.exporters.resync.bases import Base, forget_bases
from kraft_wire.exporters.settings import ExporterSettings
from kraft_wire.exporters.sinks import Sink

BELOW_THE_CONTROLLER: Final = 10
"""The niceness of the process: the controllers on this machine come first."""
LOOK_S: Final = 1.0
FINISH_S: Final = 2.0
"""An exporter that must finish waits for its sink for so long. Then its records come twice."""
LAST_WORDS_S: Final = 0.5
"""The time for telling what was acknowledged last."""


def main(arguments: Sequence[str]) -> None:
    """Run the process."""
    (folder,) = arguments
    os.nice(BELOW_THE_CONTROLLER)
    # A terminal, or a service manager, sends them to all processes. The controller ends this one.
    for each in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    trio.run(run, Path(folder), trio.lowlevel.FdStream(os.dup(0)), trio.lowlevel.FdStream(os.dup(1)))


async def run(folder: Path, receiving: trio.abc.ReceiveStream, sending: trio.abc.SendStream) -> None:
    """Export until nobody holds the other end of ``receiving`` or of ``sending`` any more."""
    lines = lines_of(receiving)
    async for line in lines:
        begin = msgspec.json.decode(line, type=Begin)
        break
    else:
        return
    forget_bases(folder)
    outbox = _Outbox(sending)
    exporters = [_exporting(settings, begin, folder, outbox) for settings in begin.exporters]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outbox.run, nursery.cancel_scope)
        await _export(exporters, lines)
        outbox.close()
        nursery.cancel_scope.deadline = trio.current_time() + LAST_WORDS_S


async def _export(exporters: Sequence[Exporting], lines: AsyncIterator[bytes]) -> None:
    """Export until all exporters have finished, or the lines end."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_follow, lines, exporters, nursery.cancel_scope)
        nursery.start_soon(_complain, exporters)
        for exporter in exporters:
            nursery.start_soon(exporter.keep_base)
        async with trio.open_nursery() as running:
            for exporter in exporters:
                running.start_soon(exporter.run)
        nursery.cancel_scope.cancel()


async def _follow(
    lines: AsyncIterator[bytes], exporters: Sequence[Exporting], scope: trio.CancelScope
) -> None:
    """Do what the lines say. Cancel ``scope`` when they end, or when finishing takes too long."""
    async for line in lines:
        found: Line = msgspec.json.decode(line, type=Line)
        match found:
            case Committed(high_watermark):
                for exporter in exporters:
                    exporter.advance(high_watermark)
            case Finish():
                scope.deadline = trio.current_time() + FINISH_S
                for exporter in exporters:
                    exporter.finish()
    scope.cancel()


def _exporting(settings: ExporterSettings, begin: Begin, folder: Path, outbox: _Outbox) -> Exporting:
    kind = kind_of(settings.kind)
    reader = FolderReader(
        folder,
        Filter(settings.filter),
        with_changes=settings.changes,
        read_bytes=kind.batch_bytes,
        base=None if kind.takes_all else Base(folder, settings.name),
    )
    sink: Sink = import_module(kind.module).make_sink(settings)
    pace_ms = settings.options.get(kind.pace_key, PACE_MS)
    assert isinstance(pace_ms, int), "the key of a pace is a number"
    return Exporting(settings, begin, reader, sink, outbox.put, random.random, pace_ms)


async def _complain(exporters: Sequence[Exporting]) -> None:
    while True:
        await trio.sleep(LOOK_S)
        for exporter in exporters:
            exporter.complain()


class _Outbox:
    """Messages on their way to the controller. Of those of one kind about one exporter only the last is kept
    until it is sent."""

    def __init__(self, stream: trio.abc.SendStream) -> None:
        self._stream = stream
        self._waiting: dict[tuple[type[Told], str], Told] = {}
        self._news = trio.Event()
        self._is_closed = False

    def put(self, message: Told) -> None:
        key = type(message), message.exporter
        self._waiting.pop(key, None)
        self._waiting[key] = message
        self._news.set()

    def close(self) -> None:
        """Let ``run`` end when all is sent."""
        self._is_closed = True
        self._news.set()

    async def run(self, scope: trio.CancelScope) -> None:
        """Send until it is closed; cancel ``scope`` if nobody reads any more."""
        try:
            while self._waiting or not self._is_closed:
                await self._news.wait()
                self._news = trio.Event()
                waiting, self._waiting = self._waiting, {}
                await self._stream.send_all(b"".join(map(line_of, waiting.values())))
        except trio.BrokenResourceError:
            scope.cancel()
