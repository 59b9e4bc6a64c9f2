"""Requests with too many entries are refused before they are decoded."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.protocol.errors import DecodeError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraft_wire.protocol.schema import MAX_TAGGED_FIELDS, Field, Structure
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.wire import entry_count
from kraft_wire.wire.entry_count import TooManyEntries, check_entry_count, elements_an_entry

PADDING = bytes(100_000)
"""Bytes after a request, which neither the decoder nor the count may look at."""


def entries(structure: Structure, version: int) -> int:
    """Count the entries of a decoded request."""
    total = 0
    for field in type(structure).FIELDS:
        if not field.is_present(version):
            continue
        value = getattr(structure, field.name)
        if field.array and value is not None:
            total += len(value) // elements_an_entry(field)
            total += sum(entries(each, version) for each in value if field.struct is not None)
        elif field.struct is not None and value is not None:
            total += entries(value, version)
    return total


def random_structure(cls: type[Structure], version: int, random: Random, depth: int = 0) -> Structure:
    values = {
        field.name: random_value(field, version, random, depth)
        for field in cls.FIELDS
        if field.is_present(version)
    }
    return cls(**values)


def random_value(field: Field, version: int, random: Random, depth: int) -> Any:
    if field.is_nullable(version) and random.random() < 0.2:
        return None
    if not field.array:
        return random_element(field, version, random, depth)
    count = random.choice((0, 1, 3, 130 if depth == 0 else 2))
    values = [random_element(field, version, random, depth + 1) for _ in range(count)]
    return values if field.struct is not None else tuple(values)


def random_element(field: Field, version: int, random: Random, depth: int) -> Any:
    if field.struct is not None:
        return random_structure(field.struct, version, random, depth)
    match field.kind:
        case "string":
            return "x" * random.choice((0, 5, 200))
        case "bytes" | "records":
            return b"y" * random.choice((0, 5, 200))
        case "uuid":
            return Uuid(random.randbytes(16))
        case "bool":
            return random.random() < 0.5
        case "float64":
            return 1.5
        case _:
            return random.randint(0, 100)


def random_requests(api: Any) -> Iterator[tuple[int, Message]]:
    """Yield versions of an API and requests."""
    random = Random(api.key)
    for version in range(api.min_version, api.max_version + 1):
        for _ in range(20):
            request = random_structure(api.request_class, version, random)
            assert isinstance(request, Message)
            yield version, request


@pytest.mark.parametrize("api", list(CONTROLLER_APIS), ids=lambda api: api.name)
def test_the_count_is_that_of_the_decoded_request(api: Any) -> None:
    for version, request in random_requests(api):
        data = b"head" + request.encode(version) + PADDING
        count = entries(request, version)
        check_entry_count(api.request_class, data, version, 4, count)
        if count:
            with pytest.raises(TooManyEntries, match=f"and {count - 1} are allowed"):
                check_entry_count(api.request_class, data, version, 4, count - 1)


def test_entries_of_all_arrays_count() -> None:
    assignments = [CreatableReplicaAssignment(index, (1, 2, 3)) for index in range(10)]
    topic = CreatableTopic("t", -1, -1, assignments, [CreatableTopicConfig("k", "v")] * 5)
    data = CreateTopicsRequest(topics=[topic] * 100).encode(7)
    check_entry_count(CreateTopicsRequest, data, 7, 0, 100 * (1 + 10 + 5))
    with pytest.raises(TooManyEntries, match="are allowed"):
        check_entry_count(CreateTopicsRequest, data, 7, 0, 100 * (1 + 10 + 5) - 1)


@pytest.mark.parametrize(("replication_factor", "entries"), [(3, 10_001), (16, 20_001)])
def test_a_topic_may_be_as_large_as_kafka_creates_it(replication_factor: int, entries: int) -> None:
    brokers = tuple(range(replication_factor))
    assignments = [CreatableReplicaAssignment(index, brokers) for index in range(10_000)]
    data = CreateTopicsRequest(topics=[CreatableTopic("t", -1, -1, assignments)]).encode(7)
    check_entry_count(CreateTopicsRequest, data, 7, 0, entries)
    with pytest.raises(TooManyEntries):
        check_entry_count(CreateTopicsRequest, data, 7, 0, entries - 1)


def test_entries_of_tagged_arrays_count() -> None:
    """A heartbeat's lists of directories are tagged."""
    directories = tuple(Uuid(bytes([number] * 16)) for number in range(100))
    request = BrokerHeartbeatRequest(offline_log_dirs=directories, cordoned_log_dirs=directories)
    data = request.encode(2)
    check_entry_count(BrokerHeartbeatRequest, data, 2, 0, 200)
    with pytest.raises(TooManyEntries):
        check_entry_count(BrokerHeartbeatRequest, data, 2, 0, 199)


