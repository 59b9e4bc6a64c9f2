"""Batches of logs on disk, by the options."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kraft_wire.log.batch import encode_batch
from kraft_wire.logs.ranges import DataLoss
from kraft_wire.spark.options import BadOption
from kraft_wire.spark.reading import CorruptSegment, UnreadableRecords
from tests.support.metadata_logs import LogWriter
from tests.support.spark_readers import Row, batch, batch_reader

JAVA_LOG = Path(__file__).parents[1] / "log/data/java-4.4.0"
Make = Callable[..., LogWriter]


@pytest.fixture
def log(make_log: Make) -> LogWriter:
    """Offsets 0 to 9 with a snapshot of them, and 10 to 13 in epoch 2; everything below 12 is committed."""
    log = make_log("one")
    for _ in range(3):
        log.append()
    log.snapshot()
    log.roll()
    log.lead(2)
    log.append()
    log.commit(12)
    return log


def places(rows: list[Row]) -> list[tuple[int, int]]:
    return [(row["offset"], row["epoch"]) for row in rows if not row["in_snapshot"]]


def state(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["in_snapshot"]]


def at(cluster: str, epoch: int, offset: int) -> str:
    return json.dumps({cluster: {"epoch": epoch, "offset": offset}})


ALL = [*((offset, 1) for offset in range(10)), *((offset, 2) for offset in range(10, 14))]


def test_a_batch_reads_all_there_is_with_what_is_known_of_it(tmp_path: Path, log: LogWriter) -> None:
    rows = batch(tmp_path)
    assert places(rows) == ALL
    assert [row["committed"] for row in rows] == [True] * 12 + [None] * 2
    assert [row["type"] for row in rows[:3]] == ["LeaderChangeMessage", "TopicRecord", "TopicRecord"]
    assert rows[5]["timestamp"] == datetime.fromtimestamp(4, UTC), "its batch's"
    assert {row["cluster"] for row in rows} == {"one"}


def test_committed_rows_are_all_that_is_read_if_that_is_asked_for(tmp_path: Path, log: LogWriter) -> None:
    rows = batch(tmp_path, tail="committed")
    assert places(rows) == ALL[:12]
    assert {row["committed"] for row in rows} == {True}
    assert places(batch(tmp_path, tail="committed", startingOffsets=at("one", 2, 13))) == []
    assert places(batch(tmp_path, tail="committed", endingOffsets=at("one", 2, 14))) == ALL[:12]


def test_where_nothing_is_known_to_be_committed_no_row_is(tmp_path: Path, make_log: Make) -> None:
    log = make_log("one")
    assert [row["committed"] for row in batch(tmp_path)] == [None]
    assert batch(tmp_path, tail="committed") == []
    log.commit(1)
    assert len(batch(tmp_path, tail="committed")) == 1


def test_the_snapshot_is_the_state_and_the_log_follows(tmp_path: Path, log: LogWriter) -> None:
    rows = batch(tmp_path, startingOffsets="snapshot")
    assert places(rows) == ALL[10:]
    assert len(state(rows)) == 10 + 2, "the topics, header and footer"
    assert {(row["offset"], row["epoch"], row["committed"]) for row in state(rows)} == {(9, 1, True)}
    assert {row["timestamp"] for row in state(rows)} == {datetime.fromtimestamp(9, UTC)}
    types = [row["type"] for row in state(rows)]
    assert types == ["SnapshotHeaderRecord", *["TopicRecord"] * 10, "SnapshotFooterRecord"]
    assert rows[:12] == state(rows), "first"


def test_a_trimmed_log_begins_with_a_snapshot(tmp_path: Path, log: LogWriter) -> None:
    log.snapshot()
    log.trim(10)
    rows = batch(tmp_path)
    assert (len(state(rows)), places(rows)) == (12, ALL[10:])
    assert {row["offset"] for row in batch(tmp_path, table="topic") if row["in_snapshot"]} == {9}


def test_typed_tables_are_read_from_snapshots_too(tmp_path: Path, log: LogWriter) -> None:
    rows = batch(tmp_path, table="topic", startingOffsets="snapshot", columns="name,in_snapshot")
    assert [row["name"] for row in rows if row["in_snapshot"]] == [f"topic-{n}" for n in range(10)]
    assert [row["name"] for row in rows if not row["in_snapshot"]] == ["topic-11", "topic-12", "topic-13"]


def test_ranges_are_what_lies_between_two_positions(tmp_path: Path, log: LogWriter) -> None:
    between = {"startingOffsets": at("one", 1, 3), "endingOffsets": at("one", 2, 12)}
    assert places(batch(tmp_path, **between)) == ALL[3:12]
    assert places(batch(tmp_path, endingOffsets=at("one", 1, 5))) == ALL[:5]


def test_clusters_that_the_end_does_not_name_are_not_read(
    tmp_path: Path, log: LogWriter, make_log: Make
) -> None:
    make_log("two", "two")
    assert {row["cluster"] for row in batch(tmp_path)} == {"one", "two"}
    rows = batch(tmp_path, startingOffsets=at("one", 1, 9))
    assert [(row["cluster"], row["offset"]) for row in rows[-2:]] == [("one", 13), ("two", 0)]
    assert {row["cluster"] for row in batch(tmp_path, endingOffsets=at("one", 1, 9))} == {"one"}


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"startingOffsets": at("one", 1, 5)}, "cluster one: the start of the range is offset 5.*deleted"),
        ({"startingOffsets": at("one", 2, 15)}, "offset 15 of epoch 2: the log was truncated"),
        ({"startingOffsets": at("one", 1, 12)}, "offset 12 of epoch 1: .* records of another epoch"),
        ({"endingOffsets": at("one", 2, 15)}, "cluster one: the end of the range is offset 15"),
        (
            {"endingOffsets": at("no", 2, 15)},
            "cluster no: .* no log of this cluster.*clusters with logs: one",
        ),
        ({"startingOffsets": at("no", 2, 15)}, "cluster no: offset 15 of epoch 2 was asked for"),
    ],
)
def test_a_range_that_is_not_there_is_an_error_or_starts_over(
    tmp_path: Path, log: LogWriter, options: dict[str, str], what: str
) -> None:
    log.trim(10)
    with pytest.raises(DataLoss, match=what):
        batch(tmp_path, **options)
    rows = batch(tmp_path, failOnDataLoss="false", **options)
    if '"no"' in options.get("endingOffsets", ""):
        assert rows == []
    else:
        assert (len(state(rows)), places(rows)) == (12, ALL[10:])


def test_a_batch_that_would_read_nothing_is_an_error(tmp_path: Path, log: LogWriter) -> None:
    with pytest.raises(BadOption, match="latest is for streams"):
        batch(tmp_path, startingOffsets="latest")


def test_java_s_log_is_read_from_its_beginning_and_from_its_snapshots() -> None:
    everything = batch(JAVA_LOG)
    assert [row["offset"] for row in everything] == list(range(len(everything)))
    committed = [row for row in everything if row["offset"] < 107]
    assert {row["committed"] for row in committed} == {True}
    rows = batch(JAVA_LOG, startingOffsets="snapshot")
    assert [row for row in rows if not row["in_snapshot"]] == everything[107:]
    assert {(row["offset"], row["epoch"]) for row in state(rows)} == {(106, 3)}
    assert {row["timestamp"] for row in state(rows)} == {everything[106]["timestamp"]}


def test_damage_is_an_error_that_says_where_and_what_to_do(tmp_path: Path, log: LogWriter) -> None:
    _flip(log.segment(), 200)
    with pytest.raises(
        CorruptSegment, match=rf"{log.segment()}: no batch at byte \d+ \(offset \d\): ch.*corrupt=row"
    ):
        batch(tmp_path)
    _flip(log.segment(), 200)
    _flip(log.segment(10), -1)
    with pytest.raises(CorruptSegment, match=rf"{log.segment(10)}: no batch at byte \d+ \(offset 11\)"):
        batch_reader(tmp_path).partitions()
    assert places(batch(tmp_path, endingOffsets=at("one", 2, 11))) == ALL[:11]


def test_damage_is_a_row_if_that_is_asked_for(tmp_path: Path, log: LogWriter) -> None:
    _flip(log.segment(), 200)
    _flip(log.segment(10), -1)
    found = batch(tmp_path, corrupt="row")
    damaged = batch(tmp_path, table="corrupt")
    assert [(row["cluster"], row["file"]) for row in damaged] == [
        ("one", str(log.segment())),
        ("one", str(log.segment(10))),
    ]
    assert damaged[1]["offset"] == 11
    assert damaged[0]["reason"].startswith("checksum")
    gone = range(damaged[0]["offset"], damaged[0]["offset"] + 3)
    assert places(found) == [each for each in ALL[:11] if each[0] not in gone]
    assert batch(tmp_path, table="corrupt", columns="offset")[1] == {"offset": 11}


def test_whole_logs_have_no_row_in_corrupt(tmp_path: Path, log: LogWriter) -> None:
    assert batch(tmp_path, table="corrupt") == []
    os.truncate(log.segment(10), log.segment(10).stat().st_size - 1)
    (log.partition / "durable-floor").unlink()
    assert batch(tmp_path, table="corrupt") == []


def test_a_record_that_cannot_be_decoded_is_an_error_that_says_where(tmp_path: Path, log: LogWriter) -> None:
    log.log.append([encode_batch(14, 2, 1, [b"\x01\x7f\x00"])])
    with pytest.raises(
        UnreadableRecords, match=f"{log.segment(10)}, from byte 0 on: .*there is no record 127"
    ):
        batch(tmp_path)


def _flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
