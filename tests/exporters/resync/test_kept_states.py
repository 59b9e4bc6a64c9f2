"""A sink that was away while the log was deleted gets the difference to the state that it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import trio

from kraft_wire.exporters.exporting import Exporting
from kraft_wire.exporters.filters import Filter
from kraft_wire.exporters.messages import Begin, Exported, Told
from kraft_wire.exporters.reading import FolderReader
from kraft_wire.exporters.records import ExportBatch, ExportRecord
from kraft_wire.exporters.resync.bases import Base, BaseNotKept, forget_bases
from kraft_wire.exporters.settings import ExporterSettings, FilterSettings, read_exporters
from kraft_wire.exporters.sinks import SinkFailed
from kraft_wire.log.batch import encode_batch
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.storage.snapshots.snapshotter import make_snapshot
from tests.support.metadata_logs import LogWriter
from tests.support.metadata_records import topic_record

GIVE_UP_S = 60.0


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LogWriter]:
    found = LogWriter(tmp_path / "data")
    yield found
    found.close()


class Sink:
    """A sink in memory that may be away."""

    def __init__(self) -> None:
        self.is_away = False
        self.records: list[ExportRecord] = []

    async def open(self) -> None:
        if self.is_away:
            raise SinkFailed("away")

    async def export(self, batch: ExportBatch) -> None:
        await self.open()
        self.records += batch.records

    async def close(self) -> None:
        pass


def settings() -> ExporterSettings:
    prefix = "kraft.wire.exporter.audit."
    return read_exporters(["audit"], {f"{prefix}type": "jsonl", f"{prefix}path": "/no"}).exporters[0]


def append(writer: LogWriter, *records: Message) -> None:
    values = [encode_metadata_record(record, record.MAX_VERSION) for record in records]
    writer.log.append([encode_batch(writer.end_offset, writer.epoch, 1000, values)])
    writer.log.flush()


def removal(number: int) -> RemoveTopicRecord:
    return RemoveTopicRecord(topic_record(number).topic_id)


def with_snapshot(writer: LogWriter) -> SnapshotId:
    """Write a snapshot of the whole log."""
    snapshot_id = SnapshotId(writer.end_offset, writer.epoch)
    make_snapshot(writer.partition, snapshot_id)
    return snapshot_id


def shown(records: Sequence[ExportRecord]) -> list[tuple[str, int, int]]:
    return [(record.type, record.offset, record.index) for record in records]


async def test_a_sink_that_was_away_hears_what_is_gone_and_what_is_new(
    writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kraft_wire.exporters.exporting.BASE_INTERVAL_S", 0.05)
    append(writer, FeatureLevelRecord("metadata.version", 33), topic_record(1), topic_record(2))
    sink, told = Sink(), list[Told]()
    base = Base(writer.partition, "audit")
    reader = FolderReader(writer.partition, Filter(FilterSettings()), read_bytes=1, base=base)
    begin = Begin("one", (settings(),), {}, writer.end_offset)
    exporting = Exporting(settings(), begin, reader, sink, told.append, lambda: 0.0)
    with trio.fail_after(GIVE_UP_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(exporting.run)
            nursery.start_soon(exporting.keep_base)
            while Exported("audit", 4) not in told:
                await trio.sleep(0.01)
            sink.is_away = True
            sink.records.clear()
            append(writer, topic_record(3))
            writer.roll()  # an open segment can be read to its end
            append(writer, topic_record(4), removal(1))
            append(writer, removal(4), topic_record(5))
            with_snapshot(writer)
            exporting.advance(writer.end_offset)
            while base.offset() != 5:
                await trio.sleep(0.01)
            writer.roll()
            writer.trim(writer.end_offset)
            sink.is_away = False
            while Exported("audit", 9) not in told:
                await trio.sleep(0.01)
            while base.offset() is not None:
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
    _, resync, gone, new = sink.records
    assert shown(sink.records) == [
        ("TopicRecord", 4, 0),
        ("Resync", 8, -1),
        ("RemoveTopicRecord", 8, -2),
        ("TopicRecord", 8, new.index),
    ]
    assert resync.data == {"from": 5, "to": 9, "isDifference": True}
    assert gone.data == {"topicId": str(topic_record(1).topic_id)}
    assert new.data == topic_record(5).to_json(0)


async def test_a_difference_comes_in_parts_and_through_the_filters(writer: LogWriter) -> None:
    """A topic that is gone is known by its id alone then."""
    append(writer, FeatureLevelRecord("metadata.version", 33), topic_record(1), topic_record(2))
    base = Base(writer.partition, "audit")
    await base.keep(writer.end_offset)
    append(writer, removal(1), removal(2), topic_record(3), topic_record(4))
    snapshot_id = with_snapshot(writer)
    wanted = Filter(FilterSettings(topics=("topic-1", "topic-3")))
    reader = FolderReader(writer.partition, wanted, read_bytes=1, base=base)
    first = reader.read_difference(snapshot_id)
    assert (first.next_offset, first.ends_snapshot) == (None, False)
    second = reader.read_difference(snapshot_id)
    assert (second.next_offset, second.ends_snapshot) == (snapshot_id.end_offset, True)
    records = [*first.records, *second.records]
    assert [record.type for record in records] == ["RemoveTopicRecord", "TopicRecord"]
    assert records[0].data == {"topicId": str(topic_record(1).topic_id)}
    reader.close()


async def test_a_state_that_can_not_be_kept_says_why(writer: LogWriter) -> None:
    append(writer, topic_record(1))
    with pytest.raises(BaseNotKept, match=r"no metadata\.version is finalized"):
        await Base(writer.partition, "audit").keep(writer.end_offset)


async def test_the_states_of_an_earlier_run_are_deleted(writer: LogWriter) -> None:
    append(writer, FeatureLevelRecord("metadata.version", 33))
    base = Base(writer.partition, "audit")
    assert base.offset() is None
    for _ in range(2):
        await base.keep(writer.end_offset)
        assert base.offset() == writer.end_offset
        forget_bases(writer.partition)
        assert base.offset() is None
    await base.keep(writer.end_offset)
    await base.keep(None)
    assert base.offset() is None
