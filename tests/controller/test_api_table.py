"""The table of APIs agrees with the schemas, and each row can do what it says."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path
from typing import get_type_hints

import pytest

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.controller.decision.api_table import AnsweredBy, Api, ApiTable
from kraft_wire.controller.decision.context import Result
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.create_topics_request import CreateTopicsRequest
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.registry import api_listeners, request_class, response_class
from tests.controller.error_samples import ERROR_SAMPLES

ROWS = [pytest.param(api, id=api.name) for api in CONTROLLER_APIS]
FOR_CONSUMERS = {"Metadata", "ListOffsets", "Produce"}
FORWARDABLE = {
    "CreateTopics", "DeleteTopics", "CreatePartitions", "ElectLeaders", "IncrementalAlterConfigs",
    "DescribeQuorum", "UnregisterBroker", "AllocateProducerIds", "AddRaftVoter", "RemoveRaftVoter",
    "UpdateFeatures", "UnregisterController", "AlterConfigs", "AlterClientQuotas",
    "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken",
    "AlterUserScramCredentials", "AlterPartitionReassignments", "ListPartitionReassignments",
}  # fmt: skip
WITH_HANDLER = {AnsweredBy.ACTIVE_CONTROLLER, AnsweredBy.ANY_CONTROLLER}
ERROR_ANSWERS = json.loads((Path(__file__).parent / "decision" / "error_answers.json").read_text())
"""The answer to each of ERROR_SAMPLES, or to an empty request, in Kafka's JSON form: by API, by versions, by
error code."""


def test_keys_are_in_order() -> None:
    keys = [api.key for api in CONTROLLER_APIS]
    assert keys == sorted(keys)
    assert all(CONTROLLER_APIS[key].key == key for key in keys)


def test_a_table_is_in_the_order_of_keys_and_has_one_row_for_an_api() -> None:
    vote, fetch = CONTROLLER_APIS[VoteRequest.API_KEY], CONTROLLER_APIS[FetchRequest.API_KEY]
    assert [api.name for api in ApiTable([vote, fetch])] == ["Fetch", "Vote"]
    with pytest.raises(ValueError, match="Vote has two rows"):
        ApiTable([vote, fetch, vote])


def test_a_table_knows_what_it_serves() -> None:
    table = ApiTable([CONTROLLER_APIS[VoteRequest.API_KEY]])
    assert table.served(VoteRequest.API_KEY, 2) is CONTROLLER_APIS[VoteRequest.API_KEY]
    assert table.served(VoteRequest.API_KEY, 3) is None
    assert table.served(FetchRequest.API_KEY, 12) is None
    with pytest.raises(KeyError):
        table[FetchRequest.API_KEY]


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
def test_a_handler_takes_the_requests_of_its_api(api: Api) -> None:
    if api.answered_by in WITH_HANDLER:
        handler = api.handler()
        assert list(signature(handler).parameters) == ["state", "request", "version", "context"]
        hints = get_type_hints(handler)
        assert hints["request"] is api.request_class
        assert hints["return"] is Result
    else:
        with pytest.raises(LookupError, match=f"{api.name} is answered by"):
            api.handler()


@pytest.mark.parametrize("api", ROWS)
def test_an_error_response_can_be_sent_in_every_version(api: Api) -> None:
    request = request_class(api.key)()
    for version in range(api.min_version, api.max_version + 1):
        response = api.error_response(request, version, ErrorCode.NOT_CONTROLLER, "ask another")
        assert type(response) is response_class(api.key)
        assert response_class(api.key).decode(response.encode(version), version) is not None


@pytest.mark.parametrize("api", ROWS)
def test_an_error_answers_everything_that_was_requested(api: Api) -> None:
    request = {sample.API_KEY: sample for sample in ERROR_SAMPLES}.get(api.key) or api.request_class()
    covered = []
    for versions, answers in ERROR_ANSWERS[api.name].items():
        first, _, last = versions.partition("-")
        for version in range(int(first), int(last or first) + 1):
            covered.append(version)
            for code, expected in answers.items():
                response = api.error_response(request, version, ErrorCode[code], "ask another")
                read = response_class(api.key).decode(response.encode(version), version)
                assert read.to_json(version) == expected, f"version {version}, {code}"
    assert covered == list(range(api.min_version, api.max_version + 1))


def test_forwardable_apis_are_kafkas() -> None:
    assert {api.name for api in CONTROLLER_APIS if api.is_forwardable} == FORWARDABLE


def test_a_top_level_error_has_its_message_if_there_is_a_place_for_it() -> None:
    describe, vote = CONTROLLER_APIS[DescribeClusterRequest.API_KEY], CONTROLLER_APIS[VoteRequest.API_KEY]
    cluster = describe.error_response(describe.request_class(), 2, ErrorCode.NOT_CONTROLLER, "why")
    assert cluster == response_class(describe.key)(error_code=41, error_message="why")
    refused = vote.error_response(vote.request_class(), 2, ErrorCode.INVALID_REQUEST, "why")
    assert refused == response_class(vote.key)(error_code=42)


def test_an_empty_message_is_null() -> None:
    api = CONTROLLER_APIS[CreateTopicsRequest.API_KEY]
    (sample,) = (sample for sample in ERROR_SAMPLES if isinstance(sample, CreateTopicsRequest))
    answer = api.error_response(sample, 7, ErrorCode.NOT_CONTROLLER, "").to_json(7)
    assert [topic["errorMessage"] for topic in answer["topics"]] == [None, None]
