"""schemas/franz: code generated from the definitions has the same bytes as code generated from Kafka's JSON.

The two use different names, so fields are matched by their place; RENAMED lists the pairs of names.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest

from codegen.__main__ import ROOT, main
from codegen.schema.model import walk_fields
from codegen.schema.sources import read_schemas
from kraft_wire.protocol.errors import DecodeError, ErrorCode, UnsupportedVersion
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.registry import message_class
from kraft_wire.protocol.schema import Field, Structure
from tests.support.random_messages import random_message
from tests.support.schema_samples import module_of

FOLDER = ROOT / "schemas" / "franz"
INSTANCES = 150
"""The number of random instances of each version of each message."""
APIS = ("ElectLeaders", "Vote", "BeginQuorumEpoch", "Fetch", "Metadata")
NAMES = tuple(f"{api}{kind}" for api in APIS for kind in ("Request", "Response"))
RENAMED = {
    "ElectLeadersRequest": {
        "topic_partitions": "topics",
        "timeout_ms": "timeout_millis",
    },
    "ElectLeadersResponse": {
        "throttle_time_ms": "throttle_millis",
        "replica_election_results": "topics",
        "replica_election_results.partition_result": "partitions",
        "replica_election_results.partition_result.partition_id": "partition",
    },
    "VoteRequest": {
        "topics.topic_name": "topic",
        "topics.partitions.partition_index": "partition",
        "topics.partitions.replica_epoch": "candidate_epoch",
        "topics.partitions.replica_id": "candidate_id",
        "topics.partitions.replica_directory_id": "candidate_directory_id",
    },
    "VoteResponse": {
        "topics.topic_name": "topic",
        "topics.partitions.partition_index": "partition",
    },
    "BeginQuorumEpochRequest": {
        "topics.topic_name": "topic",
        "topics.partitions.partition_index": "partition",
    },
    "BeginQuorumEpochResponse": {
        "topics.topic_name": "topic",
        "topics.partitions.partition_index": "partition",
    },
    "FetchRequest": {
        "max_wait_ms": "max_wait_millis",
        "forgotten_topics_data": "forgotten_topics",
    },
    "FetchResponse": {
        "throttle_time_ms": "throttle_millis",
        "responses": "topics",
        "responses.partitions.partition_index": "partition",
    },
    "MetadataRequest": {
        "topics.name": "topic",
    },
    "MetadataResponse": {
        "throttle_time_ms": "throttle_millis",
        "topics.name": "topic",
        "topics.partitions.partition_index": "partition",
        "topics.partitions.leader_id": "leader",
        "topics.partitions.replica_nodes": "replicas",
        "topics.partitions.isr_nodes": "isr",
        "topics.topic_authorized_operations": "authorized_operations",
        "cluster_authorized_operations": "authorized_operations",
    },
}


@cache
def from_definition(name: str) -> type[Message]:
    """Return the class generated from a definition in franz-go's language."""
    message = next(each.message for each in read_schemas(FOLDER) if each.message.name == name)
    return getattr(module_of(message), name)  # type: ignore[no-any-return]


def fields_of(kafka: type[Structure], franz: type[Structure]) -> list[tuple[Field, Field]]:
    return list(zip(kafka.FIELDS, franz.FIELDS, strict=True))


def translated(value: Any, franz: type[Structure]) -> Any:
    """Return the same values in the other class."""
    values: dict[str, Any] = {}
    for there, here in fields_of(type(value), franz):
        values[here.name] = _translated_field(getattr(value, there.name), here)
    if franz.FLEXIBLE_FROM <= 32767:
        values["unknown_tagged_fields"] = value.unknown_tagged_fields
    return franz(**values)


def _translated_field(value: Any, field: Field) -> Any:
    if field.struct is None or value is None:
        return value
    return (
        [translated(each, field.struct) for each in value] if field.array else translated(value, field.struct)
    )


def versions_of(cls: type[Message]) -> range:
    return range(cls.MIN_VERSION, cls.MAX_VERSION + 1)


EVERY_VERSION = [
    pytest.param(name, version, id=f"{name}-{version}")
    for name in NAMES
    for version in versions_of(message_class(name))
]


def test_nothing_else_is_defined() -> None:
    assert sorted(each.message.name for each in read_schemas(FOLDER)) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
class TestClasses:
    def test_every_version_of_kafka_is_there(self, name: str) -> None:
        kafka, franz = message_class(name), from_definition(name)
        assert (franz.NAME, franz.API_KEY, franz.KIND) == (kafka.NAME, kafka.API_KEY, kafka.KIND)
        assert franz.MAX_VERSION == kafka.MAX_VERSION
        assert franz.MIN_VERSION == 0
        assert franz.FLEXIBLE_FROM == kafka.FLEXIBLE_FROM

    def test_names(self, name: str) -> None:
        assert _renamed(message_class(name), from_definition(name), "") == RENAMED[name]

    def test_the_defaults(self, name: str) -> None:
        assert translated(message_class(name)(), from_definition(name)) == from_definition(name)()


