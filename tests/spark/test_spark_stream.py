"""Streams of logs on disk: what each trigger reads while logs grow, roll, and are truncated or trimmed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Thread

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from kraft_wire.logs.admission import shares
from kraft_wire.logs.ranges import DataLoss
from kraft_wire.spark.options import BadOption
from kraft_wire.spark.reading import CorruptSegment
from tests.support.metadata_logs import LogWriter
from tests.support.spark_readers import Row, Stream, batch, rows, source, stream_reader

JAVA_LOG = Path(__file__).parents[1] / "log/data/java-4.4.0"
Make = Callable[..., LogWriter]


def offsets(rows: list[Row]) -> list[int]:
    return [row["offset"] for row in rows if not row.get("in_snapshot")]


@pytest.fixture
def log(make_log: Make) -> LogWriter:
    """Offsets 0 to 9 of epoch 1."""
    log = make_log("a")
    for _ in range(3):
        log.append()
    return log


def test_a_stream_begins_with_what_comes_next(tmp_path: Path, log: LogWriter) -> None:
    stream = Stream(tmp_path)
    assert stream.position == {"one": {"epoch": 1, "offset": 10}}
    assert stream.trigger() == []
    log.append()
    assert offsets(stream.trigger()) == [10, 11, 12]
    assert stream.position == {"one": {"epoch": 1, "offset": 13}}
    assert stream.trigger() == []


def test_a_stream_begins_at_one_position_however_often_spark_asks(tmp_path: Path, log: LogWriter) -> None:
    reader = stream_reader(tmp_path)
    start = reader.initialOffset()
    log.append()
    end = reader.latestOffset(start, ReadAllAvailable())
    log.append()
    assert reader.initialOffset() == start == end, "where it begins is what its first trigger writes down"
    assert rows(reader, reader.partitions(start, end)) == []
    there = reader.latestOffset(end, ReadAllAvailable())
    assert offsets(rows(reader, reader.partitions(end, there))) == list(range(10, 16))


@pytest.mark.parametrize(
    ("start", "repeated"), [("latest", []), ("snapshot", [10, 11, 12]), ("earliest", [*range(13)])]
)
def test_a_stream_that_was_killed_in_its_first_trigger_repeats_it(
    tmp_path: Path, log: LogWriter, start: str, repeated: list[int]
) -> None:
    log.snapshot()
    log.append()
    end = {"one": {"epoch": 1, "offset": 13}}
    log.append()
    log.snapshot()
    reader = stream_reader(tmp_path, startingOffsets=start)
    again = reader.partitions(reader.initialOffset(), end)
    assert offsets(rows(reader, again)) == repeated
    there = reader.latestOffset(end, ReadAllAvailable())
    assert offsets(rows(reader, reader.partitions(end, there))) == [13, 14, 15]


def test_a_stream_reads_what_a_batch_of_the_same_range_does(tmp_path: Path, log: LogWriter) -> None:
    log.commit(100)
    stream = Stream(tmp_path, startingOffsets="earliest")
    stream.trigger()
    log.roll()
    log.append()
    stream.trigger()
    log.lead(2)
    log.snapshot()
    log.roll()
    log.append(5)
    stream.restart()
    stream.trigger()
    there = batch(tmp_path, endingOffsets=json.dumps(stream.position))
    assert offsets(there) == list(range(19))
    known = {row["offset"] for row in stream.rows if row["committed"]}
    assert [{**row, "committed": None} for row in stream.rows] == [
        {**row, "committed": None} for row in there
    ]
    assert known <= {row["offset"] for row in there if row["committed"]}


@pytest.mark.parametrize("split", range(1, 7))
def test_a_stream_from_any_snapshot_and_batches_of_its_triggers_agree(
    tmp_path: Path, log: LogWriter, split: int
) -> None:
    log.snapshot()
    log.roll()
    log.lead(3)
    log.append(4)
    log.trim(10)
    stream = Stream(tmp_path, startingOffsets="snapshot")
    assert stream.position == {"one": {"epoch": 1, "offset": 10, "snapshot": True}}
    stream.limit = ReadMaxRows(split)
    triggers = 0
    while stream.trigger():
        triggers += 1
    assert triggers == -(-5 // split), "the snapshot comes with the first"
    found = batch(
        tmp_path, startingOffsets=json.dumps(stream.start), endingOffsets=json.dumps(stream.position)
    )
    assert stream.rows == found == batch(tmp_path)


@pytest.mark.parametrize("start", ["earliest", "snapshot"])
def test_java_s_log_is_read_as_by_a_batch(start: str) -> None:
    stream = Stream(JAVA_LOG, startingOffsets=start, maxOffsetsPerTrigger="7")
    while stream.trigger():
        pass
    assert stream.rows == batch(JAVA_LOG, startingOffsets=start)


def test_clusters_that_appear_are_read_from_their_beginning(
    tmp_path: Path, log: LogWriter, make_log: Make
) -> None:
    stream = Stream(f"{tmp_path}/*")
    two = make_log("b", "two")
    two.append()
    three = make_log("c", "three")
    three.append(5)
    three.snapshot()
    three.roll()
    three.trim(6)
    log.append(1)
    rows = stream.trigger()
    assert [(row["cluster"], row["offset"]) for row in rows if not row["in_snapshot"]] == [
        ("one", 10),
        *(("two", offset) for offset in range(4)),
    ]
    assert {(row["cluster"], row["offset"]) for row in rows if row["in_snapshot"]} == {("three", 5)}
    three.append(1)
    assert offsets(stream.trigger()) == [6]


def test_a_stream_may_begin_at_positions(tmp_path: Path, log: LogWriter, make_log: Make) -> None:
    make_log("b", "two")
    stream = Stream(tmp_path, startingOffsets='{"one": {"epoch": 1, "offset": 8}}')
    assert [(row["cluster"], row["offset"]) for row in stream.trigger()] == [
        ("one", 8),
        ("one", 9),
        ("two", 0),
    ]
    with pytest.raises(DataLoss, match=r"cluster three: .* no log of this cluster"):
        Stream(tmp_path, startingOffsets='{"three": {"epoch": 1, "offset": 8}}')
    with pytest.raises(BadOption, match="a stream has no end"):
        source(tmp_path, endingOffsets='{"one": {"epoch": 1, "offset": 8}}').streamReader(None)  # type: ignore[arg-type]


# What becomes of logs.


def test_a_log_may_be_rolled_and_trimmed_up_to_the_position(tmp_path: Path, log: LogWriter) -> None:
    stream = Stream(tmp_path)
    for _ in range(3):
        log.append()
        assert len(stream.trigger()) == 3
        log.snapshot()
        log.roll()
        log.trim(log.end_offset)
        assert stream.trigger() == []
    assert offsets(stream.rows) == list(range(10, 19))


LOSSES: dict[str, tuple[Callable[[LogWriter], None], str]] = {}


def lost_by(what: str) -> Callable[[Callable[[LogWriter], None]], Callable[[LogWriter], None]]:
    def note(loss: Callable[[LogWriter], None]) -> Callable[[LogWriter], None]:
        LOSSES[loss.__name__] = (loss, what)
        return loss

    return note


@lost_by("offset 10 of epoch 1: the records after it were deleted; there are offsets 14 to")
def trimmed_above_the_position(log: LogWriter) -> None:
    log.append()
    log.lead(2)
    log.snapshot()
    log.roll()
    log.append()
    log.trim(14)


@lost_by("offset 10 of epoch 1: the log was truncated, or is another one; there are offsets 0 to offset 8")
def cut_below_the_position(log: LogWriter) -> None:
    log.cut(7)
    log.lead(2)


@lost_by("offset 10 of epoch 1: the log was truncated, and has records of another epoch there")
def cut_below_the_position_and_grown_beyond(log: LogWriter) -> None:
    log.cut(7)
    log.lead(2)
    log.append(5)


@lost_by("offset 10 of epoch 1: the log was truncated, and has records of another epoch there")
def cut_below_the_position_and_grown_to_it(log: LogWriter) -> None:
    log.cut(7)
    log.lead(2)
    log.append(2)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_lost_is_an_error(tmp_path: Path, log: LogWriter, loss: str, restarts: bool) -> None:
    lose, what = LOSSES[loss]
    stream = Stream(tmp_path)
    lose(log)
    if restarts:
        stream.restart()
    with pytest.raises(DataLoss, match=f"cluster one: .*{what}.*failOnDataLoss=false"):
        stream.trigger()


@pytest.mark.parametrize("loss", LOSSES)
def test_or_the_stream_starts_over_from_the_snapshot(tmp_path: Path, log: LogWriter, loss: str) -> None:
    lose, _ = LOSSES[loss]
    stream = Stream(tmp_path, failOnDataLoss="false")
    lose(log)
    first = stream.trigger()
    has_snapshot = any(row["in_snapshot"] for row in first)
    assert first == batch(tmp_path, startingOffsets="snapshot")
    assert has_snapshot == (loss == "trimmed_above_the_position")
    end_offset = log.end_offset
    log.append()
    assert offsets(stream.trigger()) == [end_offset, end_offset + 1, end_offset + 2]


def test_a_snapshot_that_goes_before_it_was_read_is_an_error_or_the_next_is_taken(
    tmp_path: Path, log: LogWriter
) -> None:
    first = log.snapshot()
    log.roll()
    log.trim(10)
    streams = [Stream(tmp_path, startingOffsets="earliest", failOnDataLoss=on) for on in ("true", "false")]
    log.append()
    log.snapshot()
    log.checkpoint(first).unlink()
    with pytest.raises(DataLoss, match=r"offset 10 of epoch 1: there is no such snapshot.*these ends: 13"):
        streams[0].trigger()
    assert {row["offset"] for row in streams[1].trigger() if row["in_snapshot"]} == {12}


def test_a_cluster_that_is_gone_is_an_error_or_is_waited_for(
    tmp_path: Path, log: LogWriter, make_log: Make
) -> None:
    two = make_log("b", "two")
    streams = [Stream(tmp_path, failOnDataLoss=on) for on in ("true", "false")]
    away = tmp_path.with_name(f"{tmp_path.name}-away")
    two.partition.parent.rename(away)
    log.append(1)
    with pytest.raises(DataLoss, match="cluster two: offset 1 of epoch 1 was asked for: there is no log"):
        streams[0].trigger()
    assert offsets(streams[1].trigger()) == [10]
    away.rename(two.partition.parent)
    two.append(1)
    assert [(row["cluster"], row["offset"]) for row in streams[1].trigger()] == [("two", 1)]


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_cluster_that_goes_amid_what_is_available_is_an_error_or_is_waited_for(
    tmp_path: Path, log: LogWriter, make_log: Make, has_begun: bool
) -> None:
    two = make_log("b", "two")
    two.append(9 if has_begun else 3)
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "4" if has_begun else "1"}
    streams = [Stream(tmp_path, failOnDataLoss=on, **options) for on in ("true", "false")]
    for stream in streams:
        stream.available_now()
        stream.trigger()
        assert ("two" in {row["cluster"] for row in stream.rows}) == has_begun
    away = tmp_path.with_name(f"{tmp_path.name}-away")
    two.partition.parent.rename(away)
    with pytest.raises(DataLoss, match=r"cluster two: offset .* was asked for: there is no log"):
        streams[0].trigger()
    while streams[1].trigger():
        pass
    streams[1].restart()
    streams[1].available_now()
    away.rename(two.partition.parent)
    assert streams[1].trigger() == [], "it wasn't available then"
    streams[1].available_now()
    while streams[1].trigger():
        pass
    found = [(row["cluster"], row["offset"]) for row in streams[1].rows]
    assert sorted(found) == [(row["cluster"], row["offset"]) for row in batch(tmp_path)]


def test_a_cluster_that_goes_before_its_snapshot_was_read_is_waited_for(
    tmp_path: Path, log: LogWriter, make_log: Make
) -> None:
    two = make_log("b", "two")
    two.snapshot()
    options = {"startingOffsets": "snapshot", "maxOffsetsPerTrigger": "1", "failOnDataLoss": "false"}
    stream = Stream(tmp_path, **options)
    away = tmp_path.with_name(f"{tmp_path.name}-away")
    two.partition.parent.rename(away)
    while stream.trigger():
        pass
    assert {row["cluster"] for row in stream.rows} == {"one"}
    away.rename(two.partition.parent)
    assert {(row["cluster"], row["in_snapshot"]) for row in stream.trigger()} == {("two", True)}


def test_a_copy_that_goes_further_is_read_on(tmp_path: Path, log: LogWriter, make_log: Make) -> None:
    """The leader's folder is missing, a follower's has the same records."""
    follower = make_log("b")
    for _ in range(3):
        follower.append()
    stream = Stream(tmp_path)
    log.append()
    assert len(stream.trigger()) == 3
    follower.append()
    follower.lead(2)
    assert offsets(stream.trigger()) == [13]


# Committed rows.


def test_only_what_is_committed_is_read_if_that_is_asked_for(tmp_path: Path, log: LogWriter) -> None:
    log.commit(5)
    stream = Stream(tmp_path, startingOffsets="earliest", tail="committed")
    assert offsets(stream.trigger()) == list(range(5))
    log.cut(7)
    log.lead(2)
    assert stream.trigger() == []
    log.append()
    log.commit(9)
    assert offsets(stream.trigger()) == [5, 6, 7, 8]
    assert {row["committed"] for row in stream.rows} == {True}


def test_a_stream_that_read_all_waits_until_as_much_is_committed(tmp_path: Path, log: LogWriter) -> None:
    log.commit(5)
    stream = Stream(tmp_path)
    committed = Stream(tmp_path, tail="committed")
    committed.position = stream.position
    assert committed.trigger() == []
    log.append()
    log.commit(12)
    assert offsets(committed.trigger()) == [10, 11]


class BusyLeader(Thread):
    """A writer that does to a log what a busy cluster might: appends of any size, elections that truncate
    uncommitted records, segments and snapshots."""

    def __init__(self, log: LogWriter, steps: int) -> None:
        super().__init__()
        self._log, self._steps, self._random = log, steps, Random(1)
        self._committed = log.end_offset
        self._ends = [log.end_offset]

    def run(self) -> None:
        kinds = [self._append, self._roll, self._elect, self._snapshot, self._commit]
        for _ in range(self._steps):
            self._random.choices(kinds, [80, 4, 4, 4, 8])[0]()
        self._log.commit(self._log.end_offset)

    def _append(self) -> None:
        self._log.append(self._random.choice([1, 1, 2, 5, 500]))
        self._ends.append(self._log.end_offset)

    def _roll(self) -> None:
        if self._ends[-1] > self._log.log._segments[-1].base_offset:
            self._log.roll()

    def _elect(self) -> None:
        self._log.cut(self._random.choice([end for end in self._ends if end >= self._committed]))
        self._log.lead(self._log.epoch + 1)
        self._ends = [end for end in self._ends if end < self._log.end_offset] + [self._log.end_offset]

    def _snapshot(self) -> None:
        self._log.snapshot()
        self._committed = self._log.end_offset

    def _commit(self) -> None:
        self._committed = self._random.choice([end for end in self._ends if end >= self._committed])
        self._log.commit(self._committed)


def test_what_is_committed_is_read_once_while_a_leader_is_busy(tmp_path: Path, log: LogWriter) -> None:
    stream = Stream(tmp_path, startingOffsets="earliest", tail="committed", columns="offset,epoch,type")
    leader = BusyLeader(log, steps=200)
    leader.start()
    while leader.is_alive():
        stream.trigger()
    leader.join()
    stream.trigger()
    assert stream.rows == batch(tmp_path, columns="offset,epoch,type")
    assert offsets(stream.rows) == list(range(log.end_offset))


# Admission.


def test_the_limit_is_what_the_options_say(tmp_path: Path, log: LogWriter) -> None:
    assert Stream(tmp_path).limit == ReadAllAvailable()
    assert Stream(tmp_path, maxOffsetsPerTrigger="5").limit == ReadMaxRows(5)
    assert Stream(tmp_path, maxBytesPerTrigger="500").limit == ReadMaxBytes(500)


@pytest.mark.parametrize("limit", [1, 2, 7, 40, 1000])
def test_a_trigger_reads_no_more_rows_than_it_may(
    tmp_path: Path, log: LogWriter, make_log: Make, limit: int
) -> None:
    two = make_log("b", "two")
    two.append(30)
    stream = Stream(tmp_path, startingOffsets="earliest", maxOffsetsPerTrigger=str(limit))
    sizes = []
    while found := stream.trigger():
        sizes.append(len(found))
    assert sum(sizes) == 41
    assert sizes == [limit] * (41 // limit) + [41 % limit] * bool(41 % limit)
    by_place = sorted(stream.rows, key=lambda row: (row["cluster"], row["offset"]))
    assert by_place == batch(tmp_path)


def test_bytes_are_whole_batches(tmp_path: Path, log: LogWriter) -> None:
    stream = Stream(tmp_path, startingOffsets="earliest", maxBytesPerTrigger="300")
    sizes = []
    while found := stream.trigger():
        sizes.append(len(found))
    assert sizes == [4, 3, 3]
    assert stream.rows == batch(tmp_path)


def test_what_there_is_is_reported_whatever_a_trigger_may_read(tmp_path: Path, log: LogWriter) -> None:
    stream = Stream(tmp_path, startingOffsets="earliest", maxOffsetsPerTrigger="4")
    stream.trigger()
    assert stream.position == {"one": {"epoch": 1, "offset": 4}}
    assert stream.reported() == {"one": {"epoch": 1, "offset": 10}}
    log.append()
    stream.trigger()
    assert stream.reported() == {"one": {"epoch": 1, "offset": 13}}


def test_available_now_ends_with_what_was_there(tmp_path: Path, log: LogWriter, make_log: Make) -> None:
    stream = Stream(tmp_path, startingOffsets="earliest", maxOffsetsPerTrigger="4")
    stream.available_now()
    log.append()
    make_log("b", "two")
    while stream.trigger():
        log.append(1)
    assert offsets(stream.rows) == list(range(10))
    stream.restart()
    stream.limit = ReadAllAvailable()
    stream.available_now()
    assert len(stream.trigger()) == 3 + 3 + 1
    assert stream.trigger() == []


def test_clusters_share_in_proportion_to_what_they_lag_behind() -> None:
    assert shares({"a": 30, "b": 60, "c": 10}, 10) == {"a": 3, "b": 6, "c": 1}
    assert shares({"a": 1, "b": 999}, 10) == {"a": 0, "b": 10}
    assert shares({"a": 1, "b": 1, "c": 1}, 2) == {"a": 1, "b": 1, "c": 0}
    assert shares({"a": 0, "b": 0}, 5) == {"a": 0, "b": 0}
    assert shares({"a": 2, "b": 3}, 100) == {"a": 40, "b": 60}


# Damage.


def test_damage_at_the_end_is_an_error_before_anything_follows(tmp_path: Path, log: LogWriter) -> None:
    stream = Stream(tmp_path)
    log.append()
    _flip(log.segment(), -1)
    with pytest.raises(CorruptSegment, match="offset 10"):
        stream.trigger()


def test_damage_is_a_row_of_the_range_that_it_lies_in(tmp_path: Path, log: LogWriter) -> None:
    records = Stream(tmp_path, corrupt="row", startingOffsets="earliest")
    damage = Stream(tmp_path, table="corrupt", startingOffsets="earliest", maxOffsetsPerTrigger="1")
    log.append()
    _flip(log.segment(), -1)
    assert offsets(records.trigger()) == list(range(10))
    log.append()
    log.append()
    assert offsets(records.trigger()) == list(range(13, 19))
    ends = []
    while damage.position["one"]["offset"] < log.end_offset:
        damage.trigger()
        ends.append(damage.position["one"]["offset"])
    assert ends == [*range(1, 11), *range(13, 20)]
    assert [row["offset"] for row in damage.rows] == [10]
    assert damage.rows == batch(tmp_path, table="corrupt")


def test_where_damage_cuts_a_log_the_rows_are_those_of_the_batch(tmp_path: Path, log: LogWriter) -> None:
    log.snapshot()
    _flip(log.segment(), 200)
    stream = Stream(tmp_path, corrupt="row", startingOffsets="earliest", maxOffsetsPerTrigger="2")
    while stream.trigger():
        pass
    assert stream.rows == batch(tmp_path, corrupt="row")
    assert len(stream.rows) == 7


def _flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
