"""Records from the files that a controller keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_wire.exporters.cursor import LogView
from kraft_wire.exporters.filters import Filter
from kraft_wire.exporters.reading import FolderReader, NotThere
from kraft_wire.exporters.settings import FilterSettings
from kraft_wire.log.errors import CorruptBatch, LogError
from kraft_wire.log.snapshot import SnapshotId
from tests.support.metadata_logs import LogWriter

LEADER_CHANGE = "LeaderChangeMessage"


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LogWriter]:
    """A log with a LeaderChange at offset 0."""
    found = LogWriter(tmp_path / "data")
    yield found
    found.close()


def _reader(writer: LogWriter, *, read_bytes: int = 1 << 20, **wanted: tuple[str, ...]) -> FolderReader:
    return FolderReader(
        writer.partition,
        Filter(FilterSettings(types=wanted.get("types", ()), topics=wanted.get("topics", ()))),
        read_bytes=read_bytes,
    )


def _offsets(reader: FolderReader, offset: int, end_offset: int) -> list[int]:
    """Read up to an offset."""
    found = []
    while offset < end_offset:
        selection = reader.read_log(offset, end_offset)
        assert selection.next_offset is not None
        assert selection.is_backlog == (selection.next_offset < end_offset)
        found += [record.offset for record in selection.records]
        offset = selection.next_offset
    return found


@pytest.mark.parametrize("read_bytes", [1, 300, 1 << 20])
def test_records_are_read_across_segments_as_they_come(writer: LogWriter, read_bytes: int) -> None:
    reader = _reader(writer, read_bytes=read_bytes)
    found: list[int] = []
    for count in (1, 3, 2, 40, 1):
        begin = writer.end_offset if found else 0
        writer.append(count)
        found += _offsets(reader, begin, writer.end_offset)
        writer.roll()
        writer.append(2)
        found += _offsets(reader, len(found), writer.end_offset)
    assert found == list(range(writer.end_offset))
    assert [path.name for path in writer.partition.glob("*.log")]
    reader.close()


def test_nothing_at_or_above_the_high_watermark_is_looked_at(writer: LogWriter) -> None:
    writer.append(3)
    with writer.segment().open("ab") as file:
        file.write(b"a batch that is being written")
    reader = _reader(writer)
    assert _offsets(reader, 0, 4) == [0, 1, 2, 3]


def test_a_batch_that_is_committed_in_part_waits_for_the_rest(writer: LogWriter) -> None:
    writer.append(3)
    reader = _reader(writer)
    assert reader.read_log(0, 3)[1:] == (1, True, False)
    assert reader.read_log(1, 3) == ([], 1, False, False)
    assert _offsets(reader, 1, 4) == [1, 2, 3]


def test_a_record_is_complete(writer: LogWriter) -> None:
    writer.append(1)
    change, topic = _reader(writer).read_log(0, 2).records
    assert (change.type, change.epoch) == (LEADER_CHANGE, 1)
    assert (topic.offset, topic.index, topic.epoch, topic.timestamp_ms) == (1, 0, 1, 1000)
    assert topic.data is not None
    assert topic.data["name"] == "topic-1"


def test_reading_can_begin_within_a_batch(writer: LogWriter) -> None:
    writer.append(10)
    reader = _reader(writer)
    assert _offsets(reader, 5, 11) == [5, 6, 7, 8, 9, 10]


def test_unwanted_records_are_left_out(writer: LogWriter) -> None:
    writer.append(3)
    selection = _reader(writer, types=(LEADER_CHANGE,)).read_log(0, 4)
    assert [record.offset for record in selection.records] == [0]
    assert selection.next_offset == 4


def test_a_trimmed_log_says_where_it_begins(writer: LogWriter) -> None:
    writer.append(9)
    writer.roll()
    snapshot_id = writer.snapshot()
    writer.append(3)
    reader = _reader(writer)
    assert reader.look() == LogView(0, snapshot_id)
    writer.trim(10)
    assert reader.look() == LogView(10, snapshot_id)
    with pytest.raises(NotThere, match="no segment with offset 9"):
        reader.read_log(9, 13)
    assert _offsets(reader, 10, 13) == [10, 11, 12]


def test_a_segment_that_is_deleted_stays_readable(writer: LogWriter) -> None:
    writer.append(9)
    writer.roll()
    writer.snapshot()
    writer.append(3)
    reader = _reader(writer, read_bytes=1)
    assert _offsets(reader, 0, 1) == [0]
    writer.trim(10)
    assert _offsets(reader, 1, 13) == list(range(1, 13))


def test_a_log_that_ends_too_early_is_not_waited_for(writer: LogWriter) -> None:
    writer.append(3)
    reader = _reader(writer)
    with pytest.raises(NotThere):
        reader.read_log(0, 99)


def test_damage_is_an_error_that_says_where(writer: LogWriter) -> None:
    writer.append(3)
    writer.append(3)
    data = bytearray(writer.segment().read_bytes())
    data[-2] ^= 1
    writer.segment().write_bytes(data)
    reader = _reader(writer, read_bytes=1)
    assert _offsets(reader, 0, 4) == [0, 1, 2, 3]
    for _ in range(2):
        with pytest.raises(CorruptBatch, match="checksum"):
            reader.read_log(4, 7)


def test_a_snapshot_is_read_in_parts_and_then_the_log_goes_on(writer: LogWriter) -> None:
    writer.append(4000)
    snapshot_id = writer.snapshot()
    reader = _reader(writer, read_bytes=1)
    indexes: list[int] = []
    parts = 0
    while True:
        selection = reader.read_snapshot(snapshot_id)
        parts += 1
        indexes += [record.index for record in selection.records]
        if selection.next_offset is not None:
            break
    assert parts > 3
    assert selection.next_offset == snapshot_id.end_offset == 4001
    assert indexes == list(range(1, 4002))
    writer.append(2)
    assert _offsets(reader, 4001, 4003) == [4001, 4002]


@pytest.mark.parametrize("read_bytes", [1, 1 << 20])
def test_the_last_wanted_records_of_a_snapshot_end_it(writer: LogWriter, read_bytes: int) -> None:
    """The parts after them have none."""
    writer.append(4000)
    snapshot_id = writer.snapshot()
    reader = _reader(writer, read_bytes=read_bytes, topics=("topic-1",))
    found = reader.read_snapshot(snapshot_id)
    assert (len(found.records), found.next_offset, found.ends_snapshot) == (1, 4001, True)


def test_a_snapshot_that_is_gone_or_damaged_is_an_error(writer: LogWriter) -> None:
    writer.append(3)
    snapshot_id = writer.snapshot()
    reader = _reader(writer)
    with pytest.raises(NotThere, match="was deleted"):
        reader.read_snapshot(SnapshotId(2, 1))
    path = writer.checkpoint(snapshot_id)
    path.chmod(0o600)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(LogError):
        reader.read_snapshot(snapshot_id)
    path.write_bytes(data)
    assert len(reader.read_snapshot(snapshot_id).records) == 4


@pytest.mark.parametrize("has_snapshot", [False, True])
def test_a_topic_from_before_the_first_record_is_known_by_its_id(
    writer: LogWriter, *, has_snapshot: bool
) -> None:
    writer.append(3)
    if has_snapshot:
        writer.snapshot()
        writer.roll()
        writer.trim(4)
    writer.append(3)
    wanted = Filter(FilterSettings(topics=("topic-2", "topic-5")))
    reader = FolderReader(writer.partition, wanted)
    writer.append(1)
    assert reader.read_log(7, 8).records == []
    writer.remove_topics(2, 3, 5)
    assert _offsets(reader, 8, 11) == [8, 10]
