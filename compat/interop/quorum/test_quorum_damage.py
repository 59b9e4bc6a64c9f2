"""A flipped bit in one of the two logs that hold committed records loses nothing. Java's controllers lose
them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.conftest import make_workspace
from compat.harness.kafka.nodes import run_command
from compat.harness.kafka.quorum import Controller, ControllerQuorum, flip_a_bit
from compat.harness.kafka.reconfiguration import directory_of
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools, segments
from compat.harness.waiting import wait_until
from compat.harness.wire import WireClient
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraft_wire.protocol.messages.vote_response import PartitionData as AnsweredPartition
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.protocol.uuid import Uuid

QUORUM_STATE = "__cluster_metadata-0/quorum-state"
TOPICS = {f"committed-{number}" for number in range(40)}


@pytest.fixture
def quorum(tool_server: ToolServer, tmp_path: Path) -> Iterator[ControllerQuorum]:
    """Three stopped controllers: two have ``TOPICS``, the third was down when they were created."""
    for workspace in make_workspace(tmp_path):
        quorum = ControllerQuorum(workspace, tool_server, ["ours"] * 3)
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.start_brokers(1)
        quorum.wait_until_equal()
        _, _, down = quorum.controllers.values()
        down.stop()
        for name in sorted(TOPICS):
            quorum.create_topic_quickly(name)
        quorum.brokers[1].kill()
        for controller in quorum.running:
            controller.stop()
        yield quorum


def _topics(controller: Controller, tools: KafkaTools) -> set[str]:
    records = tools.metadata_records(*segments(controller.data_folder))
    return {record.data["name"] for record in records if record.type == "TOPIC_RECORD"}


def _votes_for(quorum: ControllerQuorum, voter: Controller, candidate: Controller) -> bool:
    """Whether a voter votes for a candidate whose log is longer and newer than any other.

    A voter that has just started refuses it for an election timeout: the candidate, which it asks, knows
    nothing of that epoch.
    """
    asked = PartitionData(
        replica_id=candidate.node_id,
        replica_directory_id=Uuid.parse(directory_of(candidate)),
        replica_epoch=50,
        last_offset_epoch=49,
        last_offset=100_000,
    )
    request = VoteRequest(
        cluster_id=quorum.cluster_id,
        voter_id=voter.node_id,
        topics=[TopicData("__cluster_metadata", [asked])],
    )

    def answer() -> AnsweredPartition | None:
        with WireClient(voter.port) as client:
            answered = client.call(request, 2, VoteResponse).topics[0].partitions[0]
        if answered.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH:
            return None
        assert answered.error_code == ErrorCode.NONE
        return answered

    considered = wait_until(answer, "an answer that considers the vote")
    assert considered is not None
    return considered.vote_granted


def test_a_damaged_voter_elects_nobody_until_it_is_repaired_and_nothing_is_lost(
    quorum: ControllerQuorum, tools: KafkaTools
) -> None:
    intact, damaged, lagging = quorum.controllers.values()
    flip_a_bit(damaged)
    damaged.start()
    lagging.start()
    damaged.running_process.wait_for_log("elections suspended")
    for controller in (damaged, lagging):
        controller.running_process.wait_for_log('"listening"')
    lagging.running_process.wait_for_log("role changed")
    assert not _votes_for(quorum, damaged, lagging), (
        "the damaged voter must not vote, however long the candidate's log"
    )
    assert _votes_for(quorum, lagging, damaged), "the voter that lost nothing votes for the same candidate"
    assert quorum.leader_among([damaged, lagging]) is None, "one of the two lacks committed records"
    assert json.loads((damaged.data_folder / QUORUM_STATE).read_text())["votedId"] == -1

    intact.start()
    assert quorum.leader() is intact
    damaged.running_process.wait_for_log("lost records fetched")
    quorum.wait_until_equal()
    for controller in quorum.controllers.values():
        assert _topics(controller, tools) == TOPICS
    assert list(damaged.data_folder.glob("*/*.corrupt-*")), "the damaged bytes are kept"


def test_a_lone_voter_with_a_damaged_log_refuses_and_says_what_to_run(
    tool_server: ToolServer, tmp_path: Path
) -> None:
    for workspace in make_workspace(tmp_path):
        quorum = ControllerQuorum(workspace, tool_server, ["ours"])
        quorum.format()
        quorum.start()
        [alone] = quorum.controllers.values()
        quorum.leader()
        alone.stop()
        flip_a_bit(alone)
        [segment] = segments(alone.data_folder)
        before = segment.read_bytes()
        alone.start()
        process = alone.running_process
        assert process.wait(30) == 1
        assert f"{segment}: " in process.log_text()
        assert "kraft-wire fsck" in process.log_text()
        assert segment.read_bytes() == before
        assert run_command("server", alone.properties_file).returncode == 1
