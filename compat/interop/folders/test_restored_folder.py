"""An earlier state of a cluster, restored from a lake, is read by Kafka's tools and continued by both
controllers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.kafka import broker_metadata
from compat.harness.kafka.cluster import NEWEST_KAFKA, Cluster, ControllerKind
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.nodes import JvmBroker, JvmController, Node, OurController, run_command
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools, segments, snapshots
from compat.harness.ports import HOST, free_port
from compat.harness.processes import Workspace
from compat.harness.tables.spark_session import quick_session
from compat.harness.waiting import wait_until
from kraft_wire.lake.records import LakeRecords
from kraft_wire.lake.restore import Identity, restore_folder
from kraft_wire.server.entropy import SystemEntropy
from kraft_wire.tabular.record_rows import rows_of_batches

RESTORED_ID = 101
"""A node id that isn't a voter in the log."""
TOPICS = {f"topic-{n}" for n in range(10)}
RELEASE = "4.3.1"
"""The newest release that the shell of 4.3.1 can read."""


class StoppedCluster(NamedTuple):
    """A stopped cluster: its id, its controller's folder, a lake with its log, a lake with its newest
    snapshot and the log after that, and the offset at which a topic was deleted."""

    cluster_id: str
    folder: Path
    lake: Path
    lake_of_snapshot: Path
    doomed_offset: int


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=pytest.mark.xdist_group(kind)) for kind in ("ours", "java")],
)
def past(
    request: pytest.FixtureRequest, tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StoppedCluster]:
    kind: ControllerKind = request.param
    for workspace in make_workspace(tmp_path_factory.mktemp("past")):
        yield _lived(workspace, tool_server, kind)


def _lived(workspace: Workspace, tool_server: ToolServer, kind: ControllerKind) -> StoppedCluster:
    small = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
    cluster = Cluster(workspace, tool_server, kind, RELEASE, small)
    cluster.start(log_dir_counts=[1])
    for topic in sorted(TOPICS):
        cluster.create_topic(topic, 3, 1, config={"retention.ms": "7200000"})
    cluster.create_topic("doomed", 1, 1)
    clients.delete_topic(cluster.admin(), "doomed")
    cluster.wait_for_absence("doomed")
    folder = cluster.controller.data_folder
    wait_until(lambda: len(snapshots(folder)) > 1, "a snapshot beside the one made by formatting")
    cluster.brokers[1].stop()
    cluster.controller.stop()
    lake = _write_lake(folder, workspace.folder / "lake", "earliest")
    lake_of_snapshot = _write_lake(folder, workspace.folder / "lake-of-snapshot", "snapshot")
    return StoppedCluster(cluster.cluster_id, folder, lake, lake_of_snapshot, _removal_offset(lake))


def _write_lake(folder: Path, lake: Path, starting_offsets: str) -> Path:
    """Write a lake whose files have their rows in random order."""
    spark = quick_session()
    try:
        reader = spark.read.format("kraft").option("startingOffsets", starting_offsets)
        records = reader.load(str(folder)).repartition(3)
        records.write.partitionBy("cluster").parquet(str(lake / "records"))
    finally:
        spark.stop()
    return lake


def _removal_offset(lake: Path) -> int:
    removed = ds.dataset(lake / "records").to_table(
        columns=["offset"], filter=pc.field("type") == "RemoveTopicRecord"
    )
    (offset,) = removed.column("offset").to_pylist()
    return int(offset)


def restore(past: StoppedCluster, lake: Path, into: Path, *options: str) -> None:
    common = [f"--target={lake}", f"--cluster={past.cluster_id}", f"--into={into}"]
    done = run_command("pipeline", "restore", *common, f"--node-id={RESTORED_ID}", *options)
    assert done.returncode == 0, done.stderr


def test_kafkas_dump_reads_the_same_records(past: StoppedCluster, tools: KafkaTools, tmp_path: Path) -> None:
    restore(past, past.lake, tmp_path / "restored")
    (segment,) = segments(tmp_path / "restored")
    dumped = tools.dump_log(segment)
    assert dumped.stderr == ""
    assert "isvalid: true" in dumped.stdout and "isvalid: false" not in dumped.stdout
    assert tools.metadata_records(segment) == tools.metadata_records(*segments(past.folder))


