"""Tables of a log with every record type agree with Kafka's tools, with the controller's state, and between
batch and stream."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.kafka import administration, broker_metadata
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.eventful_cluster import EventfulCluster
from compat.harness.kafka.metadata_shell import visible_in_shell, wait_for_image
from compat.harness.kafka.metadata_values import kafka_name
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools, MetadataRecord, segments
from compat.harness.tables.lake_checks import check_derived, read_table
from compat.harness.tables.spark_session import FEW_ROWS
from compat.harness.tables.state_tables import StateTables, state_tables
from compat.harness.tables.tables_as_state import derived_state
from compat.harness.waiting import wait_until
from kraft_wire.log.batch import iter_records, split_batches
from kraft_wire.log.files import PARTITION_FOLDER
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.messages import METADATA_RECORDS
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.spark.options import Options
from kraft_wire.spark.pipeline.run import run
from kraft_wire.spark.tables.inputs import FrameTables, Tables
from kraft_wire.spark.tables.partitions import reassignments
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.snapshots.snapshot_store import SnapshotStore
from kraft_wire.storage.snapshots.state_loading import load_state
from kraft_wire.tabular.arrow_types import RECORDS_SCHEMA
from kraft_wire.tabular.table_names import CORRUPT, table_names
from tests.support.spark_readers import batch

SPARK_SETTINGS = FEW_ROWS
OFFSETS_A_TRIGGER = 61
METADATA_TYPES = set(METADATA_RECORDS.values())
NO_LONGER_WRITTEN = {
    "FenceBrokerRecord": "since metadata.version 3.3-IV2 it is a BrokerRegistrationChangeRecord",
    "UnfenceBrokerRecord": "the same",
    "ZkMigrationStateRecord": "Kafka 4 migrates nothing from ZooKeeper",
}
NOT_ASKED_OF_OURS = {"AccessControlEntryRecord", "RemoveAccessControlEntryRecord"}
"""The records whose requests our controller doesn't serve yet."""
UNKNOWN_TO_THE_DUMP = {"UnregisterControllerRecord"}
"""The records that only Kafka 4.4 has, whose tools are not published."""
OPEN_REASSIGNMENTS = ("cancelled", "replaced", "removed")


class StoppedCluster(NamedTuple):
    """A stopped cluster: the kind of its controller, the controller's folder, and a copy of the folder from
    the time when the cluster had a release that the metadata shell can read."""

    kind: ControllerKind
    folder: Path
    folder_at_release: Path

    @property
    def snapshots(self) -> list[SnapshotId]:
        """The first and the newest snapshot that the controller itself wrote at that release."""
        ids = [id for id in _snapshot_store(self.folder_at_release).ids if id != BOOTSTRAP_SNAPSHOT_ID]
        assert len(ids) > 1
        return [ids[0], ids[-1]]


def _snapshot_store(folder: Path) -> SnapshotStore:
    return SnapshotStore(folder / PARTITION_FOLDER, Disk())


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=pytest.mark.xdist_group(kind)) for kind in ("ours", "java")],
)
def past(
    request: pytest.FixtureRequest, tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StoppedCluster]:
    kind: ControllerKind = request.param
    for workspace in make_workspace(tmp_path_factory.mktemp("past")):
        security = administration.SECURITY if kind == "java" else administration.TOKENS
        cluster = EventfulCluster(workspace, tool_server, kind, security)
        _run(cluster, with_acls=kind == "java")
        for broker in cluster.brokers.values():
            broker.stop()
        cluster.controller.stop()
        yield StoppedCluster(kind, cluster.controller.data_folder, _folder_at_release(cluster))


def _run(cluster: EventfulCluster, *, with_acls: bool) -> None:
    cluster.start_controller()
    cluster.add_brokers()
    address = administration.add_sasl_listener(cluster)
    cluster.start_brokers()
    _administer(cluster)
    if with_acls:
        administration.create_and_delete_acls(cluster)
    administration.create_and_expire_tokens(cluster, address)
    _change_features(cluster)


def _change_features(cluster: EventfulCluster) -> None:
    administration.change_features(cluster)
    _copy_folder_at_release(cluster)
    administration.unregister_an_observer(cluster)


