"""The first items of a request with too many entries are named, whatever the request has besides."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.wire.refused_items import MOST_ITEMS, NamedItems, read_first_items
from tests.wire.test_entry_count import PADDING, random_requests

WITH_ITEMS = [pytest.param(api, id=api.name) for api in CONTROLLER_APIS if api.named_items]
TOPICS = (NamedItems("topics", ("name",)),)


def names(request: Any, named: NamedItems) -> list[Any]:
    return [
        tuple(getattr(each, key) for key in named.keys) if hasattr(each, named.keys[0]) else each
        for each in getattr(request, named.array) or ()
    ]


@pytest.mark.parametrize("api", WITH_ITEMS)
def test_the_names_are_those_of_the_decoded_request(api: Any) -> None:
    for version, request in random_requests(api):
        data = b"head" + request.encode(version) + PADDING
        first = read_first_items(api.request_class, data, version, 4, api.named_items, 10_000)
        for named in api.named_items:
            assert names(first, named) == names(request, named)
        assert isinstance(api.error_response(first, version, ErrorCode.POLICY_VIOLATION, "x"), object)


@pytest.mark.parametrize("version", range(2, 8))
def test_an_item_that_is_too_large_itself_is_the_last_that_is_named(version: int) -> None:
    large = CreatableTopic("large", -1, -1, [CreatableReplicaAssignment(n, (1,)) for n in range(1_000)])
    request = CreateTopicsRequest(topics=[CreatableTopic("first", 1, 1), large, CreatableTopic("last", 1, 1)])
    first = read_first_items(CreateTopicsRequest, request.encode(version), version, 0, TOPICS, 100)
    assert first == CreateTopicsRequest(topics=[CreatableTopic("first"), CreatableTopic("large")])
    api = CONTROLLER_APIS[CreateTopicsRequest.API_KEY]
    response = api.error_response(first, version, ErrorCode.POLICY_VIOLATION, "too large")
    assert isinstance(response, CreateTopicsResponse)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.POLICY_VIOLATION] * 2


def test_some_items_are_named_of_very_many() -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(f"{n}", 1, 1) for n in range(3 * MOST_ITEMS)])
    first = read_first_items(CreateTopicsRequest, request.encode(7), 7, 0, TOPICS, 100_000)
    assert isinstance(first, CreateTopicsRequest) and len(first.topics) == MOST_ITEMS


def test_items_before_a_fault_are_named() -> None:
    data = CreateTopicsRequest(topics=[CreatableTopic("first", 1, 1), CreatableTopic("second", 1, 1)]).encode(
        7
    )
    for end in range(len(data)):
        first = read_first_items(CreateTopicsRequest, data[:end], 7, 0, TOPICS, 100)
        assert names(first, TOPICS[0]) in ([], [("first",)], [("first",), ("second",)])
