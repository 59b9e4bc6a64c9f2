"""Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from kraft_wire.exporters.arrow_rows import SCHEMA
from kraft_wire.exporters.records import ExportBatch, resync_record
from kraft_wire.exporters.settings import read_exporters
from kraft_wire.exporters.sinks import SinkFailed
from kraft_wire.exporters.sinks import parquet as parquet_sink
from kraft_wire.exporters.sinks.folding import FOLD
from kraft_wire.exporters.sinks.parquet import ParquetFiles, make_sink
from kraft_wire.protocol.own_messages.resync import Resync
from tests.exporters.export_samples import exported
from tests.support.metadata_records import topic_record

CLUSTER = "q3YRw3NrQz6yVPNUPcbbDA"


def _sink(folder: Path, **options: str) -> ParquetFiles:
    prefix = "kraft.wire.exporter.audit."
    given = {prefix + key.replace("_", "."): value for key, value in options.items()}
    read = read_exporters(["audit"], {f"{prefix}type": "parquet", f"{prefix}path": str(folder), **given})
    assert read.problems == ()
    return make_sink(read.exporters[0])


def _batch(offsets: Sequence[int]) -> ExportBatch:
    return ExportBatch(CLUSTER, [exported(topic_record(offset), offset) for offset in offsets])


def _rows(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ds.dataset(folder, SCHEMA).to_table().to_pylist()
    return sorted(rows, key=lambda row: int(row["offset"]))


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


async def _export(folder: Path, batches: Sequence[Sequence[int]], **options: str) -> None:
    sink = _sink(folder, **options)
    await sink.open()
    for offsets in batches:
        await sink.export(_batch(offsets))
    await sink.close()


async def test_each_batch_can_be_read_at_once(tmp_path: Path) -> None:
    sink = _sink(tmp_path / "deep" / "folder")
    await sink.open()
    await sink.export(_batch([305, 307]))
    rows = _rows(tmp_path / "deep" / "folder")
    await sink.close()
    assert [row["offset"] for row in rows] == [305, 307]
    row = rows[0]
    assert msgspec.json.decode(row.pop("data")) == {
        "name": "topic-305",
        "topicId": str(topic_record(305).topic_id),
    }
    assert row.pop("timestamp").timestamp() == 1_700_000_000
    assert row == {
        "cluster": CLUSTER,
        "offset": 305,
        "index": 0,
        "epoch": 3,
        "type": "TopicRecord",
        "version": 0,
        "undecoded": None,
        "raw": None,
    }


async def test_small_files_become_one(tmp_path: Path) -> None:
    await _export(tmp_path, [[number] for number in range(FOLD + 1)])
    assert len(_files(tmp_path)) == 2
    assert [row["offset"] for row in _rows(tmp_path)] == list(range(FOLD + 1))


async def test_what_records_change_is_in_columns_of_its_own(tmp_path: Path) -> None:
    """Files from before the key was set are put together with later ones."""
    await _export(tmp_path, [[number] for number in range(FOLD - 1)])
    sink = _sink(tmp_path, changes="true")
    await sink.open()
    record = exported(topic_record(FOLD), FOLD)
    record.note_change(None, {"name": "a"})
    await sink.export(ExportBatch(CLUSTER, [record, exported(topic_record(FOLD), FOLD + 1)]))
    await sink.close()
    (file,) = _files(tmp_path)
    rows = sorted(pq.read_table(file).to_pylist(), key=lambda row: int(row["offset"]))
    assert [row["after"] for row in rows] == [None] * (FOLD - 1) + ['{"name":"a"}', None]
    assert {row["before"] for row in rows} == {None}


async def test_files_that_are_large_enough_stay(tmp_path: Path) -> None:
    await _export(tmp_path, [[number] for number in range(FOLD * FOLD)], max_file_bytes="1")
    sizes = [pq.read_metadata(path).num_rows for path in _files(tmp_path)]
    assert sizes == [FOLD] * FOLD
    assert [row["offset"] for row in _rows(tmp_path)] == list(range(FOLD * FOLD))


async def test_folded_files_fold_again(tmp_path: Path) -> None:
    await _export(tmp_path, [[number] for number in range(FOLD * FOLD)])
    assert len(_files(tmp_path)) == 1
    assert [row["offset"] for row in _rows(tmp_path)] == list(range(FOLD * FOLD))


async def test_a_crash_while_files_fold_leaves_no_record_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as crash:
        crash.setattr(ParquetFiles, "_delete_folded", lambda sink, path: None)
        await _export(tmp_path, [[number] for number in range(FOLD)])
    (tmp_path / ".audit-00000000000000000099-0-1.parquet.part").write_bytes(b"PAR1")
    assert len(_rows(tmp_path)) > FOLD
    sink = _sink(tmp_path)
    await sink.open()
    await sink.close()
    assert [row["offset"] for row in _rows(tmp_path)] == list(range(FOLD))
    assert not list(tmp_path.glob(".*.part"))


async def test_what_is_exported_again_stays(tmp_path: Path) -> None:
    await _export(tmp_path, [[number] for number in range(FOLD)])
    await _export(tmp_path, [[5, 6, 7, 100]])
    await _export(tmp_path, [])
    assert {row["offset"] for row in _rows(tmp_path)} == {*range(FOLD), 100}


async def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    await _export(tmp_path, [[0]])
    (path,) = _files(tmp_path)
    path.write_bytes(b"no Parquet")
    with pytest.raises(SinkFailed, match=f"{path} is damaged"):
        await _sink(tmp_path).open()


async def test_two_processes_do_not_write_the_same_files(tmp_path: Path) -> None:
    first, second = _sink(tmp_path), _sink(tmp_path)
    await first.open()
    with pytest.raises(SinkFailed, match="another process writes"):
        await second.open()
    await first.close()
    await second.open()
    await second.close()


async def test_a_write_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(paths: object) -> None:
        raise OSError("no room")

    sink = _sink(tmp_path)
    await sink.open()
    monkeypatch.setattr(parquet_sink, "flush", fail)
    with pytest.raises(OSError, match="no room"):
        await sink.export(_batch([0]))
    await sink.close()
    assert _files(tmp_path) == []


async def test_missed_records_are_a_row_and_their_file_is_folded_like_others(tmp_path: Path) -> None:
    sink = _sink(tmp_path)
    await sink.open()
    await sink.export(ExportBatch(CLUSTER, [resync_record(Resync(4, 10), 1_700_000_000_000)]))
    for offset in range(10, 10 + FOLD - 1):
        await sink.export(_batch([offset]))
    await sink.close()
    assert len(_files(tmp_path)) == 1
    row = _rows(tmp_path)[0]
    assert (row["offset"], row["index"], row["type"]) == (9, -1, "Resync")
    assert msgspec.json.decode(row["data"]) == {"from": 4, "to": 10, "isDifference": False}