def test_kafkas_metadata_shell_shows_the_past(
    past: StoppedCluster, tools: KafkaTools, tmp_path: Path
) -> None:
    for offset, topics in (
        (past.doomed_offset, TOPICS),
        (past.doomed_offset - 1, TOPICS | {"doomed"}),
    ):
        folder = tmp_path / str(offset)
        restore(past, past.lake, folder, f"--as-of-offset={offset}")
        (segment,) = segments(folder)
        tools.wait_for_shell(
            segment,
            "ls",
            "/image/topics/byName",
            expected=lambda printed, topics=topics: set(printed.split()) == topics,  # type: ignore[misc]
        )


@pytest.mark.parametrize("kind", ["ours", "java"])
def test_a_controller_goes_on_from_the_past(
    past: StoppedCluster, kind: ControllerKind, workspace: Workspace, tool_server: ToolServer
) -> None:
    controller = _controller(kind, workspace, tool_server)
    restore(past, past.lake, controller.data_folder, f"--as-of-offset={past.doomed_offset - 1}")
    _assert_serves(controller, past, TOPICS | {"doomed"}, tool_server)


@pytest.mark.parametrize("kind", ["ours", "java"])
def test_a_controller_goes_on_from_a_snapshot(
    past: StoppedCluster, kind: ControllerKind, workspace: Workspace, tool_server: ToolServer
) -> None:
    controller = _controller(kind, workspace, tool_server)
    restore(past, past.lake_of_snapshot, controller.data_folder)
    assert snapshots(controller.data_folder)[0].name == snapshots(past.folder)[-1].name
    _assert_serves(controller, past, TOPICS, tool_server)


@pytest.mark.parametrize("kind", ["ours", "java"])
def test_a_controller_goes_on_with_static_voters(
    past: StoppedCluster, kind: ControllerKind, workspace: Workspace, tool_server: ToolServer
) -> None:
    """The restored log contains no other voters."""
    port = free_port()
    voters = {
        "controller.quorum.voters": f"{RESTORED_ID}@{HOST}:{port}",
        "controller.quorum.bootstrap.servers": "",
    }
    controller = _controller(kind, workspace, tool_server, voters, port)
    rows = rows_of_batches(LakeRecords(str(past.lake), past.cluster_id).batches())
    dynamic = ("KRaftVersionRecord", "VotersRecord")
    kept = [row for row in rows if row.type not in dynamic]
    static = [row._replace(offset=offset) for offset, row in enumerate(kept)]
    identity = Identity(past.cluster_id, RESTORED_ID, SystemEntropy().uuid())
    assert restore_folder(static, controller.data_folder, identity).kraft_version == 0
    _assert_serves(controller, past, TOPICS, tool_server, voters)


def _controller(
    kind: ControllerKind,
    workspace: Workspace,
    tools: ToolServer,
    properties: Mapping[str, str] | None = None,
    port: int | None = None,
) -> Node:
    if kind == "ours":
        return OurController(workspace, RESTORED_ID, properties, port)
    return JvmController(workspace, RESTORED_ID, find_jars(NEWEST_KAFKA), tools, properties, port)


def _assert_serves(
    controller: Node,
    past: StoppedCluster,
    topics: set[str],
    tools: ToolServer,
    quorum: Mapping[str, str] | None = None,
) -> None:
    """Check that a broker registers, knows exactly these topics, and can create another one."""
    controller.start()
    controller.wait_until_ready()
    broker = JvmBroker(controller.workspace, 2, find_jars(RELEASE), tools, controller.address)
    broker.change_properties(quorum or {})
    broker.format(past.cluster_id)
    broker.start()
    broker.wait_until_ready()
    # Until broker 1's session expires, a client may learn its address and wait for it.
    wait_until(
        lambda: broker_metadata.live_brokers(broker) == {2}, "the broker to see itself unfenced, and no other"
    )
    assert broker_metadata.topics(broker) == topics
    clients.create_topic(clients.admin(broker.address), "new", 1, 1)
    broker_metadata.wait_for_topic([broker], "new", 1)
    broker.stop()
    controller.stop()