def _administer(cluster: EventfulCluster) -> None:
    """Do what both controllers are asked for."""
    _use_topics(cluster)
    _configure(cluster)
    for topic in OPEN_REASSIGNMENTS:
        cluster.create_topic_on(topic, [1])
    _kill_brokers(cluster)
    for topic in OPEN_REASSIGNMENTS:
        administration.start_reassignment(cluster, topic, [3])
    administration.cancel_reassignment(cluster, "cancelled", [3])
    cluster.delete_topic("removed")
    _elect_out_of_sync_leader(cluster)
    administration.start_reassignment(cluster, "replaced", [2])
    administration.wait_for_replicas(cluster, "replaced", [2])
    administration.reassign(cluster, "moved", [2])
    _end_with_failures(cluster)
    administration.create_and_delete_users(cluster)
    administration.create_and_delete_quotas(cluster)


def _use_topics(cluster: EventfulCluster) -> None:
    cluster.create_topic_on("orders", [1, 2, 3], [2, 3, 1])
    cluster.create_topic_on("doomed", [1, 2])
    cluster.create_topic_on("unclean", [3, 2])
    cluster.create_topic_on("preferred", [2, 1])
    cluster.create_topic_on("moved", [1], [1])
    cluster.delete_topic("doomed")
    cluster.tools.topics(cluster.bootstrap, "--alter", "--topic", "orders", "--partitions", "4")
    clients.produce(cluster.bootstrap, "moved", [b"message"] * 100, idempotent=True)


def _configure(cluster: EventfulCluster) -> None:
    cluster.configure("topics", "orders", "--add-config", "retention.ms=3600000,min.insync.replicas=2")
    cluster.configure("topics", "orders", "--delete-config", "retention.ms")
    cluster.configure("brokers", "1", "--add-config", "log.cleaner.threads=2")
    cluster.configure("brokers", "", "--add-config", "message.max.bytes=2000000")
    cluster.configure("client-metrics", "all", "--add-config", "interval.ms=60000")
    cluster.configure("groups", "readers", "--add-config", "consumer.session.timeout.ms=50000")
    cluster.cordon_a_log_dir(1)


def _kill_brokers(cluster: EventfulCluster) -> None:
    """Kill two brokers; the last in-sync replica dies last."""
    cluster.kill(2)
    cluster.kill(3)


def _elect_out_of_sync_leader(cluster: EventfulCluster) -> None:
    """Start the out-of-sync broker and make it the leader."""
    cluster.start_again(2)
    cluster.elect("unclean", "unclean", leader=2)


def _end_with_failures(cluster: EventfulCluster) -> None:
    cluster.start_again(3)
    cluster.wait_until_led_by("preferred", 1)
    broker_metadata.wait_for_isr([cluster.brokers[1]], "preferred", [1, 2])
    cluster.elect("preferred", "preferred", leader=2)
    cluster.break_a_log_dir(2)
    cluster.unregister(3)
    cluster.restart_in_a_transaction()


def _folder_at_release(cluster: EventfulCluster) -> Path:
    return cluster.workspace.folder / "at-release"


def _copy_folder_at_release(cluster: EventfulCluster) -> None:
    """Copy the folder while the log is being written."""
    copy = _folder_at_release(cluster)
    wait_until(lambda: _copied(cluster.controller.data_folder, copy), "a copy without renamed files")
    (segment,) = segments(copy)
    batches, _ = split_batches(segment.read_bytes())
    segment.write_bytes(b"".join(batch.data for batch in batches))


def _copied(folder: Path, copy: Path) -> bool:
    """Copy a folder; return False if one of its files was renamed or deleted meanwhile."""
    shutil.rmtree(copy, ignore_errors=True)
    try:
        shutil.copytree(folder, copy)
    except shutil.Error:
        return False
    return True


def _replayed(folder: Path) -> tuple[MetadataState, int]:
    """Return the state that our controller derives from a log, and the log's last offset."""
    state, last_offset = MetadataState(), -1
    for segment in segments(folder):
        for each in split_batches(segment.read_bytes())[0]:
            for record in () if each.header.is_control else iter_records(each):
                state.replay(decode_metadata_record(record.value)[0], record.offset)
            last_offset = each.header.last_offset
    return state, last_offset


@pytest.fixture(scope="module")
def records(spark: SparkSession, past: StoppedCluster) -> DataFrame:
    """The records as a batch reads them."""
    read = spark.read.format("kraft").load(str(past.folder)).toArrow()
    return spark.createDataFrame(read.sort_by("offset")).cache()


