"""Everything happens to a cluster: the tables of its metadata log are what Kafka's tools and the controller
itself say of it, and a batch and a stream say the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from spark_readers import batch

from compat.conftest import make_workspace
from compat.harness import administration, clients, views
from compat.harness.cluster import ControllerKind
from compat.harness.eventful_cluster import EventfulCluster
from compat.harness.histories import Form, form_of
from compat.harness.lakes import check_derived, read_table
from compat.harness.metadata_values import kafka_name
from compat.harness.shell_image import as_shown, wait_for_image
from compat.harness.spark import FEW_ROWS
from compat.harness.table_forms import forms_as_of
from compat.harness.tool_server import ToolServer
from compat.harness.tools import KafkaTools, MetadataRecord, segments
from kraft_wire.log.batch import iter_records, split_batches
from kraft_wire.log.files import PARTITION_FOLDER
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.messages import METADATA_RECORDS
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.spark.options import CORRUPT, Options, table_names
from kraft_wire.spark.pipeline.run import run
from kraft_wire.spark.record_tables import RECORDS
from kraft_wire.spark.tables.inputs import FrameTables, Tables
from kraft_wire.spark.tables.partitions import reassignments
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.snapshots import SnapshotStore
from kraft_wire.storage.state_loading import load_state

SPARK_SETTINGS = FEW_ROWS
OFFSETS_A_TRIGGER = 61
METADATA_TYPES = set(METADATA_RECORDS.values())
NO_LONGER_WRITTEN = {
    "FenceBrokerRecord": "since metadata.version 3.3-IV2 it is a BrokerRegistrationChangeRecord",
    "UnfenceBrokerRecord": "the same",
    "ZkMigrationStateRecord": "Kafka 4 migrates nothing from ZooKeeper",
}
NOT_ASKED_OF_OURS = {
    "AccessControlEntryRecord",
    "ClientQuotaRecord",
    "DelegationTokenRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveUserScramCredentialRecord",
    "UnregisterControllerRecord",
    "UserScramCredentialRecord",
}
"""Our controller doesn't serve the requests that make a controller write these yet (``controller/apis.py``),
nor AlterPartitionReassignments and UpdateFeatures."""
UNKNOWN_TO_THE_DUMP = {"UnregisterControllerRecord"}
"""Kafka 4.4 has it, whose tools are not published."""
OPEN_MOVES = ("cancelled", "replaced", "removed")


class Past(NamedTuple):
    """A cluster that is gone: who its controller was, that one's folder, and a copy of it as it was at the
    release that the metadata shell knows."""

    kind: ControllerKind
    folder: Path
    folder_at_release: Path

    @property
    def snapshots(self) -> list[SnapshotId]:
        """The first and the newest that the controller wrote itself at that release."""
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
) -> Iterator[Past]:
    kind: ControllerKind = request.param
    for workspace in make_workspace(tmp_path_factory.mktemp("past")):
        security = administration.SECURITY if kind == "java" else {}
        cluster = EventfulCluster(workspace, tool_server, kind, security)
        if kind == "java":
            _live_with_java(cluster)
        else:
            _live_with_ours(cluster)
        for broker in cluster.brokers.values():
            broker.stop()
        cluster.controller.stop()
        yield Past(kind, cluster.controller.data_folder, _folder_at_release(cluster))


def _live_with_java(cluster: EventfulCluster) -> None:
    cluster.start_controller()
    cluster.add_brokers()
    address = administration.let_clients_log_in(cluster)
    cluster.start_brokers()
    _use_topics(cluster)
    _configure(cluster)
    for topic in OPEN_MOVES:
        cluster.create_topic_on(topic, [1])
    _lose_brokers(cluster)
    for topic in OPEN_MOVES:
        administration.begin_to_move(cluster, topic, [3])
    administration.cancel_the_move(cluster, "cancelled", [3])
    cluster.delete_topic("removed")
    _win_broker_back(cluster)
    administration.begin_to_move(cluster, "replaced", [2])
    administration.wait_for_replicas(cluster, "replaced", [2])
    administration.move(cluster, "moved", [2])
    _end_with_one_less(cluster)
    administration.make_and_remove_acls(cluster)
    administration.make_and_remove_users(cluster)
    administration.make_and_remove_quotas(cluster)
    administration.make_and_remove_tokens(cluster, address)
    administration.move_features(cluster)
    _keep_folder_at_release(cluster)
    administration.unregister_an_observer(cluster)


def _live_with_ours(cluster: EventfulCluster) -> None:
    cluster.start_controller()
    cluster.add_brokers()
    cluster.start_brokers()
    _use_topics(cluster)
    _configure(cluster)
    _lose_brokers(cluster)
    _win_broker_back(cluster)
    _end_with_one_less(cluster)
    _keep_folder_at_release(cluster)


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


def _lose_brokers(cluster: EventfulCluster) -> None:
    """The last one that is in sync goes last."""
    cluster.kill(2)
    cluster.kill(3)


def _win_broker_back(cluster: EventfulCluster) -> None:
    """And let it lead, out of sync as it is."""
    cluster.start_again(2)
    cluster.elect("unclean", "unclean", leader=2)


def _end_with_one_less(cluster: EventfulCluster) -> None:
    cluster.start_again(3)
    cluster.wait_until_led_by("preferred", 1)
    views.wait_for_isr([cluster.brokers[1]], "preferred", [1, 2])
    cluster.elect("preferred", "preferred", leader=2)
    cluster.break_a_log_dir(2)
    cluster.unregister(3)
    cluster.die_amid_a_transaction()


def _folder_at_release(cluster: EventfulCluster) -> Path:
    return cluster.workspace.folder / "at-release"


def _keep_folder_at_release(cluster: EventfulCluster) -> None:
    """The log is copied while it is being written."""
    copy = _folder_at_release(cluster)
    shutil.copytree(cluster.controller.data_folder, copy)
    (segment,) = segments(copy)
    batches, _ = split_batches(segment.read_bytes())
    segment.write_bytes(b"".join(batch.data for batch in batches))


def _replayed(folder: Path) -> tuple[MetadataState, int]:
    """What our controller makes of a log, and its last offset."""
    state, last_offset = MetadataState(), -1
    for segment in segments(folder):
        for each in split_batches(segment.read_bytes())[0]:
            for record in () if each.header.is_control else iter_records(each):
                state.replay(decode_metadata_record(record.value)[0], record.offset)
            last_offset = each.header.last_offset
    return state, last_offset


@pytest.fixture(scope="module")
def records(spark: SparkSession, past: Past) -> DataFrame:
    """As a batch reads them."""
    read = spark.read.format("kraft").load(str(past.folder)).toArrow()
    return spark.createDataFrame(read.sort_by("offset")).cache()


@pytest.fixture(scope="module")
def typed(past: Past) -> dict[str, pa.Table]:
    """All tables as the data source reads them out of the log's bytes."""
    return {
        table: pa.Table.from_pylist(batch(past.folder, table=table), Options((), table).schema)
        for table in table_names()
    }


