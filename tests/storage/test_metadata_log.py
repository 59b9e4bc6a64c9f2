"""The log on disk: append, roll, read, truncate, delete, reset."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from kraft_wire.log.batch import split_batches
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.index import SegmentIndex
from kraft_wire.storage.errors import OffsetBelowStart
from kraft_wire.storage.log.metadata_log import LogConfig, MetadataLog
from tests.storage.storage_samples import (
    SMALL_SEGMENTS,
    TIMESTAMP_MS,
    all_bytes,
    base_offsets,
    contents,
    data_batch,
    epoch_batches,
    leader_change,
    open_log,
    write_log,
)

EVERYTHING = 2**62
BATCHES = epoch_batches(0, 1, [1, 5, 2, 30, 1, 1, 40, 3, 1, 1, 1, 20, 7])
END = 114
UNCACHED = LogConfig(segment_bytes=2000, tail_cache_bytes=0)


@pytest.fixture
def log(tmp_path: Path) -> MetadataLog:
    log = open_log(tmp_path)
    for batch in BATCHES:
        log.append([batch])
    return log


def segment_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.log"))


def test_a_new_log_is_empty(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert (log.start_offset, log.end_offset, log.flushed_offset, log.size_bytes) == (0, 0, 0, 0)
    assert log.epochs == EpochCache()
    assert log.read(0, EVERYTHING, 1000) == b""
    assert list(log.batches(0)) == []


def test_what_is_appended_is_there_and_survives(log: MetadataLog, tmp_path: Path) -> None:
    assert log.end_offset == END
    assert log.size_bytes == len(b"".join(BATCHES))
    assert all_bytes(log) == b"".join(BATCHES)
    log.close()
    again = open_log(tmp_path)
    assert (again.start_offset, again.end_offset, again.flushed_offset) == (0, END, END)
    assert again.epochs.entries == [(1, 0)]
    assert again.torn_tail is None
    assert all_bytes(again) == b"".join(BATCHES)


def test_opening_again_changes_no_file(log: MetadataLog, tmp_path: Path) -> None:
    log.close()
    before = contents(tmp_path)
    open_log(tmp_path).close()
    assert contents(tmp_path) == before


def test_several_batches_are_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path, LogConfig())
    written: list[Path] = []
    real_write = log._disk.write

    def write(fd: int, data: bytes, position: int, path: Path) -> None:
        written.append(path)
        real_write(fd, data, position, path)

    monkeypatch.setattr(log._disk, "write", write)
    log.append(epoch_batches(0, 0, [1, 2, 3]))
    assert [path.suffix for path in written if path.suffix == ".log"] == [".log"]
    assert log.end_offset == 7


def test_segments_follow_each_other_and_none_is_above_the_limit(log: MetadataLog, tmp_path: Path) -> None:
    names = segment_names(tmp_path)
    assert len(names) > 2
    next_offset = 0
    for name in names:
        data = (tmp_path / name).read_bytes()
        assert int(name[:20]) == next_offset
        batches, consumed = split_batches(data)
        assert consumed == len(data) <= SMALL_SEGMENTS.segment_bytes
        next_offset = batches[-1].header.next_offset


def test_a_batch_larger_than_a_segment_gets_one_to_itself(tmp_path: Path) -> None:
    batches = [leader_change(0, 1), data_batch(1, 1, 1, 5000), data_batch(2, 1)]
    write_log(tmp_path, batches)
    assert segment_names(tmp_path) == [f"{offset:020d}.log" for offset in (0, 1, 2)]
    assert all_bytes(open_log(tmp_path)) == b"".join(batches)


def test_a_segment_does_not_grow_older_than_it_may(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=1000))
    log.append([leader_change(0, 1)])
    log.append([data_batch(1, 1, timestamp_ms=TIMESTAMP_MS + 1000)])
    log.append([data_batch(2, 1, timestamp_ms=TIMESTAMP_MS + 1001)])
    log.append([data_batch(3, 1, timestamp_ms=TIMESTAMP_MS + 1002)])
    assert segment_names(tmp_path) == [f"{offset:020d}.log" for offset in (0, 2)]


def test_the_age_of_a_segment_survives(tmp_path: Path) -> None:
    config = LogConfig(segment_ms=1000)
    write_log(tmp_path, [leader_change(0, 1)], config)
    log = open_log(tmp_path, config)
    log.append([data_batch(1, 1, timestamp_ms=TIMESTAMP_MS + 1001)])
    assert segment_names(tmp_path) == [f"{offset:020d}.log" for offset in (0, 1)]


@pytest.mark.parametrize("config", [SMALL_SEGMENTS, UNCACHED], ids=["cached", "from files"])
def test_every_read_is_whole_batches_from_the_one_that_was_asked_for(
    tmp_path: Path, config: LogConfig
) -> None:
    write_log(tmp_path, BATCHES[:6], config)
    log = open_log(tmp_path, config)
    for batch in BATCHES[6:]:
        log.append([batch])
    starts = [*base_offsets(BATCHES), END]
    for offset in range(END):
        number = max(n for n, start in enumerate(starts) if start <= offset)
        for max_bytes in (0, 1, 200, 500, 3000, 10**6):
            for end_offset in (offset, offset + 1, offset + 20, END, EVERYTHING):
                data = log.read(offset, end_offset, max_bytes)
                batches, consumed = split_batches(data)
                assert consumed == len(data)
                if starts[number + 1] > min(end_offset, END) or offset >= end_offset:
                    assert data == b""
                    continue
                found = [batch.data for batch in batches]
                assert found == BATCHES[number : number + len(found)]
                assert found and batches[-1].header.next_offset <= end_offset
                assert len(data) <= max_bytes or len(found) == 1


def test_a_read_goes_on_as_far_as_it_may(tmp_path: Path) -> None:
    write_log(tmp_path, BATCHES, LogConfig())
    log = open_log(tmp_path, LogConfig())
    whole = b"".join(BATCHES)
    assert log.read(0, EVERYTHING, len(whole)) == whole
    assert log.read(0, EVERYTHING, len(whole) - 1) == b"".join(BATCHES[:-1])
    assert log.read(0, END - 1, len(whole)) == b"".join(BATCHES[:-1])


def test_a_read_finds_a_batch_that_is_larger_than_what_is_read_at_once(tmp_path: Path) -> None:
    batches = [leader_change(0, 1), data_batch(1, 1, 2, 500_000), data_batch(3, 1)]
    write_log(tmp_path, batches, LogConfig())
    log = open_log(tmp_path, LogConfig())
    assert log.read(0, EVERYTHING, 1) == batches[0]
    assert log.read(2, EVERYTHING, 1) == batches[1]
    assert log.read(3, EVERYTHING, 1) == batches[2]


def test_the_cache_holds_about_as_much_as_it_may(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(tail_cache_bytes=3000))
    log.append([leader_change(0, 1)])
    for offset in range(1, 300):
        log.append([data_batch(offset, 1)])
    assert 1500 <= log._tail.size_bytes <= 6000
    assert log._tail.read(299, EVERYTHING, 1) == data_batch(299, 1)
    assert log._tail.read(0, EVERYTHING, 1) is None


def test_iterating_from_anywhere(log: MetadataLog) -> None:
    starts = base_offsets(BATCHES)
    for offset in range(END):
        number = max(n for n, start in enumerate(starts) if start <= offset)
        for chunk in (1, 700, 10**6):
            found = [batch.data for batch in log.batches(offset, chunk_size_bytes=chunk)]
            assert found == BATCHES[number:]
    assert list(log.batches(END)) == []
    assert [batch.data for batch in log.batches(0, 9)] == BATCHES[:4]
    assert [batch.data for batch in log.batches(0, 8)] == BATCHES[:3]


def test_iterating_stops_at_the_end_of_when_it_began(log: MetadataLog) -> None:
    iterator = log.batches(0, chunk_size_bytes=1)
    first = next(iterator)
    log.append([data_batch(END, 1)])
    assert [first.data, *(batch.data for batch in iterator)] == BATCHES


@pytest.mark.parametrize(
    "batch",
    [
        data_batch(END + 2, 1),
        data_batch(END - 1, 1),
        data_batch(END, 0),
        data_batch(END, 1)[:-1],
        data_batch(END, 1) + b"\x00",
        data_batch(END, 1) + data_batch(END + 1, 1),
        b"",
    ],
)
def test_what_cannot_come_next_is_refused_before_it_is_written(log: MetadataLog, batch: bytes) -> None:
    size = log.size_bytes
    with pytest.raises(ValueError, match=str(END)):
        log.append([batch])
    with pytest.raises(ValueError, match=f"{END}|{END + 1}"):
        log.append([data_batch(END, 1), batch])
    assert (log.end_offset, log.size_bytes) == (END, size)
    log.append([data_batch(END, 1)])
    assert log.end_offset == END + 1


def test_nothing_cannot_be_appended(log: MetadataLog) -> None:
    with pytest.raises(ValueError, match="nothing"):
        log.append([])


def test_only_a_flush_makes_records_count(log: MetadataLog) -> None:
    assert log.flush() == END
    assert log.flushed_offset == END
    log.append([data_batch(END, 1)])
    assert (log.end_offset, log.flushed_offset) == (END + 1, END)
    assert log.flush() == END + 1


def test_a_flush_in_another_thread_covers_what_was_there_when_it_began(
    log: MetadataLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushing, go_on = threading.Event(), threading.Event()
    real_flush = log._disk.flush_data

    def slow_flush(fd: int, path: Path) -> None:
        flushing.set()
        assert go_on.wait(60)
        real_flush(fd, path)

    monkeypatch.setattr(log._disk, "flush_data", slow_flush)
    covered: list[int] = []
    thread = threading.Thread(target=lambda: covered.append(log.flush()))
    thread.start()
    assert flushing.wait(60)
    monkeypatch.setattr(log._disk, "flush_data", real_flush)
    for offset in range(END, END + 60):
        log.append([data_batch(offset, 1)])
    assert log.read(END + 59, EVERYTHING, 1) == data_batch(END + 59, 1)
    assert log.read(0, EVERYTHING, 1) == BATCHES[0]
    go_on.set()
    thread.join(60)
    assert covered == [END] == [log.flushed_offset]


def test_epochs_are_kept_in_memory_and_in_the_checkpoint(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(epoch_batches(0, 1, [3]))
    log.append([*epoch_batches(4, 3, [2]), *epoch_batches(7, 4, [1])])
    expected = [(1, 0), (3, 4), (4, 7)]
    assert log.epochs.entries == expected
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n3\n1 0\n3 4\n4 7\n"
    log.close()
    assert open_log(tmp_path).epochs.entries == expected


def test_only_the_first_epoch_checkpoint_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failover doesn't wait for it. The first one shows that there were records."""
    log = open_log(tmp_path)
    flushes: list[int] = []
    monkeypatch.setattr(os, "fdatasync", flushes.append)
    monkeypatch.setattr(os, "fsync", flushes.append)
    log.append(epoch_batches(0, 1, [3]))
    assert len(flushes) == 2, "the file and its folder"
    log.append(epoch_batches(4, 3, [2]))
    log.append(epoch_batches(7, 4, [1]))
    assert len(flushes) == 2
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n3\n1 0\n3 4\n4 7\n"


