"""Files of JSON lines."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kraft_wire.exporters.records import ExportBatch
from kraft_wire.exporters.settings import read_exporters
from kraft_wire.exporters.sinks import SinkFailed
from kraft_wire.exporters.sinks.jsonl import JsonLines, line_of, make_sink
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from tests.exporters.export_samples import exported, of_value
from tests.support.metadata_records import topic_record

CLUSTER = "q3YRw3NrQz6yVPNUPcbbDA"


def _sink(folder: Path, name: str = "audit", **options: str) -> JsonLines:
    prefix = f"kraft.wire.exporter.{name}."
    given = {prefix + key.replace("_", "."): value for key, value in options.items()}
    read = read_exporters([name], {f"{prefix}type": "jsonl", f"{prefix}path": str(folder), **given})
    assert read.problems == ()
    return make_sink(read.exporters[0])


def _batch(offsets: Sequence[int]) -> ExportBatch:
    return ExportBatch(CLUSTER, [exported(topic_record(offset), offset) for offset in offsets])


def _lines(folder: Path, name: str = "audit") -> list[dict[str, Any]]:
    return [
        msgspec.json.decode(line)
        for path in sorted(folder.glob(f"{name}-*.jsonl"))
        for line in path.read_bytes().splitlines()
    ]


def _offsets(folder: Path) -> list[int]:
    return [line["offset"] for line in _lines(folder)]


async def test_a_line_has_a_record_and_its_place(tmp_path: Path) -> None:
    sink = _sink(tmp_path / "deep" / "folder")
    await sink.open()
    await sink.export(_batch([305, 307]))
    await sink.close()
    (path,) = (tmp_path / "deep" / "folder").iterdir()
    assert path.name == "audit-00000000000000000305.jsonl"
    assert _lines(path.parent)[0] == {
        "cluster": CLUSTER,
        "offset": 305,
        "index": 0,
        "epoch": 3,
        "timestamp": 1_700_000_000_000,
        "type": "TopicRecord",
        "version": 0,
        "data": {"name": "topic-305", "topicId": str(topic_record(305).topic_id)},
    }
    assert _offsets(path.parent) == [305, 307]


def test_a_record_that_can_not_be_decoded_has_its_bytes_and_the_reason() -> None:
    value = b"\x01\x64\x07\xff\x00"
    line = msgspec.json.decode(line_of(CLUSTER, of_value(value, 9)))
    assert (line["type"], line["version"], line["data"]) == ("Unknown", 7, None)
    assert "there is no record 100" in line["undecoded"]
    assert base64.b64decode(line["raw"]) == value


def test_bytes_are_base64_as_in_kafkas_own_json() -> None:
    record = exported(UserScramCredentialRecord("u", 1, b"salt", b"\xff\x00", b"k", 4096))
    line = msgspec.json.decode(line_of(CLUSTER, record))
    assert base64.b64decode(line["data"]["storedKey"]) == b"\xff\x00"
    assert "undecoded" not in line


async def test_a_file_that_is_large_enough_is_followed_by_another(tmp_path: Path) -> None:
    sink = _sink(tmp_path, max_file_bytes="100")
    await sink.open()
    for offset in range(4):
        await sink.export(_batch([offset]))
    await sink.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"audit-{offset:020d}.jsonl" for offset in range(4)]
    assert _offsets(tmp_path) == [0, 1, 2, 3]


async def test_an_old_file_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = _sink(tmp_path, max_file_age_ms="5000")
    await sink.open()
    now_s = 100.0
    monkeypatch.setattr("kraft_wire.exporters.sinks.jsonl.time.monotonic", lambda: now_s)
    await sink.export(_batch([0]))
    now_s += 4.9
    await sink.export(_batch([1]))
    now_s += 0.1
    await sink.export(_batch([2]))
    await sink.close()
    assert len(list(tmp_path.iterdir())) == 2
    assert _offsets(tmp_path) == [0, 1, 2]


async def test_the_same_first_offset_again_goes_on_in_the_same_file(tmp_path: Path) -> None:
    for offsets in ([5, 6], [5, 6, 7]):
        sink = _sink(tmp_path)
        await sink.open()
        await sink.export(_batch(offsets))
        await sink.close()
    assert _offsets(tmp_path) == [5, 6, 5, 6, 7]


@pytest.mark.parametrize(
    "torn",
    [
        b'{"cluster":"x","offs',
        b"\x00" * 5000,
        b"\x00" * 70_000,
        b'{"cluster":\n\x00\x00\n',
        b'{"a":1',
    ],
)
async def test_what_a_crash_left_at_the_end_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    sink = _sink(tmp_path)
    await sink.open()
    await sink.export(_batch([0, 1]))
    await sink.close()
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    sink = _sink(tmp_path)
    await sink.open()
    assert path.read_bytes() == whole
    await sink.export(_batch([2]))
    await sink.close()
    assert _offsets(tmp_path) == [0, 1, 2]


async def test_a_file_with_nothing_but_a_torn_line_is_empty_then(tmp_path: Path) -> None:
    path = tmp_path / "audit-00000000000000000000.jsonl"
    path.write_bytes(b"{")
    await _sink(tmp_path).open()
    assert path.read_bytes() == b""


async def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "audit-b-00000000000000000000.jsonl"
    other.write_bytes(b"{")
    await _sink(tmp_path).open()
    assert other.read_bytes() == b"{"


async def test_a_full_disk_is_an_error_and_what_was_written_in_part_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = _sink(tmp_path)
    await sink.open()
    await sink.export(_batch([0]))
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    write = os.write

    def write_a_little(fd: int, data: bytes) -> int:
        if len(data) < 100:
            raise OSError(28, "No space left on device")
        return write(fd, data[:60])

    with monkeypatch.context() as full:
        full.setattr(os, "write", write_a_little)
        with pytest.raises(OSError, match="No space"):
            await sink.export(_batch([1]))
    assert path.read_bytes() != whole
    await sink.close()
    assert path.read_bytes() == whole
    await sink.open()
    await sink.export(_batch([1]))
    await sink.close()
    assert _offsets(tmp_path) == [0, 1]


async def test_two_processes_never_write_one_file(tmp_path: Path) -> None:
    first, second = _sink(tmp_path), _sink(tmp_path)
    await first.open()
    await first.export(_batch([0]))
    with pytest.raises(SinkFailed, match="another process writes it"):
        await second.open()
    await first.close()
    await second.open()


async def test_a_folder_that_can_not_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        await _sink(tmp_path / "file").open()


async def test_files_are_not_for_everybody(tmp_path: Path) -> None:
    sink = _sink(tmp_path)
    await sink.open()
    await sink.export(_batch([0]))
    await sink.close()
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o007 == 0