@pytest.fixture(scope="module")
def tables(spark: SparkSession, typed: dict[str, pa.Table]) -> Tables:
    return FrameTables(spark, {table: spark.createDataFrame(rows) for table, rows in typed.items()})


def _rows(records: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = records.toArrow().cast(RECORDS).sort_by("offset").to_pylist()
    return rows


def _form(tables: Tables, offset: int) -> Form:
    (form,) = forms_as_of(tables, as_of_offset=offset).values()
    return form


def test_every_type_that_can_be_written_is_there(records: DataFrame, past: Past) -> None:
    expected = METADATA_TYPES - NO_LONGER_WRITTEN.keys()
    if past.kind == "ours":
        expected -= NOT_ASKED_OF_OURS
    assert {row["type"] for row in _rows(records)} & METADATA_TYPES == expected


def test_the_records_are_those_of_kafkas_dump(records: DataFrame, past: Past, tools: KafkaTools) -> None:
    rows = [row for row in _rows(records) if row["type"] in METADATA_TYPES - UNKNOWN_TO_THE_DUMP]
    found = [MetadataRecord(kafka_name(row["type"]), row["version"], json.loads(row["json"])) for row in rows]
    assert found == tools.metadata_records(*segments(past.folder))


def test_a_stream_in_small_steps_reads_what_a_batch_reads(
    spark: SparkSession, records: DataFrame, past: Past, tmp_path: Path
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
    spark: SparkSession, typed: dict[str, pa.Table], tables: Tables, past: Past, tmp_path: Path
) -> None:
    """It takes typed records out of the records' JSON."""
    run(spark, {"path": str(past.folder)}, tmp_path, None, print)
    for table in typed.keys() - {CORRUPT}:
        assert read_table(tmp_path, table) == typed[table].sort_by("offset").to_pylist(), table
    check_derived(spark, tmp_path, tables)


def test_derived_tables_are_the_controllers_own_state(tables: Tables, past: Past) -> None:
    """As it stands in snapshots that it wrote, and at the end."""
    for id in past.snapshots:
        found = as_shown(_form(tables, id.end_offset - 1))
        assert found == as_shown(form_of(load_state(_snapshot_store(past.folder), id))), id
    state, last_offset = _replayed(past.folder)
    assert _form(tables, last_offset) == form_of(state)


def test_derived_tables_are_what_the_metadata_shell_shows(
    tables: Tables, past: Past, tools: KafkaTools
) -> None:
    """Of the log, and of the newest snapshot, whose end is one of those above."""
    (segment,) = segments(past.folder_at_release)
    _, last_offset = _replayed(past.folder_at_release)
    found = as_shown(_form(tables, last_offset))
    assert found == wait_for_image(tools, segment, found)
    store = _snapshot_store(past.folder_at_release)
    newest = past.snapshots[-1]
    state = as_shown(form_of(load_state(store, newest)))
    assert state == wait_for_image(tools, store.path(newest), state)


def test_reassignments_ended_as_they_did(tables: Tables, past: Past) -> None:
    found = reassignments(tables).orderBy("start_offset").collect()
    rows = [(row.topic, row.adding_replicas, row.removing_replicas, row.outcome) for row in found]
    expected = [
        ("cancelled", [3], [1], "cancelled"),
        ("replaced", [3], [1], "replaced"),
        ("removed", [3], [1], "topic_removed"),
        ("replaced", [2], [1, 3], "completed"),
        ("moved", [2], [1], "completed"),
    ]
    assert rows == (expected if past.kind == "java" else [])
