"""The table of APIs agrees with the schemas, and each row can do what it says."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from kraft_wire.controller.apis import APIS, AnsweredBy, Api, top_level_error
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.registry import api_listeners, request_class, response_class

ROWS = [pytest.param(api, id=api.name) for api in APIS.values()]
FOR_CONSUMERS = {"Metadata", "ListOffsets", "Produce"}
FORWARDABLE = {
    "CreateTopics", "DeleteTopics", "CreatePartitions", "ElectLeaders", "IncrementalAlterConfigs",
    "DescribeQuorum", "UnregisterBroker", "AllocateProducerIds",
}  # fmt: skip


def test_keys_are_in_order() -> None:
    assert list(APIS) == sorted(APIS)
    assert all(api.key == key for key, api in APIS.items())


@pytest.mark.parametrize("api", ROWS)
def test_versions_exist(api: Api) -> None:
    request, response = request_class(api.key), response_class(api.key)
    assert request.MIN_VERSION <= api.min_version <= api.max_version <= request.MAX_VERSION
    assert response.MIN_VERSION <= api.min_version <= api.max_version <= response.MAX_VERSION
    assert api.supports(api.min_version)
    assert api.supports(api.max_version)
    assert not api.supports(api.max_version + 1)
    assert not api.supports(-1)


@pytest.mark.parametrize("api", ROWS)
def test_controllers_serve_it(api: Api) -> None:
    assert "controller" in api_listeners(api.key) or api.name in FOR_CONSUMERS


@pytest.mark.parametrize("api", ROWS)
def test_the_module_has_what_the_row_promises(api: Api) -> None:
    if api.answered_by is AnsweredBy.HANDLER:
        assert list(inspect.signature(api.handler()).parameters) == ["state", "request", "version", "context"]
    if api.module:
        module = import_module(f"kraft_wire.controller.{api.module}")
        assert list(inspect.signature(module.error_response).parameters) == [
            "request", "version", "code", "message",
        ]  # fmt: skip
    else:
        assert api.answered_by is AnsweredBy.RAFT


@pytest.mark.parametrize("api", ROWS)
def test_an_error_response_can_be_sent_at_every_version(api: Api) -> None:
    request = request_class(api.key)()
    for version in range(api.min_version, api.max_version + 1):
        response = api.error_response(request, version, ErrorCode.NOT_CONTROLLER, "ask another")
        assert type(response) is response_class(api.key)
        assert response_class(api.key).decode(response.encode(version), version) is not None


def test_forwardable_apis_are_kafkas() -> None:
    assert {api.name for api in APIS.values() if api.is_forwardable} == FORWARDABLE


def test_a_top_level_error_has_its_message_where_there_is_a_place_for_it() -> None:
    cluster = top_level_error(60, ErrorCode.NOT_CONTROLLER, "why")
    assert cluster == response_class(60)(error_code=41, error_message="why")
    vote = top_level_error(52, ErrorCode.INVALID_REQUEST, "why")
    assert vote == response_class(52)(error_code=42)
