"""Serve DescribeConfigs (32): return configuration values and their sources. KIP-133, KIP-226, KIP-569.

On a controller a BROKER resource is this node, by its id, or "" for the values set dynamically on all
brokers. Topics, groups and client metrics subscriptions are those of the cluster. Sensitive values are never
sent, and the documentation of keys is always null. Versions: 1 adds sources and synonyms, 3 types and
documentation. Kafka requires DESCRIBE_CONFIGS on the topic, on the group, or for all else on the cluster.
Rules: ConfigHelper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kraft_wire.configs.java_text import parse_int32
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

_TYPES: Final = frozenset(map(int, ResourceType)) - {int(ResourceType.UNKNOWN)}

_TOPIC: Final = int(ResourceType.TOPIC)


def handle(state: ControllerState, request: DescribeConfigsRequest, version: int, context: Context) -> Result:
    """Describe each resource. Each one that fails has its error in the response.

    Resources that the client may not see come last, as in Kafka. Raises ApiError(INVALID_REQUEST) for a
    resource type that does not exist.
    """
    for resource in request.resources:
        if resource.resource_type not in _TYPES:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no resource type {resource.resource_type}")
    described: list[DescribeConfigsResult] = []
    refusals: list[DescribeConfigsResult] = []
    entries = _Entries(state, include_synonyms=request.include_synonyms)
    for resource in _merged(request.resources):
        if context.may_do_everything or context.may(AclOperation.DESCRIBE_CONFIGS, _governing(resource)):
            described.append(_describe(entries, resource))
        else:
            error = refused(AclOperation.DESCRIBE_CONFIGS, _governing(resource))
            refusals.append(_failure(resource, error.code, error.message))
    return Result(DescribeConfigsResponse(results=described + refusals))


def _merged(resources: Iterable[DescribeConfigsResource]) -> list[DescribeConfigsResource]:
    """Return each resource once, with all the keys that are asked of it; without keys it is all of them."""
    merged: dict[tuple[int, str], DescribeConfigsResource] = {}
    for resource in resources:
        name = resource.resource_type, resource.resource_name
        known = merged.get(name)
        if known is None:
            merged[name] = resource
        elif known.configuration_keys and resource.configuration_keys:
            keys = (*known.configuration_keys, *resource.configuration_keys)
            merged[name] = DescribeConfigsResource(*name, keys)
        else:
            merged[name] = DescribeConfigsResource(*name, None)
    return list(merged.values())


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


def _describe(entries: _Entries, resource: DescribeConfigsResource) -> DescribeConfigsResult:
    if resource.resource_type == _TOPIC and (failed := entries.why_no_topic(resource.resource_name)):
        return _failure(resource, *failed)
    try:
        configs = entries.of(resource.resource_type, resource.resource_name)
    except ApiError as error:
        return _failure(resource, error.code, error.message)
    wanted = set(resource.configuration_keys or ())
    if wanted:
        configs = [entry for entry in configs if entry.name in wanted]
    return DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name, configs=configs
    )


class _Entries:
    """The entries of resources. Those that many resources share are made once for a request."""

    def __init__(self, state: ControllerState, *, include_synonyms: bool) -> None:
        self._state = state
        self._include_synonyms = include_synonyms
        self._view = BrokerConfigView(state)
        self._made: dict[tuple[int, str], list[DescribeConfigsResourceResult]] = {}

    def of(self, resource_type: int, name: str) -> list[DescribeConfigsResourceResult]:
        """Return the entries of one resource, of a topic that exists. Raises ApiError."""
        match resource_type:
            case ResourceType.BROKER | ResourceType.BROKER_LOGGER if (
                name or resource_type != ResourceType.BROKER
            ):
                _check_own_id(self._state, name)
            case ResourceType.CLIENT_METRICS if not name:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST, "the name of the client metrics subscription is empty"
                )
            case ResourceType.GROUP if not name:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the name of the group is empty")
        overrides = self._state.metadata.configs.get(resource_type, name)
        if overrides or resource_type == ResourceType.BROKER:
            return self._make(resource_type, name, overrides)
        shared = resource_type, ""
        if shared not in self._made:
            self._made[shared] = self._make(resource_type, name, overrides)
        return self._made[shared]

    def _make(
        self, resource_type: int, name: str, overrides: Mapping[str, str]
    ) -> list[DescribeConfigsResourceResult]:
        entries = list(self._all(resource_type, name, overrides))
        if not self._include_synonyms:
            for entry in entries:
                entry.synonyms = []
        return entries

    def _all(
        self, resource_type: int, name: str, overrides: Mapping[str, str]
    ) -> Iterable[DescribeConfigsResourceResult]:
        view = self._view
        match resource_type:
            case ResourceType.TOPIC:
                return _topic(self._state, view, overrides)
            case ResourceType.BROKER if not name:
                return _all_brokers(view)
            case ResourceType.BROKER:
                return [_broker_entry(view, key, view.value(key)) for key in view.names()]
            case ResourceType.BROKER_LOGGER:
                return []  # the log levels of this process can't be changed while it runs
            case ResourceType.CLIENT_METRICS:
                return _client_metrics(overrides)
            case _:
                return _group(view, overrides)

    def why_no_topic(self, name: str) -> tuple[ErrorCode, str] | None:
        """Return why there is no topic of this name; None if there is one."""
        if self._state.metadata.topics.is_name(name):
            return None
        if fault := why_invalid(name):
            return ErrorCode.INVALID_TOPIC_EXCEPTION, fault
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}"


def _check_own_id(state: ControllerState, name: str) -> None:
    if parse_int32(name) != state.node_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"this is node {state.node_id}, not {name!r}")


def _topic(
    state: ControllerState, view: BrokerConfigView, overrides: Mapping[str, str]
) -> list[DescribeConfigsResourceResult]:
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


def _group(view: BrokerConfigView, overrides: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
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


def _client_metrics(overrides: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
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


def _all_brokers(view: BrokerConfigView) -> list[DescribeConfigsResourceResult]:
    """Describe the values that are set dynamically for all brokers, and no others."""
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
