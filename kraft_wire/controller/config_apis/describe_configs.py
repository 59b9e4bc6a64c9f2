"""Serve DescribeConfigs (32): return configuration values and their sources. KIP-133, KIP-226, KIP-569.

On a controller a BROKER resource is this node, by its id, or "" for the values set dynamically on all
brokers. Topics, groups and client metrics subscriptions are those of the cluster. Sensitive values are never
sent, and the documentation of keys is always null. Versions: 1 adds sources and synonyms, 3 types and
documentation. Kafka requires DESCRIBE_CONFIGS on the topic, on the group, or for all else on the cluster.
Rules: ConfigHelper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kraft_wire.configs.schema import (
    client_metrics_keys,
    effective_topic_configs,
    group_keys,
    group_synonym,
    is_dynamic_broker_key,
    topic_keys,
    topic_synonyms,
)
from kraft_wire.configs.types import ConfigKey, ConfigSource, ConfigType, InvalidConfigValue
from kraft_wire.controller.config_apis.broker_config_view import (
    BrokerConfigView,
    SourcedValue,
    broker_definition,
)
from kraft_wire.controller.decision.context import Context, ControllerState, Result, refused
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.topic_names import why_invalid
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kraft_wire.security.authorization import (
    CLUSTER,
    AclOperation,
    Resource,
    group_resource,
    topic_resource,
)


def handle(state: ControllerState, request: DescribeConfigsRequest, version: int, context: Context) -> Result:
    """Describe each resource. Each one that fails has its error in the response.

    Resources that the client may not see come last, as in Kafka. Raises ApiError(INVALID_REQUEST) for a
    resource type that does not exist.
    """
    described: list[DescribeConfigsResult] = []
    refusals: list[DescribeConfigsResult] = []
    for resource in request.resources:
        if resource.resource_type not in set(ResourceType) or resource.resource_type == ResourceType.UNKNOWN:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no resource type {resource.resource_type}")
    for resource in request.resources:
        governing = _governing(resource)
        if context.may(AclOperation.DESCRIBE_CONFIGS, governing):
            described.append(_describe(state, resource, request.include_synonyms))
        else:
            error = refused(AclOperation.DESCRIBE_CONFIGS, governing)
            refusals.append(_failure(resource, error.code, error.message))
    return Result(DescribeConfigsResponse(results=described + refusals))


def _governing(resource: DescribeConfigsResource) -> Resource:
    """Return the resource whose permission is needed to see a configuration."""
    match resource.resource_type:
        case ResourceType.TOPIC:
            return topic_resource(resource.resource_name)
        case ResourceType.GROUP:
            return group_resource(resource.resource_name)
        case _:
            return CLUSTER


def _failure(resource: DescribeConfigsResource, code: ErrorCode, message: str) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=int(code),
        error_message=message or None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _describe(
    state: ControllerState, resource: DescribeConfigsResource, include_synonyms: bool
) -> DescribeConfigsResult:
    try:
        entries = _entries(state, resource.resource_type, resource.resource_name)
    except ApiError as error:
        return _failure(resource, error.code, error.message)
    wanted = set(resource.configuration_keys or ())
    configs = [entry for entry in entries if not wanted or entry.name in wanted]
    if not include_synonyms:
        for entry in configs:
            entry.synonyms = []
    return DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name, configs=configs
    )


def _entries(
    state: ControllerState, resource_type: int, name: str
) -> Iterable[DescribeConfigsResourceResult]:
    match resource_type:
        case ResourceType.TOPIC:
            return _topic(state, name)
        case ResourceType.BROKER if not name:
            return _all_brokers(state)
        case ResourceType.BROKER:
            _check_own_id(state, name)
            view = BrokerConfigView(state)
            return [_broker_entry(view, key, view.value(key)) for key in view.names()]
        case ResourceType.BROKER_LOGGER:
            _check_own_id(state, name)
            return []  # the log levels of this process can't be changed while it runs
        case ResourceType.CLIENT_METRICS:
            return _client_metrics(state, name)
        case _:
            return _group(state, name)


def _check_own_id(state: ControllerState, name: str) -> None:
    if name != str(state.node_id):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"this is node {state.node_id}, not {name!r}")


def _topic(state: ControllerState, name: str) -> list[DescribeConfigsResourceResult]:
    if fault := why_invalid(name):
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if state.metadata.topics.by_name(name) is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    overrides = state.metadata.configs.get(ResourceType.TOPIC, name)
    view = BrokerConfigView(state)
    return [
        _layered_entry(
            topic_keys()[config.name],
            config.value,
            SourcedValue(config.name, overrides[config.name], ConfigSource.TOPIC)
            if config.name in overrides
            else None,
            view.sourced(topic_synonyms(config.name)[0].name) if topic_synonyms(config.name) else [],
        )
        for config in effective_topic_configs(state.config_layers, overrides)
    ]


def _group(state: ControllerState, name: str) -> list[DescribeConfigsResourceResult]:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the name of the group is empty")
    overrides = state.metadata.configs.get(ResourceType.GROUP, name)
    view = BrokerConfigView(state)
    return [
        _group_entry(key, overrides, view)
        for key in group_keys().values()
        if not key.internal or key.name in overrides
    ]


def _group_entry(
    key: ConfigKey, overrides: Mapping[str, str], view: BrokerConfigView
) -> DescribeConfigsResourceResult:
    own = overrides.get(key.name)
    override = None if own is None else SourcedValue(key.name, own, ConfigSource.GROUP)
    synonym = group_synonym(key.name)
    if synonym is not None:
        below = view.sourced(synonym)
    elif key.default is not None:
        below = [SourcedValue(key.name, key.default, ConfigSource.DEFAULT)]
    else:
        below = []
    fallback = below[0].value if below else key.default
    return _layered_entry(key, fallback if own is None else own, override, below)


def _client_metrics(state: ControllerState, name: str) -> list[DescribeConfigsResourceResult]:
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the name of the client metrics subscription is empty")
    overrides = state.metadata.configs.get(ResourceType.CLIENT_METRICS, name)
    return [
        _layered_entry(
            key,
            overrides.get(key.name, key.default),
            SourcedValue(key.name, overrides[key.name], ConfigSource.CLIENT_METRICS)
            if key.name in overrides
            else None,
            [],
        )
        for key in client_metrics_keys().values()
    ]


def _all_brokers(state: ControllerState) -> list[DescribeConfigsResourceResult]:
    """Describe the values that are set dynamically for all brokers, and no others."""
    view = BrokerConfigView(state)
    entries = [_broker_entry(view, name, value) for name, value in sorted(view.all_brokers.items())]
    for entry in entries:
        entry.synonyms = [s for s in entry.synonyms if s.source == ConfigSource.DYNAMIC_DEFAULT_BROKER]
        entry.config_source = entry.synonyms[0].source if entry.synonyms else ConfigSource.DEFAULT.value
    return entries


def _broker_entry(view: BrokerConfigView, name: str, value: str | None) -> DescribeConfigsResourceResult:
    """Describe one broker key. A key unknown to Kafka may hold a secret, so it is sensitive."""
    definition = broker_definition(name)
    return _entry(
        name,
        _normal(definition, value),
        view.sourced(name),
        is_sensitive=definition is None or definition.is_sensitive,
        is_read_only=not is_dynamic_broker_key(name),
        config_type=ConfigType.UNKNOWN if definition is None else definition.type_id,
    )


def _layered_entry(
    key: ConfigKey, value: str | None, override: SourcedValue | None, below: Sequence[SourcedValue]
) -> DescribeConfigsResourceResult:
    """Describe one key of a resource that falls back on the values of brokers, ``below``."""
    value = _normal(key, value)
    sourced = list(below)
    if override is not None and value is not None:
        sourced.insert(0, SourcedValue(override.name, value, override.source))
    return _entry(
        key.name, value, sourced, is_sensitive=key.is_sensitive, is_read_only=False, config_type=key.type_id
    )


def _entry(
    name: str,
    value: str | None,
    sourced: Sequence[SourcedValue],
    *,
    is_sensitive: bool,
    is_read_only: bool,
    config_type: ConfigType,
) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=name,
        value=None if is_sensitive else value,
        read_only=is_read_only,
        config_source=sourced[0].source.value if sourced else ConfigSource.DEFAULT.value,
        is_sensitive=is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(
                name=s.name, value=None if is_sensitive else s.value, source=s.source.value
            )
            for s in sourced
        ],
        config_type=config_type.value,
        documentation=None,
    )


def _normal(key: ConfigKey | None, value: str | None) -> str | None:
    """Return the value in the form in which Java prints it.

    A value that can't be parsed, which an old log may hold, is returned as it is.
    """
    if key is None or value is None:
        return value
    try:
        return key.normalize(value)
    except InvalidConfigValue:
        return value
