"""Validation of brokers, groups and client metrics subscriptions (ControllerConfigurationValidator)."""

from __future__ import annotations

import pytest

from kraft_wire.configs.validation import validate_configs, validate_resource
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ApiError, ErrorCode

TOPIC, BROKER, METRICS, GROUP = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(TOPIC, "a.topic"), (BROKER, ""), (BROKER, "0"), (BROKER, "12"), (METRICS, "m"), (GROUP, "g")],
)
def test_good_names(kind: int, name: str) -> None:
    validate_resource(kind, name)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "", ErrorCode.INVALID_REQUEST),
        (TOPIC, "no/topic", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "-1", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER_LOGGER, "1", ErrorCode.INVALID_REQUEST),
        (99, "1", ErrorCode.INVALID_REQUEST),
    ],
)
def test_bad_names(kind: int, name: str, code: ErrorCode) -> None:
    with pytest.raises(ApiError) as refused:
        validate_resource(kind, name)
    assert refused.value.code is code


GOOD = [
    (TOPIC, {"retention.ms": "5"}),
    (BROKER, {"log.retention.ms": "5", "anything.else": "goes"}),
    (METRICS, {"interval.ms": "100", "metrics": "a.,b.", "match": "client_id=a.*,client_software_name=x"}),
    (METRICS, {"metrics": ""}),
    (METRICS, {"match": r"client_id=\p{Alpha}++(?<n>[a-z&&[^b]]), client_source_port = 80=="}),
    (GROUP, {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "6000"}),
    (GROUP, {"share.auto.offset.reset": "earliest", "streams.num.standby.replicas": "2"}),
    (GROUP, {"streams.assignor.name": "sticky"}),
]


@pytest.mark.parametrize(("kind", "configs"), GOOD)
def test_good_values(kind: int, configs: dict[str, str | None]) -> None:
    validate_configs(kind, configs, {}, {})


BAD = [
    (TOPIC, {"retention.ms": "-5"}, ErrorCode.INVALID_CONFIG),
    (BROKER, {"min.insync.replicas": "none"}, ErrorCode.INVALID_CONFIG),
    (BROKER, {"log.retention.hours": "x"}, ErrorCode.INVALID_CONFIG),
    (METRICS, {"no.such": "1"}, ErrorCode.INVALID_REQUEST),
    (METRICS, {"interval.ms": "99"}, ErrorCode.INVALID_REQUEST),
    (METRICS, {"interval.ms": "3600001"}, ErrorCode.INVALID_REQUEST),
    (METRICS, {"interval.ms": "x"}, ErrorCode.INVALID_CONFIG),
    (METRICS, {"match": "client_id"}, ErrorCode.INVALID_CONFIG),
    (METRICS, {"match": "client_id="}, ErrorCode.INVALID_CONFIG),
    (METRICS, {"match": "hair_colour=red"}, ErrorCode.INVALID_CONFIG),
    (METRICS, {"match": "client_id=["}, ErrorCode.INVALID_CONFIG),
    (METRICS, {"match": "client_id=(?P<pythons>a)"}, ErrorCode.INVALID_CONFIG),
    (METRICS, {"match": "client_id=a{2,3}"}, ErrorCode.INVALID_CONFIG),
    (METRICS, {"match": "client_id=a=b"}, ErrorCode.INVALID_CONFIG),
    (METRICS, {"metrics": None}, ErrorCode.INVALID_CONFIG),
    (GROUP, {"no.such": "1"}, ErrorCode.INVALID_CONFIG),
    (GROUP, {"consumer.session.timeout.ms": None}, ErrorCode.INVALID_CONFIG),
    (GROUP, {"consumer.session.timeout.ms": "44999"}, ErrorCode.INVALID_CONFIG),
    (GROUP, {"consumer.session.timeout.ms": "60001"}, ErrorCode.INVALID_CONFIG),
    (GROUP, {"share.delivery.count.limit": "11"}, ErrorCode.INVALID_CONFIG),
    (GROUP, {"streams.num.standby.replicas": "3"}, ErrorCode.INVALID_CONFIG),
    (GROUP, {"errors.deadletterqueue.topic.name": "__hidden"}, ErrorCode.INVALID_CONFIG),
    (GROUP, {"streams.assignor.name": "lucky"}, ErrorCode.INVALID_CONFIG),
    (GROUP, {"streams.rack.aware.assignment.tags": "zone,zone"}, ErrorCode.INVALID_CONFIG),
]


@pytest.mark.parametrize(("kind", "configs", "code"), BAD)
def test_bad_values(kind: int, configs: dict[str, str | None], code: ErrorCode) -> None:
    with pytest.raises(ApiError) as refused:
        validate_configs(kind, configs, {}, {})
    assert refused.value.code is code
    assert refused.value.message


def test_the_bounds_of_groups_are_the_nodes() -> None:
    configs: dict[str, str | None] = {"consumer.session.timeout.ms": "70000"}
    validate_configs(GROUP, configs, {}, {"group.consumer.max.session.timeout.ms": "70000"})
    with pytest.raises(ApiError, match=r"group\.consumer\.max\.session\.timeout\.ms is 69999"):
        validate_configs(GROUP, configs, {}, {"group.consumer.max.session.timeout.ms": "69999"})


def test_a_session_outlasts_a_heartbeat() -> None:
    static = {"group.consumer.min.session.timeout.ms": "1", "group.consumer.heartbeat.interval.ms": "5000"}
    validate_configs(GROUP, {"consumer.session.timeout.ms": "5001"}, {}, static)
    with pytest.raises(ApiError, match=r"must be above consumer\.heartbeat"):
        validate_configs(GROUP, {"consumer.session.timeout.ms": "5000"}, {}, static)


def test_what_is_wrong_already_is_no_obstacle_to_other_changes_of_a_broker() -> None:
    """Logs of older releases may hold any value."""
    existing = {"min.insync.replicas": "none"}
    validate_configs(BROKER, {**existing, "log.retention.ms": "5"}, existing, {})
