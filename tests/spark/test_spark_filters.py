"""Filters that Spark passes: what isn't read, and what Spark must still filter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from kraft_wire.spark.source import FilteringLogReader, LogReader
from tests.support.metadata_logs import LogWriter
from tests.support.spark_readers import Row, batch, batch_reader, rows

Make = Callable[..., LogWriter]
CLUSTER, OFFSET, TYPE, JSON = ("cluster",), ("offset",), ("type",), ("json",)


@pytest.fixture
def logs(make_log: Make) -> list[LogWriter]:
    """Two clusters: one with offsets 0 to 12, the first 4 of them only in a snapshot; one with 0 to 3."""
    one, two = make_log("a"), make_log("b", "two")
    one.append()
    one.snapshot()
    one.roll()
    one.trim(4)
    for _ in range(3):
        one.append()
    two.append()
    return [one, two]


def filtered(path: Path, filters: list[Filter], **options: str) -> tuple[list[Row], list[Filter]]:
    reader = batch_reader(path, pushFilters="true", **options)
    assert isinstance(reader, FilteringLogReader)
    left = list(reader.pushFilters(filters))
    return rows(reader, reader.partitions()), left


def is_wanted(row: Row, each: Filter) -> bool:
    """Apply a filter as Spark does."""
    value = row[each.attribute[0]]  # type: ignore[attr-defined]
    match each:
        case EqualTo() | EqualNullSafe():
            return bool(value == each.value)
        case In():
            return value in each.value
        case GreaterThan():
            return bool(value > each.value)
        case GreaterThanOrEqual():
            return bool(value >= each.value)
        case LessThan():
            return bool(value < each.value)
        case LessThanOrEqual():
            return bool(value <= each.value)
        case IsNotNull():
            return value is not None
    raise AssertionError(each)


DONE: list[list[Filter]] = [
    [EqualTo(CLUSTER, "one")],
    [IsNotNull(CLUSTER), EqualNullSafe(CLUSTER, "two"), IsNotNull(OFFSET), IsNotNull(TYPE)],
    [In(CLUSTER, ("two", "three"))],
    [In(CLUSTER, ("one", "two")), EqualTo(CLUSTER, "one")],
    [EqualTo(OFFSET, 6)],
    [EqualTo(OFFSET, 3)],
    [EqualTo(OFFSET, 100)],
    [GreaterThan(OFFSET, 2), LessThan(OFFSET, 8)],
    [GreaterThanOrEqual(OFFSET, 2), LessThanOrEqual(OFFSET, 8), GreaterThan(OFFSET, 5)],
    [GreaterThan(OFFSET, 8), LessThan(OFFSET, 3)],
    [LessThan(OFFSET, 3)],
    [EqualTo(TYPE, "TopicRecord")],
    [In(TYPE, ("LeaderChangeMessage", "SnapshotHeaderRecord"))],
    [In(TYPE, ("LeaderChangeMessage", "TopicRecord")), EqualTo(TYPE, "TopicRecord")],
    [EqualTo(TYPE, "NoSuchRecord")],
    [EqualTo(CLUSTER, "two"), GreaterThan(OFFSET, 1), EqualTo(TYPE, "TopicRecord")],
]


@pytest.mark.parametrize("filters", DONE, ids=str)
def test_rows_that_are_not_wanted_are_not_read(
    tmp_path: Path, logs: list[LogWriter], filters: list[Filter]
) -> None:
    found, left = filtered(tmp_path, filters)
    assert left == []
    assert found == [row for row in batch(tmp_path) if all(is_wanted(row, each) for each in filters)]


NOT_DONE: list[Filter] = [
    In(OFFSET, (5, 7)),
    EqualTo(OFFSET, None),
    EqualTo(JSON, "{}"),
    IsNull(CLUSTER),
    IsNotNull(JSON),
    Not(EqualTo(CLUSTER, "one")),
    StringStartsWith(CLUSTER, "o"),
    In(TYPE, ("TopicRecord", None)),
]


@pytest.mark.parametrize("each", NOT_DONE, ids=str)
def test_what_spark_has_to_look_at_is_handed_back(
    tmp_path: Path, logs: list[LogWriter], each: Filter
) -> None:
    found, left = filtered(tmp_path, [each])
    assert len(left) == 1
    assert left[0] is each
    everything = batch(tmp_path)
    if isinstance(each, In) and each.attribute == OFFSET:
        assert {row["offset"] for row in found} == {5, 6, 7}
    else:
        assert found == everything


def test_pieces_that_are_not_wanted_are_none(tmp_path: Path, logs: list[LogWriter]) -> None:
    reader = batch_reader(tmp_path, pushFilters="true")
    assert isinstance(reader, FilteringLogReader)
    reader.pushFilters([GreaterThan(OFFSET, 5), EqualTo(CLUSTER, "one")])
    (split,) = reader.partitions()
    assert [Path(piece.path).name for piece in split.pieces] == [logs[0].segment(4).name]


def test_a_column_of_a_typed_table_is_not_the_type(tmp_path: Path, logs: list[LogWriter]) -> None:
    filters: list[Filter] = [EqualTo(OFFSET, 5), EqualTo(TYPE, "TopicRecord"), IsNotNull(TYPE)]
    found, left = filtered(tmp_path, filters, table="topic", columns="name")
    assert found == [{"name": "topic-5"}]
    assert left == filters[1:]


def test_damage_is_filtered_by_cluster(tmp_path: Path, logs: list[LogWriter]) -> None:
    for log in logs:
        path = log.segment(log.log.start_offset)
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    found, left = filtered(tmp_path, [EqualTo(CLUSTER, "one"), GreaterThan(OFFSET, 20)], table="corrupt")
    assert [(row["cluster"], row["offset"]) for row in found] == [("one", 10)]
    assert left == [GreaterThan(OFFSET, 20)]


def test_only_where_it_is_asked_for_a_reader_takes_filters(tmp_path: Path, logs: list[LogWriter]) -> None:
    """Spark refuses such a reader unless its setting allows it."""
    assert type(batch_reader(tmp_path)) is LogReader
    assert "pushFilters" not in vars(LogReader)