@pytest.fixture(scope="module")
def typed(past: StoppedCluster) -> dict[str, pa.Table]:
    """All tables as the data source decodes them from the log's bytes."""
    return {
        table: pa.Table.from_pylist(batch(past.folder, table=table), Options((), table).schema)
        for table in table_names()
    }


@pytest.fixture(scope="module")
def tables(spark: SparkSession, typed: dict[str, pa.Table]) -> Tables:
    return FrameTables(spark, {table: spark.createDataFrame(rows) for table, rows in typed.items()})


def _rows(records: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = records.toArrow().cast(RECORDS_SCHEMA).sort_by("offset").to_pylist()
    return rows


def _state(tables: Tables, offset: int) -> StateTables:
    (state,) = derived_state(tables, as_of_offset=offset).values()
    return state


def test_every_type_that_can_be_written_is_there(records: DataFrame, past: StoppedCluster) -> None:
    expected = METADATA_TYPES - NO_LONGER_WRITTEN.keys()
    if past.kind == "ours":
        expected -= NOT_ASKED_OF_OURS
    assert {row["type"] for row in _rows(records)} & METADATA_TYPES == expected


def test_the_records_are_those_of_kafkas_dump(
    records: DataFrame, past: StoppedCluster, tools: KafkaTools
) -> None:
    rows = [row for row in _rows(records) if row["type"] in METADATA_TYPES - UNKNOWN_TO_THE_DUMP]
    found = [MetadataRecord(kafka_name(row["type"]), row["version"], json.loads(row["json"])) for row in rows]
    assert found == tools.metadata_records(*segments(past.folder))


def test_a_stream_in_small_steps_reads_what_a_batch_reads(
    spark: SparkSession, records: DataFrame, past: StoppedCluster, tmp_path: Path
) -> None:
    rows = _rows(records)
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(OFFSETS_A_TRIGGER)}
    read = spark.readStream.format("kraft").options(**options).load(str(past.folder))
    writer = read.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "table"))
    query.awaitTermination()
    triggers = [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]
    assert len(triggers) >= len(rows) / OFFSETS_A_TRIGGER > 2
    assert _rows(spark.read.schema(read.schema).parquet(str(tmp_path / "table"))) == rows


def test_the_pipeline_keeps_the_tables(
    spark: SparkSession, typed: dict[str, pa.Table], tables: Tables, past: StoppedCluster, tmp_path: Path
) -> None:
    """The pipeline takes typed records from the JSON of the records."""
    run(spark, {"path": str(past.folder)}, tmp_path, None, print)
    for table in typed.keys() - {CORRUPT}:
        assert read_table(tmp_path, table) == typed[table].sort_by("offset").to_pylist(), table
    check_derived(spark, tmp_path, tables)


def test_derived_tables_are_the_controllers_own_state(tables: Tables, past: StoppedCluster) -> None:
    """Compare them with the snapshots that the controller wrote, and with the end of the log."""
    for id in past.snapshots:
        found = visible_in_shell(_state(tables, id.end_offset - 1))
        assert found == visible_in_shell(state_tables(load_state(_snapshot_store(past.folder), id))), id
    state, last_offset = _replayed(past.folder)
    assert _state(tables, last_offset) == state_tables(state)


def test_derived_tables_are_what_the_metadata_shell_shows(
    tables: Tables, past: StoppedCluster, tools: KafkaTools
) -> None:
    """Compare them with the shell on the log and on the newest snapshot, whose end is among those above."""
    (segment,) = segments(past.folder_at_release)
    _, last_offset = _replayed(past.folder_at_release)
    found = visible_in_shell(_state(tables, last_offset))
    assert found == wait_for_image(tools, segment, found)
    store = _snapshot_store(past.folder_at_release)
    newest = past.snapshots[-1]
    state = visible_in_shell(state_tables(load_state(store, newest)))
    assert state == wait_for_image(tools, store.path(newest), state)


def test_reassignments_ended_as_they_did(tables: Tables, past: StoppedCluster) -> None:
    """The one that replaces another begins with ours from the replicas before that one."""
    left_behind = [1] if past.kind == "ours" else [1, 3]
    found = reassignments(tables).orderBy("start_offset").collect()
    rows = [(row.topic, row.adding_replicas, row.removing_replicas, row.outcome) for row in found]
    assert rows == [
        ("cancelled", [3], [1], "cancelled"),
        ("replaced", [3], [1], "replaced"),
        ("removed", [3], [1], "topic_removed"),
        ("replaced", [2], left_behind, "completed"),
        ("moved", [2], [1], "completed"),
    ]