def _renamed(kafka: type[Structure], franz: type[Structure], path: str) -> dict[str, str]:
    found = {}
    for there, here in fields_of(kafka, franz):
        if there.name != here.name:
            found[path + there.name] = here.name
        if there.struct is not None and here.struct is not None:
            found |= _renamed(there.struct, here.struct, f"{path}{there.name}.")
    return found


@pytest.mark.parametrize(("name", "version"), EVERY_VERSION)
class TestBytes:
    def test_random_instances(self, name: str, version: int) -> None:
        kafka, franz = message_class(name), from_definition(name)
        random = Random(f"{name} {version}")
        for _ in range(INSTANCES):
            value = random_message(random, kafka, version)
            same = translated(value, franz)
            data = value.encode(version)
            assert same.encode(version) == data
            assert franz.decode(data, version) == same
            assert kafka.decode(same.encode(version), version) == value

    def test_an_untouched_instance(self, name: str, version: int) -> None:
        kafka, franz = message_class(name), from_definition(name)
        assert franz().encode(version) == kafka().encode(version)

    def test_damaged_bytes(self, name: str, version: int) -> None:
        """Both read the same values from them, or neither reads anything."""
        kafka, franz = message_class(name), from_definition(name)
        random = Random(f"damage {name} {version}")
        refused = 0
        for _ in range(INSTANCES):
            data = _damaged(random, random_message(random, kafka, version).encode(version))
            try:
                expected = kafka.decode(data, version)
            except DecodeError as error:
                refused += 1
                with pytest.raises(DecodeError) as caught:
                    franz.decode(data, version)
                assert caught.value.offset == error.offset
            else:
                assert franz.decode(data, version) == translated(expected, franz)
        assert refused


def _damaged(random: Random, data: bytes) -> bytes:
    if random.random() < 0.3:
        return data[: random.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(random.randrange(1, 4)):
        changed[random.randrange(len(data))] = random.choice((0, 1, 127, 128, 255, random.randrange(256)))
    return bytes(changed)


class TestElectLeaders:
    """Both refuse the same values at the same versions, each by its own names."""

    def test_an_election_type_before_there_was_one(self) -> None:
        for cls in (message_class("ElectLeadersRequest"), from_definition("ElectLeadersRequest")):
            with pytest.raises(UnsupportedVersion, match="election_type"):
                cls(election_type=1).encode(0)

    def test_an_error_before_there_was_one(self) -> None:
        for cls in (message_class("ElectLeadersResponse"), from_definition("ElectLeadersResponse")):
            with pytest.raises(UnsupportedVersion, match="error_code"):
                cls(error_code=41).encode(0)

    def test_the_request_byte_for_byte(self) -> None:
        request = from_definition("ElectLeadersRequest")
        assert request().encode(0) == bytes.fromhex("00000000 0000ea60")
        assert request(topics=None, election_type=1).encode(1) == bytes.fromhex("01 ffffffff 0000ea60")
        assert request(topics=None, timeout_millis=1).encode(2) == bytes.fromhex("00 00 00000001 00")


class TestNotes:
    def test_errors_are_kafka_s(self) -> None:
        named = {
            error.name
            for source in read_schemas(FOLDER)
            for _, field in walk_fields(source.message.fields, "")
            for error in field.notes.errors
        }
        assert len(named) > 20
        assert named <= set(ErrorCode.__members__)

    def test_every_error_code_of_a_response_says_which(self) -> None:
        silent = [
            path
            for source in read_schemas(FOLDER)
            if source.message.kind == "response"
            for path, field in walk_fields(source.message.fields, source.message.name)
            if field.name == "ErrorCode" and not field.notes.errors
        ]
        assert silent == []

    def test_the_error_notes_of_elect_leaders(self) -> None:
        message = next(
            each.message for each in read_schemas(FOLDER) if each.message.name == "ElectLeadersResponse"
        )
        notes = {
            path: [error.name for error in field.notes.errors]
            for path, field in walk_fields(message.fields, "")
            if field.notes.errors
        }
        assert notes == {
            ".ErrorCode": ["CLUSTER_AUTHORIZATION_FAILED"],
            ".Topics.Partitions.ErrorCode": [
                "CLUSTER_AUTHORIZATION_FAILED",
                "NOT_CONTROLLER",
                "UNKNOWN_TOPIC_OR_PARTITION",
                "ELECTION_NOT_NEEDED",
                "PREFERRED_LEADER_NOT_AVAILABLE",
                "ELIGIBLE_LEADERS_NOT_AVAILABLE",
            ],
        }


def test_the_command_makes_a_package_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "franz_messages"
    assert main(["generate", "--from", str(FOLDER), "--into", str(target)]) == 0
    monkeypatch.syspath_prepend(str(tmp_path))
    assert sorted(import_module("franz_messages").MODULES) == sorted(NAMES)
    module = import_module("franz_messages.elect_leaders_request")
    kafka = message_class("ElectLeadersRequest")
    for version in versions_of(kafka):
        assert module.ElectLeadersRequest().encode(version) == kafka().encode(version)
    assert "NOT_CONTROLLER: the request reached" in (target / "elect_leaders_response.py").read_text()
