"""The process of the exporters, without a controller."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraft_wire.exporters.messages import (
    Begin,
    Committed,
    Exported,
    Failing,
    Finish,
    Recovered,
    Restarted,
    Told,
    line_of,
    told_in,
)
from kraft_wire.exporters.settings import ExporterSettings, FilterSettings, read_exporters
from kraft_wire.log.batch import encode_batch
from tests.support.controller_process import GIVE_UP_S
from tests.support.metadata_logs import LogWriter
from tests.support.waiting import wait_until

CLUSTER = "one"
PIPE_BYTES = 64 * 1024


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LogWriter]:
    found = LogWriter(tmp_path / "data", CLUSTER)
    yield found
    found.close()


def _exporters(folder: Path, **starts: str) -> tuple[ExporterSettings, ...]:
    """Return exporters to folders of their own names."""
    given: dict[str, str] = {}
    for name, start in starts.items():
        prefix = f"kraft.wire.exporter.{name}."
        given |= {f"{prefix}type": "jsonl", f"{prefix}path": str(folder / name), f"{prefix}start": start}
    return read_exporters(list(starts), given).exporters


class _Process:
    """A process of exporters; what it tells is collected."""

    def __init__(
        self,
        folder: Path,
        exporters: tuple[ExporterSettings, ...],
        high_watermark: int,
        positions: dict[str, int] | None = None,
    ) -> None:
        command = [sys.executable, "-m", "kraft_wire.exporters", str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.told: list[Told] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self._write(line_of(Begin(CLUSTER, exporters, positions or {}, high_watermark)))

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.close()

    def advance(self, high_watermark: int) -> None:
        self._write(line_of(Committed(high_watermark)))

    def finish(self) -> None:
        self._write(line_of(Finish()))

    def position(self, exporter: str) -> int | None:
        found = [each.position for each in self.of(Exported) if each.exporter == exporter]
        return found[-1] if found else None

    def of(self, kind: type[Any]) -> list[Any]:
        return [each for each in list(self.told) if isinstance(each, kind)]

    def wait_for_position(self, exporter: str, position: int) -> None:
        wait_until(lambda: self.position(exporter) == position, f"{exporter} to reach {position}")

    def close(self) -> int:
        """Close its standard input, as a controller that ends does, and return the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(GIVE_UP_S)
        self._reader.join()
        return code

    def _write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.told.append(told_in(line))


