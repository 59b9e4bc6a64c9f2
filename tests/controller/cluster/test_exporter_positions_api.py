"""ExporterPositions, which only our controllers serve."""

from __future__ import annotations

import pytest

from kraft_wire.configs.exporter_orders import paused_key
from kraft_wire.controller.apis import CONTROLLER_APIS, EXPORTER_APIS, OBSERVER_APIS
from kraft_wire.controller.cluster import exporter_positions
from kraft_wire.controller.decision.api_table import AnsweredBy
from kraft_wire.controller.decision.context import ExporterRow
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.own_messages.exporter_positions_request import ExporterPositionsRequest
from kraft_wire.protocol.own_messages.exporter_positions_response import ExporterPositionsResponse, Position
from tests.controller.controller_harness import Harness

BROKER = ResourceType.BROKER
KEY = ExporterPositionsRequest.API_KEY


@pytest.mark.parametrize("is_of_this_cluster", [True, False], ids=["with id", "without id"])
def test_all_positions_are_listed(is_of_this_cluster: bool) -> None:
    harness = Harness()
    harness.state.list_exporters = lambda: [ExporterRow("audit", 305), ExporterRow("lake")]
    request = ExporterPositionsRequest(harness.state.cluster_id if is_of_this_cluster else None)
    response = harness.run(exporter_positions, request, 0, ExporterPositionsResponse)
    assert response.positions == [Position("audit", 305), Position("lake", -1)]


def test_what_operators_see_is_in_version_1() -> None:
    harness = Harness()
    harness.state.list_exporters = lambda: [ExporterRow("audit", 305, "tail@7", 4), ExporterRow("lake", 12)]
    harness.state.metadata.replay(ConfigRecord(BROKER, "", paused_key("lake"), "true"), 100)
    response = harness.run(exporter_positions, ExporterPositionsRequest(), 1, ExporterPositionsResponse)
    assert response.positions == [
        Position("audit", 305, "tail@7", False, 4),
        Position("lake", 12, "", True, 0),
    ]


def test_a_node_of_another_cluster_gets_none() -> None:
    with pytest.raises(ApiError, match="the request is of another") as refused:
        Harness().decide(exporter_positions, ExporterPositionsRequest("another"), 0)
    assert refused.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_it_waits_for_no_commit() -> None:
    assert Harness().decide(exporter_positions, ExporterPositionsRequest(), 0).shown_end == 0


def test_only_controllers_with_exporters_advertise_it() -> None:
    assert EXPORTER_APIS[KEY].answered_by is AnsweredBy.ACTIVE_CONTROLLER
    assert CONTROLLER_APIS.find(KEY) is None
    assert OBSERVER_APIS.find(KEY) is None