@pytest.mark.parametrize(
    "text", ["", "0\n0\n", "0\n1\n9 9\n", "0\n2\n1 0\n2 3\n", "0\n2\n1 0\n", "\x00\x00\x00"]
)
def test_a_wrong_epoch_checkpoint_is_made_anew_from_the_log(
    log: MetadataLog, tmp_path: Path, text: str
) -> None:
    """KAFKA-16541: Kafka trusted a checkpoint that was written late, or that a power cut tore. Here the log
    itself says where each epoch starts."""
    log.close()
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(text)
    assert open_log(tmp_path).epochs.entries == [(1, 0)]
    assert path.read_text() == "0\n1\n1 0\n"


def test_indexes_are_those_of_their_segments(tmp_path: Path) -> None:
    batches = epoch_batches(0, 1, [30] * 60)
    write_log(tmp_path, batches, LogConfig(segment_bytes=20_000))
    assert len(segment_names(tmp_path)) > 2
    for name in segment_names(tmp_path):
        segment = tmp_path / name
        index = SegmentIndex(int(name[:20]))
        position = 0
        for batch in split_batches(segment.read_bytes())[0]:
            index.add(batch.header.last_offset, batch.header.max_timestamp, position)
            position += batch.header.size_bytes
        index.close()
        assert segment.with_suffix(".index").read_bytes() == index.offset_file()
        assert segment.with_suffix(".timeindex").read_bytes() == index.time_file()
        assert len(index) >= 2


