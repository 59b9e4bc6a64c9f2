"""One exporter's task: a sink that hangs, one that is slow, and one with a bug."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from kraft_wire.exporters.exporting import Exporting
from kraft_wire.exporters.filters import Filter
from kraft_wire.exporters.messages import Begin, Exported, Failing, Recovered, Told
from kraft_wire.exporters.reading import FolderReader
from kraft_wire.exporters.records import ExportBatch
from kraft_wire.exporters.settings import ExporterSettings, read_exporters
from kraft_wire.exporters.sinks import Sink
from kraft_wire.exporters.sinks.jsonl import make_sink
from tests.support.metadata_logs import LogWriter

GIVE_UP_S = 30.0
HANGS_MS = "kraft_wire.exporters.exporting.HANGS_MS"


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LogWriter]:
    found = LogWriter(tmp_path / "data")
    yield found
    found.close()


def _settings(folder: Path) -> ExporterSettings:
    prefix = "kraft.wire.exporter.audit."
    keys = {f"{prefix}type": "jsonl", f"{prefix}path": str(folder), f"{prefix}start": "0"}
    return read_exporters(["audit"], keys).exporters[0]


def _exporting(writer: LogWriter, settings: ExporterSettings, sink: Sink, told: list[Told]) -> Exporting:
    begin = Begin("one", (settings,), {}, writer.end_offset)
    reader = FolderReader(writer.partition, Filter(settings.filter))
    return Exporting(settings, begin, reader, sink, told.append, lambda: 0.0)


async def test_an_attempt_that_hangs_is_told_once_and_so_is_its_end(
    writer: LogWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "audit"
    folder.mkdir()
    pipe = folder / "audit-00000000000000000000.jsonl"
    os.mkfifo(pipe)
    told: list[Told] = []
    settings = _settings(folder)
    exporting = _exporting(writer, settings, make_sink(settings), told)
    monkeypatch.setattr(HANGS_MS, 200)
    with trio.fail_after(GIVE_UP_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exporting.run)
            while not told:
                exporting.complain()
                await trio.sleep(0.01)
            exporting.complain()
            assert told == [Failing("audit", "no answer for 0.2 s; still waiting", 0, None)]
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            while len(told) < 3:
                await trio.sleep(0.01)
            assert told[1:] == [Exported("audit", 1), Recovered("audit", 0)]
            os.close(reader)
            nursery.cancel_scope.cancel()


class _Slow:
    """A sink that takes its batches when the test lets it."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = trio.Event(), trio.Event()

    async def open(self) -> None:
        pass

    async def export(self, batch: ExportBatch) -> None:
        self.has_begun.set()
        await self.may_end.wait()

    async def close(self) -> None:
        pass


async def test_an_exporter_that_must_finish_waits_for_its_sink_and_sends_nothing_more(
    writer: LogWriter, tmp_path: Path
) -> None:
    writer.append(3)
    sink, told = _Slow(), list[Told]()
    exporting = _exporting(writer, _settings(tmp_path), sink, told)
    with trio.fail_after(GIVE_UP_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exporting.run)
            await sink.has_begun.wait()
            writer.append(3)
            exporting.advance(writer.end_offset)
            exporting.finish()
            sink.may_end.set()
    assert told == [Exported("audit", 4)]


async def test_an_exporter_that_waits_for_records_finishes_at_once(writer: LogWriter, tmp_path: Path) -> None:
    told: list[Told] = []
    settings = _settings(tmp_path)
    exporting = _exporting(writer, settings, make_sink(settings), told)
    with trio.fail_after(GIVE_UP_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exporting.run)
            while not told:
                await trio.sleep(0.01)
            exporting.finish()


class _WithBug:
    """A sink whose first two attempts fail in a way that nobody expected."""

    def __init__(self) -> None:
        self.batches: list[ExportBatch] = []
        self.calls: list[str] = []

    async def open(self) -> None:
        self.calls.append("open")

    async def export(self, batch: ExportBatch) -> None:
        self.calls.append("export")
        if self.calls.count("export") < 3:
            raise ZeroDivisionError("a bug")
        self.batches.append(batch)

    async def close(self) -> None:
        self.calls.append("close")


async def test_a_bug_of_a_sink_is_told_with_its_traceback_and_tried_again(
    writer: LogWriter, tmp_path: Path
) -> None:
    writer.append(3)
    sink = _WithBug()
    told: list[Told] = []
    exporting = _exporting(writer, _settings(tmp_path), sink, told)
    with trio.fail_after(GIVE_UP_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exporting.run)
            while len(told) < 4:
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
    failing = [each for each in told if isinstance(each, Failing)]
    assert [(each.problem, each.failures) for each in failing] == [
        ("ZeroDivisionError('a bug')", 1),
        ("ZeroDivisionError('a bug')", 2),
    ]
    assert "in export" in failing[0].traceback
    assert told[2:] == [Exported("audit", 4), Recovered("audit", 2)]
    assert sink.calls == ["open", "export", "close", "open", "export", "close", "open", "export"]
    assert [record.offset for record in sink.batches[0].records] == [0, 1, 2, 3]
