"""``kraft-wire quorum add | promote | remove`` and ``registrations refresh`` on quorums of ours and of
Java's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.kafka.cluster import NEWEST_KAFKA, ControllerKind
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.quorum import ControllerQuorum, connect
from compat.harness.kafka.reconfiguration import change, voter_ids, wait_for_voters
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.ports import HOST, free_port
from compat.harness.processes import Workspace
from compat.harness.waiting import wait_until
from kraft_wire.client.voter_changes import register_controller
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.controller_registration_response import ControllerRegistrationResponse
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_cluster_response import DescribeClusterResponse
from kraft_wire.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraft_wire.protocol.messages.update_features_response import UpdateFeaturesResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import Endpoint

KINDS: list[tuple[ControllerKind, ...]] = [
    ("java", "java", "java"),
    ("ours", "ours", "java"),
]
DESCRIBE_CLUSTER_VERSION = 1
CONTROLLERS = 2
GONE = 150


@pytest.fixture(params=KINDS, ids="-".join)
def quorum(
    request: pytest.FixtureRequest, tool_server: ToolServer, tmp_path: Path
) -> Iterator[ControllerQuorum]:
    for workspace in make_workspace(tmp_path):
        quorum = ControllerQuorum(workspace, tool_server, request.param, "dynamic")
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.start_brokers(1)
        yield quorum


def registered(quorum: ControllerQuorum) -> set[int]:
    """Return the ids of the controllers that are registered."""
    request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
    with connect(quorum.leader()) as client:
        response = client.call(request, DESCRIBE_CLUSTER_VERSION, DescribeClusterResponse)
    return {node.broker_id for node in response.brokers}


def register(quorum: ControllerQuorum, id: int, features: dict[str, tuple[int, int]]) -> None:
    """Register a controller, as it does itself when it starts."""
    endpoint = Endpoint("CONTROLLER", HOST, free_port())
    request = register_controller(id, Uuid.from_random(bytes(16)), endpoint, features)
    with connect(quorum.leader()) as client:
        assert client.call(request, 0, ControllerRegistrationResponse).error_code == 0


def upgrade(quorum: ControllerQuorum, level: int) -> ErrorCode:
    """Raise metadata.version."""
    update = FeatureUpdateKey(feature="metadata.version", max_version_level=level, upgrade_type=1)
    request = UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update])
    with connect(quorum.leader()) as client:
        response = client.call(request, 1, UpdateFeaturesResponse)
    return ErrorCode.of(response.error_code or response.results[0].error_code)


@pytest.mark.parametrize("kind", ["java", "ours"])
def test_a_controller_is_added_and_removed_with_its_registration(
    quorum: ControllerQuorum, kind: ControllerKind
) -> None:
    first = list(quorum.controllers.values())
    newcomer = quorum.new_controller(kind)
    newcomer.start()
    printed = change(quorum, "quorum", "add", newcomer.properties_file)
    assert f"Node {newcomer.node_id} is a voter. The change is committed." in printed
    wait_for_voters(quorum, *first, newcomer)
    clients.create_topic(quorum.admin(), "with-four", 1, 1)
    wait_until(lambda: newcomer.node_id in registered(quorum), "the newcomer to be registered")

    newcomer.stop()
    printed = change(quorum, "quorum", "remove", str(newcomer.node_id))
    assert f"Node {newcomer.node_id} is no voter any more. The change is committed." in printed
    assert f"The registration of controller {newcomer.node_id} is removed." in printed
    assert voter_ids(quorum) == {each.node_id for each in first}
    assert registered(quorum) == {each.node_id for each in first}
    clients.create_topic(quorum.admin(), "with-three", 1, 1)
    quorum.wait_until_equal()


def test_the_leader_is_removed_and_promoted_again(quorum: ControllerQuorum) -> None:
    leader = quorum.leader()
    change(quorum, "quorum", "remove", str(leader.node_id), expected=13)
    assert leader.node_id not in voter_ids(quorum)
    printed = change(quorum, "quorum", "promote", str(leader.node_id))
    assert f"at CONTROLLER://{leader.address}" in printed
    assert leader.node_id in voter_ids(quorum)
    clients.create_topic(quorum.admin(), "again", 1, 1)
    quorum.wait_until_equal()


def test_a_controller_that_joins_by_itself_is_not_removed(quorum: ControllerQuorum) -> None:
    joined = quorum.new_controller("java", {"controller.quorum.auto.join.enable": "true"})
    joined.start()
    wait_until(lambda: joined.node_id in voter_ids(quorum), "the newcomer to join")
    printed = change(quorum, "quorum", "remove", str(joined.node_id), expected=11)
    assert f"controller {joined.node_id} runs with controller.quorum.auto.join.enable=true" in printed


@pytest.mark.parametrize(
    ("version", "release", "before", "after"), [("3.9.2", "3.8", 20, 21), (NEWEST_KAFKA, "4.0", 25, 33)]
)
def test_a_controller_that_is_gone_keeps_no_feature_down(
    version: str, release: str, before: int, after: int, tool_server: ToolServer, workspace: Workspace
) -> None:
    """Its registration is of a release that supports no higher metadata.version."""
    quorum = ControllerQuorum(workspace, tool_server, ["java"] * 3, "dynamic", jars=find_jars(version))
    quorum.format("--release-version", release)
    quorum.start()
    quorum.leader()
    register(quorum, GONE, {"metadata.version": (1, before), "kraft.version": (0, 1)})
    wait_until(lambda: GONE in registered(quorum), "the controller that is gone to be registered")
    assert upgrade(quorum, after) == ErrorCode.INVALID_UPDATE_VERSION
    printed = change(quorum, "registrations", "refresh", "--id", str(GONE))
    assert f"Controller {GONE} is registered with these features." in printed
    assert upgrade(quorum, after) == ErrorCode.NONE
