"""AlterConfigs: a resource has exactly what the request says afterwards."""

from __future__ import annotations

import pytest

from kraft_wire.controller.config_apis import alter_configs
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.alter_configs_request import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from kraft_wire.protocol.messages.alter_configs_response import AlterConfigsResponse
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from tests.controller.controller_harness import Harness

TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER
MIN_ISR = "min.insync.replicas"
ALL = ""


@pytest.fixture
def harness() -> Harness:
    made = Harness(features={"eligible.leader.replicas.version": 0})
    made.add_brokers(0)
    made.add_topic("t", [0])
    return made


def resource(kind: int, name: str, values: dict[str, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(kind, name, [AlterableConfig(*pair) for pair in values.items()])


def alter(
    harness: Harness, *resources: AlterConfigsResource, validate_only: bool = False
) -> list[tuple[int, str | None]]:
    """Replay the records. Returns (code, message) of each answer."""
    request = AlterConfigsRequest(list(resources), validate_only)
    response = harness.run(alter_configs, request, 2, AlterConfigsResponse)
    return [(answer.error_code, answer.error_message) for answer in response.responses]


def set_all(harness: Harness, kind: int, name: str, **values: str | None) -> int:
    named = {key.replace("_", "."): value for key, value in values.items()}
    ((code, message),) = alter(harness, resource(kind, name, named))
    assert (message is None) == (code == 0)
    return code


def test_keys_that_are_not_named_are_removed(harness: Harness) -> None:
    assert set_all(harness, TOPIC, "t", retention_ms="5", flush_ms="6") == 0
    assert harness.metadata.configs.get(TOPIC, "t") == {"retention.ms": "5", "flush.ms": "6"}
    assert set_all(harness, TOPIC, "t", flush_ms="7") == 0
    assert harness.metadata.configs.get(TOPIC, "t") == {"flush.ms": "7"}
    assert set_all(harness, TOPIC, "t") == 0
    assert harness.metadata.configs.get(TOPIC, "t") == {}


def test_only_changes_are_written_but_for_brokers(harness: Harness) -> None:
    set_all(harness, TOPIC, "t", flush_ms="7")
    set_all(harness, BROKER, "0", log_flush_interval_ms="9")
    before = harness.state.next_offset
    assert set_all(harness, TOPIC, "t", flush_ms="7") == 0
    assert harness.state.next_offset == before
    assert set_all(harness, BROKER, "0", log_flush_interval_ms="9") == 0
    assert harness.state.next_offset == before + 1


@pytest.mark.parametrize(
    ("kind", "name", "values", "code"),
    [
        (TOPIC, "t", {"retention.ms": "never"}, ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", {"no.such.key": "1"}, ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", {"retention.ms": None}, ErrorCode.INVALID_REQUEST),
        (TOPIC, "u", {"retention.ms": "1"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "9", {"log.flush.interval.ms": "1"}, ErrorCode.BROKER_ID_NOT_REGISTERED),
        (ResourceType.BROKER_LOGGER, "0", {"root": "INFO"}, ErrorCode.INVALID_REQUEST),
        (77, "x", {}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_wrong_resource_fails_alone_and_keeps_its_values(
    harness: Harness, kind: int, name: str, values: dict[str, str | None], code: ErrorCode
) -> None:
    set_all(harness, TOPIC, "t", flush_ms="7")
    good = resource(BROKER, ALL, {"log.flush.interval.ms": "9"})
    answers = alter(harness, resource(kind, name, values), good)
    assert sorted(code for code, _ in answers) == sorted([0, code])
    assert harness.metadata.configs.get(TOPIC, "t") == {"flush.ms": "7"}
    assert harness.metadata.configs.get(BROKER, ALL) == {"log.flush.interval.ms": "9"}


def test_a_key_or_a_resource_that_is_named_twice_is_refused(harness: Harness) -> None:
    flush = AlterableConfig("flush.ms", "1")
    twice = AlterConfigsResource(TOPIC, "t", [flush, flush])
    assert [code for code, _ in alter(harness, twice)] == [ErrorCode.INVALID_REQUEST]
    once = AlterConfigsResource(TOPIC, "t", [flush])
    assert [code for code, _ in alter(harness, once, once)] == [ErrorCode.INVALID_REQUEST]
    assert harness.metadata.configs.get(TOPIC, "t") == {}


def test_validate_only_writes_nothing(harness: Harness) -> None:
    before = harness.state.next_offset
    answers = alter(harness, resource(TOPIC, "t", {"flush.ms": "1"}), validate_only=True)
    assert answers == [(0, None)]
    assert harness.state.next_offset == before


def test_with_elr_the_minimum_of_the_cluster_stays_and_a_topics_change_clears_its_elrs() -> None:
    harness = Harness()
    harness.add_brokers(0)
    harness.add_topic("t", [0])
    assert set_all(harness, BROKER, ALL, min_insync_replicas="1") == 0
    assert set_all(harness, BROKER, ALL, log_flush_interval_ms="9") == ErrorCode.INVALID_CONFIG
    assert harness.metadata.configs.get(BROKER, ALL) == {MIN_ISR: "1"}
    request = AlterConfigsRequest([resource(TOPIC, "t", {MIN_ISR: "1"})])
    records = [record for record, _ in harness.decide(alter_configs, request, 2).records]
    assert records[-1] == ClearElrRecord(topic_name="t")