@pytest.mark.parametrize(
    "damage", [b"", b"\x01", bytes(10 * 1024), None], ids=["empty", "short", "padded", "gone"]
)
def test_wrong_indexes_are_made_anew(log: MetadataLog, tmp_path: Path, damage: bytes | None) -> None:
    log.close()
    before = contents(tmp_path)
    for path in (*tmp_path.glob("*.index"), *tmp_path.glob("*.timeindex")):
        path.unlink() if damage is None else path.write_bytes(damage)
    open_log(tmp_path).close()
    assert contents(tmp_path) == before


def test_a_log_that_was_closed_can_be_appended_to_and_its_indexes_stay_right(tmp_path: Path) -> None:
    batches = epoch_batches(0, 1, [30] * 20)
    (tmp_path / "at once").mkdir()
    write_log(tmp_path / "at once", batches, LogConfig())
    (tmp_path / "in steps").mkdir()
    for batch in batches:
        write_log(tmp_path / "in steps", [batch], LogConfig())
    at_once, in_steps = contents(tmp_path / "at once"), contents(tmp_path / "in steps")
    assert at_once == in_steps


@pytest.mark.parametrize("offset", range(END + 2))
def test_truncation_drops_the_batch_that_holds_the_offset_and_all_behind_it(
    tmp_path: Path, offset: int
) -> None:
    batches = [*BATCHES[:8], *epoch_batches(81, 4, [3, 1, 1, 1, 20, 6])]
    assert base_offsets(batches)[8] == 81
    write_log(tmp_path, batches)
    log = open_log(tmp_path)
    kept = [batch for batch in batches if split_batches(batch)[0][0].header.last_offset < offset]
    end = split_batches(kept[-1])[0][0].header.next_offset if kept else 0
    assert log.truncate_to(offset) == end == log.end_offset
    assert all_bytes(log) == b"".join(kept)
    assert log.epochs.entries == [(1, 0), (4, 81)][: (end > 0) + (end > 81)]
    assert log.flushed_offset == end
    log.append(epoch_batches(end, 9, [1]))
    assert all_bytes(log) == b"".join([*kept, *epoch_batches(end, 9, [1])])
    log.close()
    again = open_log(tmp_path)
    assert (again.end_offset, again.torn_tail) == (end + 2, None)
    assert again.epochs.latest_epoch == 9