def test_a_tagged_field_ends_where_the_decoder_says() -> None:
    """Java and the decoder ignore the size of a tagged field that they know."""
    directories = (Uuid.ONE,) * 100
    request = BrokerHeartbeatRequest(offline_log_dirs=directories, cordoned_log_dirs=directories)
    data = bytearray(request.encode(2))
    size_at = data.index(1 + len(directories), 20) - 2
    data[size_at : size_at + 2] = b"\x80\x00"
    assert BrokerHeartbeatRequest.decode(bytes(data), 2) == request
    check_entry_count(BrokerHeartbeatRequest, bytes(data), 2, 0, 200)
    with pytest.raises(TooManyEntries):
        check_entry_count(BrokerHeartbeatRequest, bytes(data), 2, 0, 199)


def test_unknown_tagged_fields_count() -> None:
    """They are kept when a request is decoded."""
    tags = tuple((tag, b"") for tag in range(50))
    topics = [CreatableTopic("t", 1, 1, unknown_tagged_fields=tags) for _ in range(10)]
    data = CreateTopicsRequest(topics=topics).encode(7)
    check_entry_count(CreateTopicsRequest, data, 7, 0, 10 + 500)
    with pytest.raises(TooManyEntries):
        check_entry_count(CreateTopicsRequest, data, 7, 0, 10 + 499)


def test_an_array_is_refused_before_its_elements_are_read() -> None:
    data = ElectLeadersRequest(0, [TopicPartitions("t", tuple(range(1_000)))]).encode(2)
    with pytest.raises(TooManyEntries):
        check_entry_count(ElectLeadersRequest, data[:2_000], 2, 0, 100)


def test_a_small_request_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an entry is, it takes two bytes at least: an unknown tagged field is the smallest."""
    partition = PartitionData(new_isr_with_epochs=[BrokerState(1, 5), BrokerState(2, 5), BrokerState(3, 5)])
    data = AlterPartitionRequest(topics=[TopicData(partitions=[partition] * 100)]).encode(3)
    monkeypatch.setattr(entry_count, "Walk", None)
    check_entry_count(AlterPartitionRequest, data, 3, 0, len(data) // 2 + 1)


@pytest.mark.parametrize("api", list(CONTROLLER_APIS), ids=lambda api: api.name)
def test_a_request_has_no_more_entries_than_its_bytes_allow(api: Any) -> None:
    """Those of the count's test end in padding, which makes them long enough to be counted."""
    for version, request in random_requests(api):
        if count := entries(request, version):
            with pytest.raises(TooManyEntries):
                check_entry_count(api.request_class, request.encode(version), version, 0, count - 1)


def test_too_many_tagged_fields_are_left_to_the_decoder() -> None:
    """They aren't passed over: that would take longer than anything that is allowed."""
    tags = tuple((tag, b"") for tag in range(100, 101 + MAX_TAGGED_FIELDS))
    topic = CreatableTopic("t", unknown_tagged_fields=tags)
    topics = [topic, CreatableTopic("t", configs=[CreatableTopicConfig("k", "v")] * 10_000)]
    data = bytearray(CreateTopicsRequest(topics=[topic]).encode(7)[:-6])
    data[0] = 1 + len(topics)
    data += CreateTopicsRequest(topics=topics[1:]).encode(7)[1:]
    with pytest.raises(DecodeError, match="tagged fields"):
        CreateTopicsRequest.decode(bytes(data), 7)
    check_entry_count(CreateTopicsRequest, bytes(data), 7, 0, 5_000)


def test_a_malformed_request_is_left_to_the_decoder() -> None:
    data = CreateTopicsRequest(topics=[CreatableTopic("topic", 1, 1)] * 100).encode(7)
    check_entry_count(CreateTopicsRequest, data[:-50], 7, 0, 101)