def exported_lines(folder: Path) -> list[dict[str, Any]]:
    """Return the whole lines of all files in a folder."""
    return [
        msgspec.json.decode(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_bytes().splitlines(keepends=True)
        if line.endswith(b"\n")
    ]


def _offsets(folder: Path) -> list[int]:
    return [line["offset"] for line in exported_lines(folder)]


def test_committed_records_are_exported_as_they_come(writer: LogWriter, tmp_path: Path) -> None:
    writer.append(4)
    with _Process(writer.partition, _exporters(tmp_path, audit="0"), 3) as process:
        process.wait_for_position("audit", 1)
        writer.append(2)
        process.advance(7)
        process.wait_for_position("audit", 7)
        assert process.close() == 0
    assert _offsets(tmp_path / "audit") == list(range(7))
    assert {line["cluster"] for line in exported_lines(tmp_path / "audit")} == {CLUSTER}


def test_a_process_goes_on_where_another_stopped(writer: LogWriter, tmp_path: Path) -> None:
    writer.append(9)
    with _Process(writer.partition, _exporters(tmp_path, audit="tail"), 10, {"audit": 4}) as process:
        process.wait_for_position("audit", 10)
    assert _offsets(tmp_path / "audit") == [4, 5, 6, 7, 8, 9]


def test_exporters_begin_where_their_keys_say(writer: LogWriter, tmp_path: Path) -> None:
    writer.append(9)
    snapshot_id = writer.snapshot()
    writer.append(5)
    exporters = _exporters(tmp_path, state="snapshot+tail", tail="tail", offset="7")
    with _Process(writer.partition, exporters, 15) as process:
        process.wait_for_position("tail", 15)
        writer.append(1)
        process.advance(16)
        for exporter in exporters:
            process.wait_for_position(exporter.name, 16)
    assert _offsets(tmp_path / "tail") == [15]
    assert _offsets(tmp_path / "offset") == list(range(7, 16))
    state = exported_lines(tmp_path / "state")
    last = snapshot_id.end_offset - 1
    ids = [(line["offset"], line["index"]) for line in state]
    assert ids == [*((last, index) for index in range(1, 11)), *((offset, 0) for offset in range(10, 16))]


def test_a_trimmed_log_begins_again_with_the_snapshot(writer: LogWriter, tmp_path: Path) -> None:
    writer.append(9)
    writer.roll()
    writer.snapshot()
    writer.append(2)
    writer.trim(10)
    with _Process(writer.partition, _exporters(tmp_path, audit="tail"), 12, {"audit": 4}) as process:
        process.wait_for_position("audit", 12)
        assert process.of(Restarted) == [Restarted("audit", 4, "the log begins at offset 10", 10)]
    resync, *others = exported_lines(tmp_path / "audit")
    assert (resync["type"], resync["data"]) == (
        "Resync",
        {"from": 4, "to": 10, "isDifference": False},
    )
    assert (resync["offset"], resync["index"], resync["epoch"]) == (9, -1, -1)
    ids = [(line["offset"], line["index"]) for line in others]
    assert ids == [*((9, index) for index in range(1, 11)), (10, 0), (11, 0)]


def test_missed_records_are_told_though_no_record_of_the_state_is_wanted(
    writer: LogWriter, tmp_path: Path
) -> None:
    writer.append(9)
    writer.roll()
    writer.snapshot()
    writer.trim(10)
    (every,) = _exporters(tmp_path, audit="tail")
    some = msgspec.structs.replace(every, filter=FilterSettings(types=("NoOpRecord",)))
    with _Process(writer.partition, (some,), 10, {"audit": 4}) as process:
        process.wait_for_position("audit", 10)
    assert [line["type"] for line in exported_lines(tmp_path / "audit")] == ["Resync"]


def test_a_record_of_a_newer_release_is_exported_as_it_is(writer: LogWriter, tmp_path: Path) -> None:
    value = b"\x01\x63\x00\x07"
    writer.log.append([encode_batch(1, 1, 1000, [value])])
    writer.append(1)
    with _Process(writer.partition, _exporters(tmp_path, audit="0"), 3) as process:
        process.wait_for_position("audit", 3)
        assert process.of(Failing) == []
    _, unknown, known = exported_lines(tmp_path / "audit")
    assert (unknown["offset"], unknown["type"], unknown["data"]) == (1, "Unknown", None)
    assert base64.b64decode(unknown["raw"]) == value
    assert (known["offset"], known["type"]) == (2, "TopicRecord")


def test_an_exporter_that_fails_or_hangs_stops_no_other(writer: LogWriter, tmp_path: Path) -> None:
    """One has a file for a folder, one a pipe that nobody reads, one a full disk."""
    for name in ("hangs", "full"):
        (tmp_path / name).mkdir()
    (tmp_path / "fails").touch()
    os.mkfifo(tmp_path / "hangs" / "hangs-00000000000000000000.jsonl")
    (tmp_path / "full" / "full-00000000000000000000.jsonl").symlink_to("/dev/full")
    exporters = _exporters(tmp_path, hangs="0", fails="0", full="0", works="0")
    writer.append(3)
    with _Process(writer.partition, exporters, 4) as process:
        process.wait_for_position("works", 4)
        for _ in range(20):
            writer.append(3)
            process.advance(writer.end_offset)
        process.wait_for_position("works", writer.end_offset)
        wait_until(lambda: {each.exporter for each in process.of(Failing)} == {"fails", "full"}, "complaints")
        problems = {each.exporter: each.problem for each in process.of(Failing)}
        assert "No space left" in problems["full"]
        assert "File exists" in problems["fails"]
        assert process.position("hangs") is process.position("fails") is process.position("full") is None

        (tmp_path / "fails").unlink()
        process.wait_for_position("fails", writer.end_offset)
        wait_until(lambda: bool(process.of(Recovered)), "the recovery")
        assert process.of(Recovered)[0].failures > 0
        (tmp_path / "full" / "full-00000000000000000000.jsonl").unlink()
        process.wait_for_position("full", writer.end_offset)
        assert process.close() == 0
    for name in ("works", "fails", "full"):
        assert _offsets(tmp_path / name) == list(range(writer.end_offset))


def test_what_a_sink_gets_when_the_exporters_must_finish_is_acknowledged(
    writer: LogWriter, tmp_path: Path
) -> None:
    """A pipe is full until the process has been told to finish."""
    (tmp_path / "slow").mkdir()
    pipe = tmp_path / "slow" / "slow-00000000000000000000.jsonl"
    os.mkfifo(pipe)
    writer.append(2000)
    with _Process(writer.partition, _exporters(tmp_path, slow="0"), writer.end_offset) as process:
        with pipe.open("rb") as reader:
            process.finish()
            lines = reader.readlines()
        assert process.process.wait(GIVE_UP_S) == 0
        process.close()
    assert sum(map(len, lines)) > PIPE_BYTES
    assert process.position("slow") == msgspec.json.decode(lines[-1])["offset"] + 1


def test_a_sink_that_hangs_is_not_waited_for_for_long(writer: LogWriter, tmp_path: Path) -> None:
    (tmp_path / "hangs").mkdir()
    os.mkfifo(tmp_path / "hangs" / "hangs-00000000000000000000.jsonl")
    exporters = _exporters(tmp_path, hangs="0", works="0")
    with _Process(writer.partition, exporters, writer.end_offset) as process:
        process.wait_for_position("works", writer.end_offset)
        process.finish()
        assert process.process.wait(GIVE_UP_S) == 0
        process.close()
    assert process.position("hangs") is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_signals_to_all_processes_leave_it_to_the_controller_to_end_it(
    writer: LogWriter, tmp_path: Path, number: signal.Signals
) -> None:
    with _Process(writer.partition, _exporters(tmp_path, audit="0"), 1) as process:
        process.wait_for_position("audit", 1)
        process.process.send_signal(number)
        writer.append(3)
        process.advance(4)
        process.wait_for_position("audit", 4)
        assert process.close() == 0


def test_a_process_without_a_first_line_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kraft_wire.exporters", str(tmp_path)]
    assert subprocess.run(command, stdin=subprocess.DEVNULL, timeout=GIVE_UP_S, check=False).returncode == 0