def test_truncation_is_seen_by_the_cache(log: MetadataLog) -> None:
    assert log.read(END - 1, EVERYTHING, 10**6) == BATCHES[-1]
    end = log.truncate_to(END - 1)
    assert end == base_offsets(BATCHES)[-1]
    other = data_batch(end, 1, 2, value_size=33)
    log.append([other])
    assert log.read(end, EVERYTHING, 10**6) == other
    assert log.read(end - 1, EVERYTHING, 10**6) == BATCHES[-2] + other


def test_truncation_below_the_start_is_refused(log: MetadataLog) -> None:
    log.delete_before(60)
    with pytest.raises(OffsetBelowStart, match="offset 59 is below the log's start, 60"):
        log.truncate_to(59)


def test_trimming_deletes_segments_wholly_below(log: MetadataLog, tmp_path: Path) -> None:
    starts = [int(name[:20]) for name in segment_names(tmp_path)]
    (tmp_path / f"{starts[1]:020d}.snapshot").write_bytes(b"a producer snapshot of Java's")
    assert not log.delete_before(starts[1] - 1)
    assert log.start_offset == starts[1] - 1
    assert segment_names(tmp_path)[0] == f"{0:020d}.log"
    assert log.delete_before(starts[2] + 1)
    log.flush()
    assert [int(name[:20]) for name in segment_names(tmp_path)] == starts[2:]
    assert not list(tmp_path.glob(f"{starts[1]:020d}.*"))
    assert log.start_offset == starts[2] + 1
    assert log.epochs.entries == [(1, starts[2] + 1)]
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == f"0\n1\n1 {starts[2] + 1}\n"
    with pytest.raises(OffsetBelowStart):
        log.read(starts[2], EVERYTHING, 1)
    with pytest.raises(OffsetBelowStart):
        next(log.batches(starts[2]))
    assert not log.delete_before(starts[2])
    log.close()
    again = open_log(tmp_path)
    assert (again.start_offset, again.end_offset) == (starts[2], END)
    assert again.epochs.entries == [(1, starts[2])]


