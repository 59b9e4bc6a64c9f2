"""Make the entries that describe the configurations of resources, each a key with its value and sources.

Topics, groups and client metrics subscriptions fall back on values that they share. Those entries are made
once; only a value of its own gives a resource an entry of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from kraft_wire.configs.documentation import documentation_of
from kraft_wire.configs.java_text import parse_int32
from kraft_wire.configs.schema import (
    effective_topic_configs,
    group_synonym,
    is_dynamic_broker_key,
    keys_of,
    topic_synonyms,
)
from kraft_wire.configs.types import ConfigKey, ConfigSource, ConfigType, InvalidConfigValue
from kraft_wire.controller.config_apis.broker_config_view import (
    BrokerConfigView,
    SourcedValue,
    broker_definition,
)
from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)

Entry = DescribeConfigsResourceResult

_SOURCES: Final = {
    ResourceType.TOPIC.value: ConfigSource.TOPIC.value,
    ResourceType.GROUP.value: ConfigSource.GROUP.value,
    ResourceType.CLIENT_METRICS.value: ConfigSource.CLIENT_METRICS.value,
}
"""The sources of values that resources of these types have of their own."""

CHARS_OF_AN_ENTRY: Final = 100
"""So many characters of a value take as long to read as an entry takes to make."""
DIGITS_OF_AN_ENTRY: Final = 10


class _Shared(NamedTuple):
    """Entries that the resources of a type share. Only ``fallbacks`` has those of internal keys."""

    fallbacks: dict[str, Entry]
    by_name: dict[str, Entry]
    entries: list[Entry]


class ConfigEntries:
    """The entries of resources, as the state is now.

    ``effort`` is the number of entries that had to be made; long values count for more.
    """

    def __init__(
        self, state: ControllerState, *, include_synonyms: bool, include_documentation: bool
    ) -> None:
        self.effort = 0
        self._state = state
        self._include_synonyms = include_synonyms
        self._include_documentation = include_documentation
        self._view = BrokerConfigView(state)
        self._shared_by_type: dict[int, _Shared] = {}

    def of(self, resource_type: int, name: str, asked: Collection[str] | None) -> list[Entry]:
        """Return the entries of one resource, of a topic that exists: those that are asked for, or all.

        Nobody may change them. Raises ApiError.
        """
        self._check_name(resource_type, name)
        match resource_type:
            case ResourceType.BROKER:
                return self._of_brokers(bool(name), asked)
            case ResourceType.BROKER_LOGGER:
                return self._of_loggers(asked)
            case _:
                own = self._state.metadata.configs.get(resource_type, name)
                return self._layered(resource_type, own, asked)

    def _check_name(self, resource_type: int, name: str) -> None:
        match resource_type:
            case ResourceType.BROKER if not name:
                return
            case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
                self.effort += len(name) // DIGITS_OF_AN_ENTRY
                if parse_int32(name) != self._state.node_id:
                    raise ApiError(
                        ErrorCode.INVALID_REQUEST, f"this is node {self._state.node_id}, not {name!r}"
                    )
            case ResourceType.CLIENT_METRICS if not name:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST, "the name of the client metrics subscription is empty"
                )
            case ResourceType.GROUP if not name:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the name of the group is empty")

    # Brokers.

    def _of_brokers(self, is_this_node: bool, asked: Collection[str] | None) -> list[Entry]:
        """Describe this node, or the values that are set dynamically for all brokers and no others."""
        if asked is None:
            return self._node_entries if is_this_node else self._entries_for_all
        names = self._node_names if is_this_node else self._names_for_all
        return [self._broker_entry(is_this_node, name) for name in names if name in asked]

    @cached_property
    def _node_names(self) -> Collection[str]:
        return dict.fromkeys(self._view.names())

    @cached_property
    def _names_for_all(self) -> Collection[str]:
        return dict.fromkeys(sorted(self._view.all_brokers))

    @cached_property
    def _node_entries(self) -> list[Entry]:
        return [self._broker_entry(True, name) for name in self._node_names]

    @cached_property
    def _entries_for_all(self) -> list[Entry]:
        return [self._broker_entry(False, name) for name in self._names_for_all]

    def _broker_entry(self, is_this_node: bool, name: str) -> Entry:
        """Describe one broker key. An unknown key may hold a secret, so it is sensitive."""
        definition, view = broker_definition(name), self._view
        sourced = view.sourced(name)
        if is_this_node:
            value = view.value(name)
        else:
            value = view.all_brokers[name]
            sourced = [each for each in sourced if each.source == ConfigSource.DYNAMIC_DEFAULT_BROKER]
        return self._entry(
            name,
            _normal(definition, value),
            sourced,
            is_sensitive=definition is None or definition.is_sensitive,
            is_read_only=not is_dynamic_broker_key(name),
            config_type=ConfigType.UNKNOWN if definition is None else definition.type_id,
            documentation=self._documentation(ResourceType.BROKER, name),
        )

    # Loggers.

    def _of_loggers(self, asked: Collection[str] | None) -> list[Entry]:
        self.effort += len(self._loggers)
        return [entry for entry in self._loggers if asked is None or entry.name in asked]

    @cached_property
    def _loggers(self) -> list[Entry]:
        return [
            Entry(
                name=name,
                value=level,
                read_only=False,
                config_source=ConfigSource.DYNAMIC_BROKER_LOGGER.value,
                is_sensitive=False,
                synonyms=[],
                config_type=ConfigType.UNKNOWN,
                documentation=None,
            )
            for name, level in self._state.log_levels().items()
        ]

    # Resources that fall back on other values.

    def _layered(
        self, resource_type: int, own: Mapping[str, str], asked: Collection[str] | None
    ) -> list[Entry]:
        """Describe a resource with some values of its ``own``. It has internal keys only if they are set."""
        keys, shared = keys_of(resource_type), self._shared(resource_type)
        if not own and asked is None:
            return shared.entries
        replacing = {
            name: self._own_entry(resource_type, keys[name], value, shared.fallbacks[name])
            for name, value in own.items()
            if name in keys and (asked is None or name in asked)
        }
        if asked is None and shared.by_name.keys() >= replacing.keys():
            return list((shared.by_name | replacing).values())
        names = shared.by_name if asked is None else shared.by_name.keys() & asked
        entries = {name: shared.by_name[name] for name in names} | replacing
        return [entries[name] for name in sorted(entries)]

    def _shared(self, resource_type: int) -> _Shared:
        shared = self._shared_by_type.get(resource_type)
        if shared is None:
            keys = sorted(keys_of(resource_type).items())
            fallbacks = {name: self._fallback_entry(resource_type, key) for name, key in keys}
            by_name = {name: fallbacks[name] for name, key in keys if not key.internal}
            shared = _Shared(fallbacks, by_name, list(by_name.values()))
            self._shared_by_type[resource_type] = shared
        return shared

    def _fallback_entry(self, resource_type: int, key: ConfigKey) -> Entry:
        """Describe one key of a resource that doesn't set it."""
        below = self._below(resource_type, key)
        if resource_type == ResourceType.TOPIC:
            value = self._topic_fallbacks.get(key.name)
        else:
            value = below[0].value if below else key.default
        return self._entry(
            key.name,
            _normal(key, value),
            below,
            is_sensitive=key.is_sensitive,
            is_read_only=False,
            config_type=key.type_id,
            documentation=self._documentation(resource_type, key.name),
        )

    def _own_entry(self, resource_type: int, key: ConfigKey, text: str, fallback: Entry) -> Entry:
        """Describe one key of a resource that sets it. The sources below are those of the fallback."""
        self.effort += 1 + len(text) // CHARS_OF_AN_ENTRY
        value = None if key.is_sensitive else _normal(key, text)
        source = _SOURCES[resource_type]
        return Entry(
            name=key.name,
            value=value,
            read_only=False,
            config_source=source,
            is_sensitive=key.is_sensitive,
            synonyms=[DescribeConfigsSynonym(key.name, value, source), *fallback.synonyms]
            if self._include_synonyms
            else [],
            config_type=fallback.config_type,
            documentation=fallback.documentation,
        )

    def _below(self, resource_type: int, key: ConfigKey) -> list[SourcedValue]:
        """Return the places that a key of a resource falls back on."""
        match resource_type:
            case ResourceType.TOPIC:
                synonyms = topic_synonyms(key.name)
                return self._view.sourced(synonyms[0].name) if synonyms else []
            case ResourceType.GROUP:
                synonym = group_synonym(key.name)
                if synonym is not None:
                    return self._view.sourced(synonym)
                return [] if key.default is None else [_default(key.name, key.default)]
            case _:
                return []

    @cached_property
    def _topic_fallbacks(self) -> Mapping[str, str | None]:
        return {
            config.name: config.value for config in effective_topic_configs(self._state.config_layers, {})
        }

    def _entry(
        self,
        name: str,
        value: str | None,
        sourced: Sequence[SourcedValue],
        *,
        is_sensitive: bool,
        is_read_only: bool,
        config_type: ConfigType,
        documentation: str | None,
    ) -> Entry:
        self.effort += 1
        return Entry(
            name=name,
            value=None if is_sensitive else value,
            read_only=is_read_only,
            config_source=sourced[0].source.value if sourced else ConfigSource.DEFAULT.value,
            is_sensitive=is_sensitive,
            synonyms=_synonyms(sourced, is_sensitive) if self._include_synonyms else [],
            config_type=config_type.value,
            documentation=documentation,
        )

    def _documentation(self, resource_type: int, name: str) -> str | None:
        return documentation_of(resource_type, name) if self._include_documentation else None


def _default(name: str, value: str) -> SourcedValue:
    return SourcedValue(name, value, ConfigSource.DEFAULT)


def _synonyms(sourced: Iterable[SourcedValue], is_sensitive: bool) -> list[DescribeConfigsSynonym]:
    return [
        DescribeConfigsSynonym(name=s.name, value=None if is_sensitive else s.value, source=s.source.value)
        for s in sourced
    ]


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
