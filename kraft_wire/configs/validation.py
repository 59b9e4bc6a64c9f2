"""Validate the configuration of a resource: name, keys and values (Kafka's ControllerConfigurationValidator).

The values of BROKER resources are checked by the broker that forwards them. Here only those are checked that
topics fall back on, because a bad one would break every decision about topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraft_wire.configs.java_text import parse_int32, parse_integer, split, trim
from kraft_wire.configs.regex.pattern import InvalidRegex, check_regex
from kraft_wire.configs.schema import (
    broker_key,
    check_known,
    client_metrics_keys,
    group_keys,
    group_synonym,
    refuse_nulls,
    topic_fallback_keys,
    validate_topic_configs,
)
from kraft_wire.configs.types import InvalidConfigValue, split_list
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.topic_names import why_invalid
from kraft_wire.protocol.errors import ApiError, ErrorCode

_TOPIC: Final = ResourceType.TOPIC
_INTERVAL_MS: Final = range(100, 3_600_000 + 1)
_PARTS_OF_MATCH: Final = 2
_MATCHABLE: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def validate_resource(resource_type: int, name: str) -> None:
    """Check a resource's name. Raises ApiError: INVALID_TOPIC_EXCEPTION, or INVALID_REQUEST."""
    if resource_type == _TOPIC:
        _check_topic_name(name)
        return
    match resource_type:
        case ResourceType.BROKER:
            _check_broker_name(name)
        case ResourceType.CLIENT_METRICS | ResourceType.GROUP if not name:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, "there is no default for groups or client metrics subscriptions"
            )
        case ResourceType.CLIENT_METRICS | ResourceType.GROUP:
            pass
        case _:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"resources of type {resource_type} have no configuration"
            )


def validate_configs(
    resource_type: int,
    configs: Mapping[str, str | None],
    existing: Mapping[str, str],
    static_configs: Mapping[str, str],
) -> None:
    """Check all the values that a resource will have.

    Raises ApiError(INVALID_CONFIG), for client metrics also ApiError(INVALID_REQUEST) as Kafka does.
    """
    try:
        match resource_type:
            case ResourceType.TOPIC:
                validate_topic_configs(configs, existing=existing, static_configs=static_configs)
            case ResourceType.BROKER:
                _check_broker(configs, existing)
            case ResourceType.CLIENT_METRICS:
                _check_client_metrics(configs)
            case ResourceType.GROUP:
                _check_group(configs, static_configs)
    except InvalidConfigValue as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error


def _check_topic_name(name: str) -> None:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the name of the topic is empty; set defaults on brokers")
    if fault := why_invalid(name):
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)


def _check_broker_name(name: str) -> None:
    if name and ((broker_id := parse_int32(name)) is None or broker_id < 0):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name!r} is not a broker id")


def _check_broker(configs: Mapping[str, str | None], existing: Mapping[str, str]) -> None:
    """Check the values that change. A bad old value must not prevent other changes."""
    for name in sorted(topic_fallback_keys().intersection(configs)):
        key = broker_key(name)
        if key is not None and configs[name] != existing.get(name):
            key.check(configs[name])


def _check_client_metrics(configs: Mapping[str, str | None]) -> None:
    """Check the interval, 100 ms to an hour, and the matches, NAME=REGULAR EXPRESSION (KIP-714)."""
    keys = client_metrics_keys()
    given = refuse_nulls(configs, "client metrics")
    check_known(given, keys, "client metrics", ErrorCode.INVALID_REQUEST)
    for name, value in given.items():
        keys[name].check(value)
    interval = given.get("interval.ms")
    if interval is not None and parse_integer(trim(interval)) not in _INTERVAL_MS:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"interval.ms={interval} is not between 100 and 3600000")
    for pattern in split_list(given.get("match", "")):
        _check_match(pattern)


def _check_match(pattern: str) -> None:
    parts = split(pattern, "=")
    if len(parts) != _PARTS_OF_MATCH:
        raise InvalidConfigValue("match", pattern, "is not NAME=PATTERN")
    name, expression = parts
    if trim(name) not in _MATCHABLE:
        raise InvalidConfigValue("match", pattern, f"the name must be one of {', '.join(sorted(_MATCHABLE))}")
    try:
        check_regex(trim(expression))
    except InvalidRegex as error:
        raise InvalidConfigValue("match", pattern, f"is not a regular expression of Java: {error}") from error


def _check_group(configs: Mapping[str, str | None], static_configs: Mapping[str, str]) -> None:
    """Check that values are in the range of the node's properties, and sessions longer than heartbeats."""
    keys = group_keys()
    given = refuse_nulls(configs, "group")
    check_known(given, keys, "group", ErrorCode.INVALID_CONFIG)
    for name, value in given.items():
        keys[name].check(value)
        _check_group_range(name, value, static_configs)
    for kind in ("consumer", "share", "streams"):
        _check_session(kind, given, static_configs)
    topic = given.get("errors.deadletterqueue.topic.name", "")
    if topic.startswith("__"):
        raise InvalidConfigValue("errors.deadletterqueue.topic.name", topic, "must not start with __")
    tags = split_list(given.get("streams.rack.aware.assignment.tags", ""))
    if len(set(tags)) != len(tags):
        raise InvalidConfigValue("streams.rack.aware.assignment.tags", ",".join(tags), "has a tag twice")
    assignor = given.get("streams.assignor.name")
    offered = _broker_value("group.streams.assignors", static_configs)
    if assignor is not None and trim(assignor) not in split_list(offered):
        raise InvalidConfigValue("streams.assignor.name", assignor, f"must be one of {offered}")


def _check_group_range(name: str, value: str, static_configs: Mapping[str, str]) -> None:
    """Check a group's value: group.consumer.min.X and group.consumer.max.X are the bounds of consumer.X."""
    kind, _, rest = name.partition(".")
    for bound, is_outside in (("min", int.__lt__), ("max", int.__gt__)):
        for middle in (rest, rest.removeprefix("num.")):
            limit_name = f"group.{kind}.{bound}.{middle}"
            if (key := broker_key(limit_name)) is None or key.type not in ("INT", "LONG"):
                continue
            limit = parse_integer(trim(_broker_value(limit_name, static_configs)))
            if is_outside(parse_integer(trim(value)), limit):
                raise InvalidConfigValue(name, value, f"{limit_name} is {limit}")
            break


def _check_session(kind: str, given: Mapping[str, str], static_configs: Mapping[str, str]) -> None:
    session_name, heartbeat_name = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    if session_name not in given and heartbeat_name not in given:
        return
    session = parse_integer(trim(_group_value(session_name, given, static_configs)))
    heartbeat = parse_integer(trim(_group_value(heartbeat_name, given, static_configs)))
    if session <= heartbeat:
        raise InvalidConfigValue(session_name, str(session), f"must be above {heartbeat_name}, {heartbeat}")


def _group_value(name: str, given: Mapping[str, str], static_configs: Mapping[str, str]) -> str:
    value = given.get(name)
    return value if value is not None else _broker_value(group_synonym(name) or "", static_configs)


def _broker_value(name: str, static_configs: Mapping[str, str]) -> str:
    key = broker_key(name)
    return static_configs.get(name) or (key.default if key else None) or ""