def test_trimming_everything_keeps_the_last_segment(log: MetadataLog, tmp_path: Path) -> None:
    assert log.delete_before(EVERYTHING)
    log.flush()
    assert log.start_offset == log.end_offset == END
    assert len(segment_names(tmp_path)) == 1
    log.append([data_batch(END, 1)])
    assert log.read(END, EVERYTHING, 1) == data_batch(END, 1)


def test_trimming_waits_neither_for_the_disk_nor_for_a_flush(
    log: MetadataLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop trims, and a flush may take a second on a busy disk."""
    names = segment_names(tmp_path)
    flushes: list[object] = []
    with monkeypatch.context() as watched, log._flushing:  # a flush is in progress
        watched.setattr(os, "fsync", flushes.append)
        watched.setattr(os, "fdatasync", flushes.append)
        trimmed = threading.Thread(target=log.delete_before, args=(EVERYTHING,), daemon=True)
        trimmed.start()
        trimmed.join(10)
        assert not trimmed.is_alive()
    assert flushes == []
    assert segment_names(tmp_path) == names
    log.flush()
    assert segment_names(tmp_path) == names[-1:]


def test_starting_over_at_the_end_of_a_snapshot(log: MetadataLog, tmp_path: Path) -> None:
    log.reset_to(500)
    assert (log.start_offset, log.end_offset, log.flushed_offset, log.size_bytes) == (500, 500, 500, 0)
    assert segment_names(tmp_path) == [f"{500:020d}.log"]
    assert log.epochs == EpochCache()
    assert log.read(500, EVERYTHING, 100) == b""
    log.append([data_batch(500, 6)])
    assert log.read(500, EVERYTHING, 100) == data_batch(500, 6)
    log.close()
    again = open_log(tmp_path)
    assert (again.start_offset, again.end_offset) == (500, 501)
    assert again.epochs.entries == [(6, 500)]


def test_starting_over_leaves_nothing_of_what_was_trimmed(log: MetadataLog, tmp_path: Path) -> None:
    """After a power cut, the log would have a gap."""
    log.delete_before(EVERYTHING)
    log.reset_to(500)
    assert segment_names(tmp_path) == [f"{500:020d}.log"]
    log.append([data_batch(500, 6)])
    again = open_log(tmp_path)
    assert (again.start_offset, again.end_offset) == (500, 501)


def test_a_folder_without_segments_begins_where_it_is_told_to(tmp_path: Path) -> None:
    log = MetadataLog.open(tmp_path, open_log(tmp_path)._disk, empty_start_offset=77)
    assert log.end_offset == 0
    (tmp_path / f"{0:020d}.log").unlink()
    log = MetadataLog.open(tmp_path, log._disk, empty_start_offset=77)
    assert (log.start_offset, log.end_offset) == (77, 77)
