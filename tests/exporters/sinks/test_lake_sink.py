"""A lake: each batch once, snapshots as a whole, and what restore needs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_wire.exporters.filters import Filter
from kraft_wire.exporters.reading import FolderReader, Selection
from kraft_wire.exporters.records import ExportBatch, ExportRecord, log_records, resync_record
from kraft_wire.exporters.settings import ALL_RECORDS, read_exporters
from kraft_wire.exporters.sinks import SinkFailed
from kraft_wire.exporters.sinks.lake import PARTS, LakeRecordsSink, make_sink
from kraft_wire.lake.protocol import LakeError, checkpoint_of
from kraft_wire.lake.records import LakeRecords, NoRecords
from kraft_wire.lake.restore import Identity, restore_folder
from kraft_wire.log.batch import split_batches
from kraft_wire.log.control import encode_control_batch
from kraft_wire.log.snapshot import SnapshotId, parse_snapshot_file_name
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage, Voter
from kraft_wire.protocol.own_messages.resync import Resync
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.storage.disk import Disk
from kraft_wire.tabular.record_rows import RecordRow, rows_of_batches
from tests.exporters.export_samples import exported, of_value
from tests.lake.test_restore import data, restored_batches
from tests.support.java_rows import BUSY, CLUSTER, NODE, log_batches, log_rows, snapshot_rows
from tests.support.metadata_logs import LogWriter
from tests.support.metadata_records import topic_record

IDENTITY = Identity(CLUSTER, 7, Uuid(bytes(range(16))))
PREFIX = "kraft.wire.exporter.lake."


def _sink(target: Path) -> LakeRecordsSink:
    keys = {f"{PREFIX}type": "lake", f"{PREFIX}path": str(target), f"{PREFIX}interval.ms": "0"}
    read = read_exporters(["lake"], keys)
    assert read.problems == ()
    return make_sink(read.exporters[0])


def _batch(*offsets: int, epoch: int = 3) -> ExportBatch:
    records = [exported(topic_record(offset), offset) for offset in offsets]
    for record in records:
        record.epoch = epoch
    return ExportBatch(CLUSTER, records)


def _of(selection: Selection) -> ExportBatch:
    return ExportBatch(CLUSTER, selection.records, selection.ends_snapshot)


def _log_of(folder: Path, from_offset: int = 0) -> Iterator[ExportBatch]:
    reader = FolderReader(folder, Filter(ALL_RECORDS), read_bytes=500)
    end_offset = log_rows(folder)[-1].offset + 1
    while from_offset < end_offset:
        selection = reader.read_log(from_offset, end_offset)
        assert selection.next_offset is not None
        from_offset = selection.next_offset
        yield _of(selection)
    reader.close()


def _snapshot_of(folder: Path, snapshot_id: SnapshotId) -> list[ExportBatch]:
    reader = FolderReader(folder, Filter(ALL_RECORDS), read_bytes=300)
    batches: list[ExportBatch] = []
    while not batches or not batches[-1].ends_snapshot:
        batches.append(_of(reader.read_snapshot(snapshot_id)))
    return batches


def _newest_snapshot(folder: Path) -> SnapshotId:
    ids = (parse_snapshot_file_name(path.name) for path in folder.glob("*.checkpoint"))
    return max(id for id in ids if id is not None)


def _rows(target: Path) -> list[RecordRow]:
    try:
        return list(rows_of_batches(LakeRecords(str(target), CLUSTER).batches()))
    except NoRecords:
        return []


def _offsets(target: Path) -> list[tuple[int, int]]:
    return [(row.epoch, row.offset) for row in _rows(target)]


async def _export(target: Path, *batches: ExportBatch) -> None:
    sink = _sink(target)
    await sink.open()
    try:
        for batch in batches:
            await sink.export(batch)
    finally:
        await sink.close()


@pytest.mark.parametrize("folder", [NODE, BUSY], ids=["node", "busy"])
async def test_a_log_is_restored_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "lake"
    await _export(target, *_log_of(folder))
    assert _rows(target) == list(log_rows(folder))
    restore_folder(_rows(target), tmp_path / "restored", IDENTITY)
    original = data(log_batches(folder))
    assert data(restored_batches(tmp_path / "restored"))[: len(original)] == original


async def test_a_snapshot_has_the_rows_of_its_file(tmp_path: Path) -> None:
    snapshot_id = _newest_snapshot(BUSY)
    await _export(tmp_path / "lake", *_snapshot_of(BUSY, snapshot_id))
    assert sorted(_rows(tmp_path / "lake")) == sorted(snapshot_rows(BUSY, snapshot_id))
    restored = restore_folder(_rows(tmp_path / "lake"), tmp_path / "restored", IDENTITY)
    assert restored.snapshot_id == snapshot_id


@pytest.fixture
def parts(tmp_path: Path) -> list[ExportBatch]:
    """A snapshot of 4,001 records, in several batches."""
    writer = LogWriter(tmp_path / "data")
    writer.append(4000)
    batches = _snapshot_of(writer.partition, writer.snapshot())
    writer.close()
    assert len(batches) > 2
    return batches


HEADER_AND_FOOTER = 2


async def test_a_snapshot_is_there_as_a_whole_or_not_at_all(tmp_path: Path, parts: list[ExportBatch]) -> None:
    target = tmp_path / "lake"
    await _export(target, *parts[:-1])
    assert _rows(target) == []
    await _export(target, *parts)
    assert len(_rows(target)) == 4001 + HEADER_AND_FOOTER
    assert not (target / PARTS).exists()


async def test_a_part_that_failed_comes_again(
    tmp_path: Path, parts: list[ExportBatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    target, (*batches, last) = tmp_path / "lake", parts
    sink = _sink(target)
    await sink.open()
    for batch in batches:
        await sink.export(batch)
    with monkeypatch.context() as patch:
        patch.setattr(Disk, "replace", _full)
        with pytest.raises(OSError, match="No space"):
            await sink.export(last)
    await sink.close()
    await sink.open()
    await sink.export(last)
    await sink.close()
    assert len(_rows(target)) == 4001 + HEADER_AND_FOOTER


def _full(*given: object) -> None:
    raise OSError(28, "No space left on device")


async def test_what_is_there_does_not_come_again(tmp_path: Path) -> None:
    await _export(tmp_path, _batch(1, 2, 3), _batch(2, 3, 4))
    await _export(tmp_path, _batch(3, 4), _batch(4, 5))
    assert _offsets(tmp_path) == [(3, offset) for offset in (1, 2, 3, 4, 5)]


def _leader_change(offset: int, epoch: int) -> ExportRecord:
    """The first record of an epoch."""
    data = encode_control_batch(offset, epoch, 0, [LeaderChangeMessage(leader_id=1, voters=[Voter(1)])])
    (record,) = log_records(split_batches(data)[0][0])
    return record


def _log(*names: int, epoch: int = 1) -> ExportBatch:
    """A log from its beginning, with topics of these names."""
    records = [exported(topic_record(name), offset) for offset, name in enumerate(names, start=1)]
    for record in records:
        record.epoch = epoch
    return ExportBatch(CLUSTER, [_leader_change(0, epoch), *records])


async def test_a_log_that_begins_anew_is_another_one(tmp_path: Path) -> None:
    """Its cluster was formatted again with the same id. The first record is the same."""
    await _export(tmp_path, _log(1, 2, 3))
    with pytest.raises(SinkFailed, match=r"has another record at offset 1\. If the cluster was formatted"):
        await _export(tmp_path, _log(1001, 1002, 1003, 1004))
    assert _offsets(tmp_path) == [(1, offset) for offset in range(4)]


async def test_a_log_that_begins_anew_in_an_earlier_epoch_is_another_one(tmp_path: Path) -> None:
    await _export(tmp_path, _log(1, 2, 3, epoch=7))
    with pytest.raises(SinkFailed, match="ends with offset 3 and epoch 7: offset 4 is of an earlier epoch"):
        await _export(tmp_path, _log(1, 2, 3, 4))


async def test_what_was_before_the_beginning_of_a_lake_is_not_added(tmp_path: Path) -> None:
    """It may be of another log, and nothing can tell."""
    await _export(tmp_path, _batch(100, 101))
    with pytest.raises(SinkFailed, match="begins with offset 100: offset 7 can't be added"):
        await _export(tmp_path, _batch(7, 8))


async def test_a_snapshot_of_a_later_epoch_within_the_lake_is_of_another_log(
    tmp_path: Path, parts: list[ExportBatch]
) -> None:
    await _export(tmp_path / "lake", _batch(*range(5000), epoch=0))
    with pytest.raises(SinkFailed, match="the snapshot that ends at 4001 in epoch 1 has another past"):
        await _export(tmp_path / "lake", *parts)
    assert len(_rows(tmp_path / "lake")) == 5000


async def test_records_that_are_missing_in_a_gap_are_added(tmp_path: Path) -> None:
    """After a failover the next controller may have the records that the last one had lost."""
    await _export(tmp_path, _batch(1, 2), _batch(8, 9), _batch(*range(2, 10)), _batch(10))
    assert sorted(_offsets(tmp_path)) == [(3, offset) for offset in range(1, 11)]


async def test_an_epoch_without_its_beginning_means_that_records_were_replaced(tmp_path: Path) -> None:
    """A recovery lost records that the lake has, and the exporter goes on after them."""
    await _export(tmp_path, _batch(*range(1, 10)))
    with pytest.raises(SinkFailed, match=r"offset 10 is of epoch 1003, which began before: .* --to OFFSET`"):
        await _export(tmp_path, _batch(10, 11, epoch=1003))
    again = ExportBatch(CLUSTER, [_leader_change(8, 1003), *_batch(9, 10, 11, epoch=1003).records])
    await _export(tmp_path, _batch(6, 7), again)
    assert sorted(_offsets(tmp_path))[-4:] == [(1003, offset) for offset in range(8, 12)]


async def test_a_snapshot_of_what_is_there_is_left_out(tmp_path: Path) -> None:
    log = list(_log_of(BUSY))
    await _export(tmp_path, *log, *_snapshot_of(BUSY, _newest_snapshot(BUSY)))
    assert _rows(tmp_path) == list(log_rows(BUSY))


async def test_after_a_recovery_a_later_epoch_has_other_records_at_the_same_offsets(tmp_path: Path) -> None:
    await _export(tmp_path, _batch(1, 2, 3, 4))
    later_epoch = ExportBatch(CLUSTER, [_leader_change(3, 1003), *_batch(4, 5, epoch=1003).records])
    await _export(tmp_path, later_epoch, _batch(4, 5, 6, epoch=1003))
    later = [(1003, offset) for offset in (3, 4, 5, 6)]
    assert sorted(_offsets(tmp_path)) == [(3, offset) for offset in (1, 2, 3, 4)] + later


async def test_a_resync_is_no_row(tmp_path: Path) -> None:
    resync = resync_record(Resync(2, 8), 1)
    after = ExportBatch(CLUSTER, [resync, *_batch(8, 9).records])
    await _export(tmp_path, _batch(1), after, ExportBatch(CLUSTER, [resync]))
    assert _offsets(tmp_path) == [(3, 1), (3, 8), (3, 9)]


async def test_a_record_that_can_not_be_decoded_waits(tmp_path: Path) -> None:
    odd = ExportBatch(CLUSTER, [exported(topic_record(5), 5), of_value(b"\x01\x02\x63", 6)])
    with pytest.raises(SinkFailed, match=r"the record at offset 6 can't be decoded .*: upgrade this"):
        await _export(tmp_path, odd)
    assert _rows(tmp_path) == []


async def test_small_files_become_one(tmp_path: Path) -> None:
    await _export(tmp_path, *(_batch(offset) for offset in range(1, 40)))
    assert [offset for _, offset in _offsets(tmp_path)] == list(range(1, 40))
    assert len(list((tmp_path / "records").glob("*/*.parquet"))) < 20


async def test_nobody_else_can_read_secrets(tmp_path: Path) -> None:
    """Also when small files became one."""
    await _export(tmp_path, *(_batch(offset) for offset in range(1, 40)))
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "records").glob("*/*.parquet")} == {0o640}


async def test_a_lake_has_one_writer(tmp_path: Path) -> None:
    sink = _sink(tmp_path)
    await sink.open()
    with pytest.raises(LakeError, match="another pipeline writes there"):
        await _sink(tmp_path).open()
    await sink.close()
    checkpoint_of(tmp_path).mkdir()
    with pytest.raises(SinkFailed, match="a pipeline writes there; give the exporter a folder of its own"):
        await _sink(tmp_path).open()


async def test_a_lake_of_delta_tables_is_refused(tmp_path: Path) -> None:
    (tmp_path / "records/_delta_log").mkdir(parents=True)
    with pytest.raises(SinkFailed, match="a pipeline writes there"):
        await _sink(tmp_path).open()
    shutil.rmtree(tmp_path / "records")
    await _export(tmp_path, _batch(1))


@pytest.mark.parametrize("key", ["types", "topics", "brokers", "no-op", "changes"])
def test_a_lake_has_all_records(key: str) -> None:
    keys = {f"{PREFIX}type": "lake", f"{PREFIX}path": "/lake", f"{PREFIX}{key}": "true"}
    read = read_exporters(["lake"], keys)
    assert f"{PREFIX}{key}: an exporter of this type has no such key" in read.problems[0]
    assert read_exporters(["lake"], dict(list(keys.items())[:2])).exporters[0].filter == ALL_RECORDS
