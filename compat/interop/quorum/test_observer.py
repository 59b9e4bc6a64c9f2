"""`kraft-wire observe` follows three Java controllers, through failovers, snapshots and restarts.

The tests of one quorum share it and run in this order. Each leaves all controllers and the observer running.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from compat.conftest import make_workspace
from compat.harness import clients, kcat
from compat.harness.kafka.metadata_shell import shown_image
from compat.harness.kafka.metadata_values import describe_record, split_values
from compat.harness.kafka.nodes import OurObserver
from compat.harness.kafka.quorum import (
    Controller,
    ControllerQuorum,
    Voters,
    connect,
    log_bytes,
    log_start,
)
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools, segments, snapshots
from compat.harness.waiting import wait_until
from compat.harness.wire import describe_quorum
from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.log.snapshot import SnapshotId, parse_snapshot_file_name
from kraft_wire.metadata.canonical import canonical
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import add_raft_voter_request
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.storage.folder import read_meta_properties
from tests.support.folder_state import state_at

SETTINGS = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
SHELL_RELEASE = "4.3"
"""The newest release whose records the metadata shell of the tests can read."""
ADD_VOTER_VERSION = 0
VOTERS: list[Voters] = ["dynamic", "static"]


class Observed:
    """A quorum of Java controllers with a broker, and its observer, which exports to ``audit``."""

    def __init__(self, quorum: ControllerQuorum, observer: OurObserver, audit: Path) -> None:
        self.quorum = quorum
        self.observer = observer
        self.audit = audit
        self._topics = 0

    def use(self, topics: int = 3) -> None:
        """Create topics through the broker."""
        for _ in range(topics):
            self._topics += 1
            config = {"retention.ms": str(7_200_000 + self._topics)}
            clients.create_topic(self.quorum.admin(), f"topic-{self._topics}", 2, 1, config)

    def follow(self) -> int:
        """Wait until the observer has what is committed, byte for byte, and return the high watermark."""
        found = wait_until(self._end_if_equal, "the observer to have the leader's log")
        assert found is not None
        return found

    def _end_if_equal(self) -> int | None:
        leader = self.quorum.leader()
        with connect(leader) as client:
            partition = describe_quorum(client).topics[0].partitions[0]
        assert self.observer.node_id not in [voter.replica_id for voter in partition.current_voters]
        ends = {replica.replica_id: replica.log_end_offset for replica in partition.observers}
        end_offset = partition.high_watermark
        if partition.error_code or ends.get(self.observer.node_id, -1) < end_offset:
            return None
        start_offset = max(log_start(leader), log_start(self.observer))
        logs = {log_bytes(node, start_offset, end_offset) for node in (leader, self.observer)}
        return end_offset if len(logs) == 1 else None

    def check_state(self) -> None:
        end_offset = self.follow()
        leader = self.quorum.leader()
        ours, theirs = (state_at(node.data_folder, end_offset) for node in (self.observer, leader))
        assert canonical(ours) == canonical(theirs)
        assert len(list(ours.topics)) >= self._topics


@pytest.fixture(scope="module", params=[pytest.param(v, marks=pytest.mark.xdist_group(v)) for v in VOTERS])
def observed(
    request: pytest.FixtureRequest, tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Observed]:
    for workspace in make_workspace(tmp_path_factory.mktemp("observed")):
        quorum = ControllerQuorum(workspace, tool_server, ("java", "java", "java"), request.param, SETTINGS)
        quorum.format("--release-version", SHELL_RELEASE)
        quorum.start()
        quorum.leader()
        quorum.start_brokers(1)
        audit = workspace.folder / "audit"
        exporter = {
            "kraft.wire.exporters": "audit",
            "kraft.wire.exporter.audit.type": "jsonl",
            "kraft.wire.exporter.audit.path": str(audit),
            "kraft.wire.exporter.audit.no-op": "true",
        }
        observer = OurObserver(workspace, quorum.address_list, SETTINGS | exporter)
        observer.start()
        observer.wait_until_ready()
        yield Observed(quorum, observer, audit)


def test_it_has_javas_state_and_is_an_observer_to_javas_tools(observed: Observed, tools: KafkaTools) -> None:
    observed.use()
    observed.check_state()
    printed = tools.quorum(observed.quorum.leader().address, "describe", "--replication")
    (line,) = [line for line in printed.splitlines() if line.startswith(str(observed.observer.node_id))]
    assert "Observer" in line


def test_its_own_snapshot_is_to_the_metadata_shell_what_javas_log_is(
    observed: Observed, tools: KafkaTools, tmp_path: Path
) -> None:
    def own_snapshot() -> Path | None:
        observed.use(1)
        files = snapshots(observed.observer.data_folder)
        return next((file for file in reversed(files) if _id(file).end_offset), None)

    written = wait_until(own_snapshot, "the observer to write a snapshot")
    assert written is not None
    snapshot = tmp_path / written.name  # the shell wants the lock of a folder that it reads in
    shutil.copy(written, snapshot)
    observed.follow()
    leader = observed.quorum.leader()
    assert log_start(leader) == 0
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(log_bytes(leader, 0, _id(snapshot).end_offset))

    def shows_the_same() -> bool:
        image = shown_image(tools, snapshot)
        return bool(image["topics"]) and image == shown_image(tools, log)

    wait_until(shows_the_same, "the shell, which prints before it has loaded all, to show the same images")


def _id(file: Path) -> SnapshotId:
    snapshot_id = parse_snapshot_file_name(file.name)
    assert snapshot_id is not None
    return snapshot_id


def test_kafkas_dump_reads_its_folder_and_kcat_reads_the_same_from_it(
    observed: Observed, tools: KafkaTools
) -> None:
    observed.follow()
    listed = kcat.metadata(observed.observer.address)
    [broker] = listed["brokers"]
    assert (broker["id"], broker["name"]) == (observed.observer.node_id, observed.observer.address)
    printed = kcat.consume_bytes(observed.observer.address, CLUSTER_METADATA, *kcat.LENGTH_PREFIXED)
    consumed = [describe_record(value) for value in split_values(printed)]
    dumped = tools.metadata_records(*segments(observed.observer.data_folder))
    assert "TOPIC_RECORD" in [record.type for record in consumed]
    assert consumed == dumped[: len(consumed)]


def test_it_follows_every_leader(observed: Observed) -> None:
    for _ in range(3):
        former = observed.quorum.pass_leadership_on(lambda leader: leader.kill())
        observed.use()
        observed.check_state()
        former.start()
        observed.quorum.wait_until_equal()


def test_the_audit_trail_of_javas_controllers_has_each_record_once(observed: Observed) -> None:
    observed.use()
    end_offset = observed.follow()

    def exported() -> list[int]:
        lines = [line for file in sorted(observed.audit.iterdir()) for line in file.read_bytes().splitlines()]
        records = [msgspec.json.decode(line) for line in lines]
        return [record["offset"] for record in records if record["index"] == 0]

    wait_until(lambda: max(exported(), default=-1) >= end_offset - 1, f"offset {end_offset - 1}")
    offsets = exported()
    assert offsets == list(range(offsets[0], offsets[-1] + 1))


def test_javas_leader_does_not_make_it_a_voter(observed: Observed) -> None:
    observed.follow()
    observer = observed.observer
    directory_id = read_meta_properties(observer.data_folder).directory_id
    assert directory_id is not None
    host, port = observer.address.split(":")
    request = AddRaftVoterRequest(
        cluster_id=observed.quorum.cluster_id,
        timeout_ms=10_000,
        voter_id=observer.node_id,
        voter_directory_id=directory_id,
        listeners=[add_raft_voter_request.Listener(name="CONTROLLER", host=host, port=int(port))],
    )
    with connect(observed.quorum.leader()) as client:
        response = client.call(request, ADD_VOTER_VERSION, AddRaftVoterResponse)
    is_static = observed.quorum.voters == "static"
    expected = ErrorCode.UNSUPPORTED_VERSION if is_static else ErrorCode.INVALID_REQUEST
    assert response.error_code == expected, response.error_message
    observed.follow()


def test_it_goes_on_after_a_restart_and_begins_again_with_javas_snapshot(observed: Observed) -> None:
    observer = observed.observer
    node_id = observer.node_id
    observer.stop()
    observed.use()
    observer.start()
    observer.wait_until_ready()
    assert observer.node_id == node_id
    observed.check_state()
    observer.kill()
    shutil.rmtree(observer.data_folder)
    wait_until(lambda: _has_snapshot(observed.quorum.leader()), "Java's leader to write a snapshot")
    observer.start()
    observer.wait_until_ready()
    assert observer.node_id != node_id
    observer.running_process.wait_for_log("snapshot installed")
    observed.check_state()


def _has_snapshot(controller: Controller) -> bool:
    return any(_id(file).end_offset for file in snapshots(controller.data_folder))
