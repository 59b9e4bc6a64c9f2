"""Derived tables agree with the controller's state at the same offset, on random histories and on a log of
Java."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from compat.harness.tables.random_history import BEGINNING, History
from compat.harness.tables.spark_session import FEW_ROWS
from compat.harness.tables.state_tables import Interval, StateTables, intervals_in, state_tables
from compat.harness.tables.tables_as_state import derived_state, partition_value, plain
from kraft_wire.log.batch import iter_records, split_batches
from kraft_wire.log.files import PARTITION_FOLDER
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.spark.tables.brokers import broker_sessions
from kraft_wire.spark.tables.churn import churn
from kraft_wire.spark.tables.configs import config_changes, config_history
from kraft_wire.spark.tables.failovers import failovers
from kraft_wire.spark.tables.features import feature_history
from kraft_wire.spark.tables.inputs import SourceTables, Tables
from kraft_wire.spark.tables.partitions import (
    isr_history,
    leadership,
    partition_history,
    reassignments,
    under_replicated,
)
from kraft_wire.spark.tables.topics import topic_history
from kraft_wire.spark.tables.typed_records import RecordsTables
from kraft_wire.tabular.arrow_types import RECORDS_SCHEMA
from tests.support.metadata_logs import LogWriter
from tests.support.metadata_records import partition_record, topic_record, uuid

JAVA_LOG = Path(__file__).parents[3] / "tests/log/data/java-4.4.0"
SPARK_SETTINGS = FEW_ROWS
HISTORIES = [
    History("one", 1, 300),
    History("two", 2, 220),
    History("gap", 11, 260, gap=(120, 170)),  # where it begins a transaction is open
    History("trimmed", 4, 150, gap=(-1, 40)),
]


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Tables:
    rows = [row for history in HISTORIES for row in history.rows]
    return RecordsTables(spark.createDataFrame(pa.Table.from_pylist(rows, RECORDS_SCHEMA)).cache())


@pytest.mark.parametrize("offset", [0, 77, 145, 1000])
def test_tables_as_of_an_offset_are_what_a_controller_has(tables: Tables, offset: int) -> None:
    found = derived_state(tables, as_of_offset=offset)
    for history in HISTORIES:
        assert found[history.cluster] == history.states[min(offset, len(history.states) - 1)]


def test_tables_as_of_a_time_are_what_a_controller_had_then(tables: Tables) -> None:
    found = derived_state(tables, as_of_time=BEGINNING + timedelta(minutes=199, seconds=59))
    for history in HISTORIES:
        assert found[history.cluster] == history.states[min(199, len(history.states) - 1)]


def check_intervals(
    frame: DataFrame,
    key: tuple[str, ...],
    value_of: Callable[[Row], Any],
    expected: Callable[[list[StateTables]], Any],
) -> None:
    found: dict[str, list[Interval]] = {}
    for row in frame.collect():
        one = (tuple(row[column] for column in key), value_of(row), row.start_offset, row.end_offset)
        found.setdefault(row.cluster, []).append(one)
        assert (row.end_timestamp is None) == (row.end_offset is None) == (row.duration_ms is None)
        if row.end_offset is not None:
            assert row.duration_ms == (row.end_offset - row.start_offset) * 60_000
            assert row.end_timestamp - row.start_timestamp == timedelta(milliseconds=row.duration_ms)
        of_snapshot = {"gap": 170, "trimmed": 40}.get(row.cluster) == row.start_offset
        assert row.known_start is not of_snapshot
    for history in HISTORIES:
        intervals = found[history.cluster]
        assert len(intervals) == len(set(intervals))
        assert set(intervals) == expected(history.states)


def test_partitions_histories_are_the_controllers(tables: Tables) -> None:
    check_intervals(
        partition_history(tables),
        ("topic_id", "partition"),
        partition_value,
        lambda states: intervals_in(states, "partitions"),
    )


def test_leadership_is_who_led(tables: Tables) -> None:
    check_intervals(
        leadership(tables),
        ("topic_id", "partition"),
        lambda row: (row.leader, row.leader_epoch),
        lambda states: intervals_in(states, "partitions", lambda one: (one[3], one[4])),
    )


def test_isr_history_is_who_was_in_sync(tables: Tables) -> None:
    check_intervals(
        isr_history(tables),
        ("topic_id", "partition"),
        lambda row: plain(row.isr),
        lambda states: intervals_in(states, "partitions", lambda one: one[2]),
    )


def missing(one: Any) -> Any:
    _, replicas, isr, *_ = one
    expected = set(replicas) - set(one[9])
    return tuple(sorted(expected - set(isr))) if len(isr) < len(expected) else None


def test_under_replicated_is_when_replicas_were_missing(tables: Tables) -> None:
    check_intervals(
        under_replicated(tables),
        ("topic_id", "partition"),
        lambda row: plain(row.missing_replicas),
        lambda states: intervals_in(states, "partitions", missing),
    )


def test_reassignments_are_when_replicas_moved(tables: Tables) -> None:
    check_intervals(
        reassignments(tables),
        ("topic_id", "partition"),
        lambda row: plain((row.adding_replicas, row.removing_replicas)),
        lambda states: intervals_in(
            states, "partitions", lambda one: (one[9], one[8]) if one[8] or one[9] else None
        ),
    )


def state_name(one: Any) -> Any:
    fenced, in_shutdown = one[5], one[6]
    return one[0], one[1], "fenced" if fenced else "controlled_shutdown" if in_shutdown else "active"


def test_broker_sessions_are_when_brokers_were_what(tables: Tables) -> None:
    check_intervals(
        broker_sessions(tables),
        ("broker_id",),
        lambda row: (row.broker_epoch, row.incarnation_id, row.state),
        lambda states: intervals_in(states, "brokers", state_name),
    )


def test_topics_configs_and_features_have_their_histories(tables: Tables) -> None:
    check_intervals(
        topic_history(tables),
        ("topic_id",),
        lambda row: row.topic,
        lambda states: intervals_in(states, "topics", lambda one: one[0]),
    )
    check_intervals(
        config_history(tables),
        ("resource_type", "resource_name", "name"),
        lambda row: row.value,
        lambda states: intervals_in(states, "configs"),
    )
    check_intervals(
        feature_history(tables),
        ("feature",),
        lambda row: row.level,
        lambda states: intervals_in(states, "features"),
    )


def test_config_changes_lead_from_each_value_to_the_next(tables: Tables) -> None:
    changes: dict[str, dict[Any, Any]] = {}
    for row in config_changes(tables).orderBy("cluster", "timestamp").collect():
        values = changes.setdefault(row.cluster, {})
        key = row.resource_type, row.resource_name, row.name
        assert row.old_value == values.get(key)
        values[key] = row.value
        assert not row.with_topic or row.value is None
    for history in HISTORIES[:2]:
        left = {key: value for key, value in changes[history.cluster].items() if value is not None}
        assert left == history.states[-1]["configs"]


def epochs_of(history: History) -> list[tuple[Any, ...]]:
    rows = [row for row in history.rows if not row["in_snapshot"]]
    found: list[tuple[Any, ...]] = []
    previous = None
    for epoch in sorted({row["epoch"] for row in rows}):
        own = [row for row in rows if row["epoch"] == epoch]
        leader = [row for row in own if row["type"] == "LeaderChangeMessage"]
        leader_id = int(leader[0]["json"].split('"leaderId":')[1].split(",")[0]) if leader else None
        waited = None if previous is None else (own[0]["offset"] - previous[2]) * 60_000
        found.append((epoch, leader_id, own[-1]["offset"], own[0]["offset"], len(own), waited))
        previous = found[-1]
    return found


def test_failovers_are_the_logs_epochs(tables: Tables) -> None:
    for history in HISTORIES:
        rows = failovers(tables).filter(f"cluster = '{history.cluster}'").orderBy("epoch").collect()
        assert [
            (row.epoch, row.leader_id, row.last_offset, row.start_offset, row.records, row.leaderless_ms)
            for row in rows
        ] == epochs_of(history)
        for earlier, later in pairwise(rows):
            assert (later.previous_epoch, later.previous_leader_id) == (earlier.epoch, earlier.leader_id)
            assert (earlier.end_offset, earlier.end_timestamp) == (later.start_offset, later.start_timestamp)
        assert rows[-1].end_offset is None


def test_churn_counts_what_each_hour_saw(tables: Tables) -> None:
    rows = churn(tables).collect()
    for history in HISTORIES:
        of_cluster = {row.hour: row for row in rows if row.cluster == history.cluster}
        written = [row["timestamp"] for row in history.rows if not row["in_snapshot"]]
        hours = {time.replace(minute=0, tzinfo=None) for time in written}
        assert set(of_cluster) == hours
        for hour, row in of_cluster.items():
            assert row.records == sum(time.replace(minute=0, tzinfo=None) == hour for time in written)
            assert 0 <= row.elections <= row.partition_changes
    changes = [row for row in HISTORIES[1].rows if row["type"] == PartitionChangeRecord().NAME]
    counted = sum(row.partition_changes for row in rows if row.cluster == "two")
    assert 0 < counted <= len(changes)


def tables_of(
    spark: SparkSession,
    *records: tuple[int, bool, Message],
    minute: Callable[[int], int] = lambda offset: offset,
) -> Tables:
    """Return the tables of entries (offset, whether the record is in a snapshot of that offset, record)."""
    rows = [
        {
            "cluster": "one",
            "offset": offset,
            "epoch": 1,
            "timestamp": BEGINNING + timedelta(minutes=minute(offset)),
            "committed": True,
            "in_snapshot": in_snapshot,
            "type": record.NAME,
            "version": record.MAX_VERSION,
            "json": msgspec.json.encode(record.to_json(record.MAX_VERSION)).decode(),
        }
        for offset, in_snapshot, record in records
    ]
    return RecordsTables(spark.createDataFrame(pa.Table.from_pylist(rows, RECORDS_SCHEMA)))


def test_a_topic_that_was_created_again_in_a_gap_is_configured_as_the_snapshot_says(
    spark: SparkSession,
) -> None:
    tables = tables_of(
        spark,
        (0, False, FeatureLevelRecord("metadata.version", 33)),
        (1, False, topic_record(1, "a")),
        (2, False, ConfigRecord(2, "a", "x", "1")),
        (9, True, FeatureLevelRecord("metadata.version", 33)),
        (9, True, topic_record(2, "a")),
        (9, True, ConfigRecord(2, "a", "x", "2")),
    )
    found = config_history(tables).select("name", "value", "start_offset", "end_offset").collect()
    assert set(map(tuple, found)) == {("x", "1", 2, 9), ("x", "2", 9, None)}
    assert [(row.offset, row.value) for row in config_changes(tables).collect()] == [(2, "1")]


def test_what_ends_before_it_began_lasts_for_no_time(spark: SparkSession) -> None:
    """By the clock of the next leader, the end is before the beginning."""
    levels = [FeatureLevelRecord("group.version", level) for level in (1, 0, 1)]
    tables = tables_of(spark, *[(n, False, level) for n, level in enumerate(levels)], minute=lambda n: -n)
    rows = feature_history(tables).orderBy("start_offset").collect()
    assert [(row.start_offset, row.duration_ms) for row in rows] == [(0, 0), (2, None)]


def test_eligible_leaders_of_a_snapshot_are_cleared_by_the_log_after_it(spark: SparkSession) -> None:
    """The log continues after a gap; topic and partition have another history before it."""
    before = topic_record(1, "a"), partition_record(1, 0)
    eligible = partition_record(1, 0)
    eligible.isr, eligible.eligible_leader_replicas, eligible.last_known_elr = (0,), (1,), (2,)
    version = FeatureLevelRecord("metadata.version", 33)
    snapshot = [version, topic_record(1, "a"), eligible, topic_record(2, "b"), _of_topic(2, eligible)]
    tables = tables_of(
        spark,
        (0, False, version),
        *[(offset, False, record) for offset, record in enumerate(before, 1)],
        *[(9, True, record) for record in snapshot],
        (10, False, ClearElrRecord("a")),
        (11, False, ClearElrRecord("c")),
    )
    state = MetadataState.from_snapshot(snapshot, 9)
    state.replay(ClearElrRecord("a"), 10)
    assert derived_state(tables)["one"]["partitions"] == state_tables(state)["partitions"]
    rows = partition_history(tables).orderBy("topic", "start_offset").collect()
    assert [
        (row.topic, row.start_offset, row.end_offset, row.eligible_leader_replicas, row.partition_epoch)
        for row in rows
    ] == [("a", 2, 9, [], 0), ("a", 9, 10, [1], 0), ("a", 10, None, [], 1), ("b", 9, None, [1], 0)]


def _of_topic(topic: int, partition: PartitionRecord) -> PartitionRecord:
    return msgspec.structs.replace(partition, topic_id=uuid(topic))


def test_tables_of_a_log_that_grows_all_end_where_it_did_then(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "node")
    log.append(3)
    tables = SourceTables(spark, {"path": str(tmp_path)})
    before = tables.read("topic", "offset").count()
    log.append(2)
    assert (before, tables.read("records", "offset").count()) == (3, 4)
    assert SourceTables(spark, {"path": str(tmp_path)}).read("records", "offset").count() == 6
    ending = '{"one": {"epoch": 1, "offset": 2}}'
    named = SourceTables(spark, {"path": str(tmp_path), "endingOffsets": ending})
    assert named.read("records", "offset").count() == 2
    log.close()


def java_state(until: int) -> MetadataState:
    state = MetadataState()
    for segment in sorted((JAVA_LOG / PARTITION_FOLDER).glob("*.log")):
        for batch in split_batches(segment.read_bytes())[0]:
            for record in [] if batch.header.is_control else iter_records(batch):
                if record.offset <= until:
                    state.replay(decode_metadata_record(record.value)[0], record.offset)
    return state


@pytest.mark.parametrize("offset", [100, 1_000_000])
def test_tables_of_javas_log_are_what_a_controller_has(spark: SparkSession, offset: int) -> None:
    tables = SourceTables(spark, {"path": str(JAVA_LOG)})
    (found,) = derived_state(tables, as_of_offset=offset).values()
    assert found == state_tables(java_state(offset))
