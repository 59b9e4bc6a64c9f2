"""Drafted messages become Kafka's, and Kafka's drafted ones, by the table of their fields."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kraft_wire.protocol import registry
from kraft_wire.protocol.errors import UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import vote_request
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.schema import Structure
from kraft_wire.raft.drafted.dialect import DRAFTED
from kraft_wire.wire.dialect import Form
from tests.support.kip_853_released import RELEASED, Released
from tests.support.random_messages import random_message

TABLE = {each.draft.name: each for each in RELEASED}
FORMS = [form for key in (1, 52, 59, 77) if (form := DRAFTED.form(key)) is not None]
MOVED_ENDPOINTS = ("end_point", "node_endpoint")


def values_of(structure: Structure) -> dict[str, list[Any]]:
    """Return the values of a message by the path of their field, lists joined."""
    found: dict[str, list[Any]] = {}
    for field in type(structure).FIELDS:
        value = getattr(structure, field.name)
        if field.struct is None:
            found.setdefault(field.name, []).append(tuple(value) if isinstance(value, list) else value)
            continue
        for each in value if isinstance(value, list) else [] if value is None else [value]:
            for path, values in values_of(each).items():
                found.setdefault(f"{field.name}.{path}", []).extend(values)
    return found


def assert_same(drafted: Message, own: Message) -> None:
    """Assert that each field of the draft has its value in Kafka's message, except leaders' endpoints."""
    table: Released = TABLE[drafted.NAME]
    released = values_of(own)
    for path, values in values_of(drafted).items():
        if not any(name in path for name in MOVED_ENDPOINTS):
            assert released.get(table.moved.get(path, path), []) == values, path


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.request_class.NAME)
def test_requests_and_responses_keep_every_value(form: Form) -> None:
    random = Random(f"drafted {form.key}")
    for _ in range(200):
        request = random_message(random, form.request_class, form.max_version, unknown_tags=False)
        own = form.read_request(request, form.max_version)
        assert_same(request, own)
        assert form.write_request(own) == request
        response = random_message(random, form.response_class, form.max_version, unknown_tags=False)
        assert_same(response, form.read_response(response))


def test_a_leaders_endpoint_moves_between_the_leader_and_the_nodes() -> None:
    for form in FORMS:
        random = Random(f"endpoints {form.key}")
        for _ in range(100):
            own = random_message(
                random,
                registry.response_class(form.own_key),
                form.own_versions[form.max_version],
                unknown_tags=False,
            )
            first = form.read_response(form.write_response(own))
            assert form.read_response(form.write_response(first)) == first


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.request_class.NAME)
def test_older_versions_are_translated_to_kafkas_own(form: Form) -> None:
    """They are the same bytes on both sides."""
    random = Random(f"older {form.key}")
    older = [version for version, own in form.own_versions.items() if form.key != 77 and own == version]
    for version in older:
        if version == form.max_version:
            continue
        own_class = registry.request_class(form.own_key)
        own = random_message(random, own_class, version, unknown_tags=False)
        drafted = form.request_class.decode(own.encode(version), version)
        assert form.read_request(drafted, version) == own
        response = random_message(random, registry.response_class(form.own_key), version, unknown_tags=False)
        assert form.write_response(response).encode(version) == response.encode(version)


def test_a_pre_vote_can_not_be_expressed() -> None:
    partition = vote_request.PartitionData(pre_vote=True)
    request = VoteRequest(topics=[vote_request.TopicData(partitions=[partition])])
    form = DRAFTED.form_of(VoteRequest.API_KEY)
    assert form is not None
    with pytest.raises(UnsupportedVersion, match="no pre-votes"):
        form.write_request(request)


def test_tagged_fields_that_nobody_knows_are_left_out() -> None:
    form = DRAFTED.form_of(VoteRequest.API_KEY)
    assert form is not None
    request = form.request_class(unknown_tagged_fields=((70, b"x"),))
    assert form.read_request(request, 1) == VoteRequest()
