"""Look up configuration keys, and compute a topic's effective configuration.

The tables (``configs.tables``) are loaded on first use. The effective value of a topic is the first of: set
on the topic, set dynamically on this node, set dynamically on all brokers, in this node's properties file,
Kafka's default. In the layers of brokers a key has the names of its synonyms, in their order
(KafkaConfigSchema).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

import msgspec

from kraft_wire.configs.java_text import equals_ignoring_case, parse_integer, trim
from kraft_wire.configs.layers import ConfigLayers
from kraft_wire.configs.types import (
    ConfigKey,
    ConfigSource,
    ConfigType,
    InvalidConfigValue,
    Synonym,
)
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ApiError, ErrorCode

ALL_BROKERS: Final = ""
"""The name of the BROKER resource whose values apply to every broker."""
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
_LEAST_LAG: Final = "min.compaction.lag.ms"
_MOST_LAG: Final = "max.compaction.lag.ms"
_TABLES: Final[Mapping[int, str]] = {
    ResourceType.TOPIC.value: "TOPIC",
    ResourceType.BROKER.value: "BROKER",
    ResourceType.GROUP.value: "GROUP",
    ResourceType.CLIENT_METRICS.value: "CLIENT_METRICS",
}
"""The tables of keys of the types of resources."""


class EffectiveConfig(msgspec.Struct, frozen=True, gc=False):
    """The value of a key and its source.

    ``synonym`` is the key under which the value was found. If ``sensitive`` is set, ``value`` is a secret and
    must not be shown.
    """

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: ConfigType
    synonym: str


def topic_keys() -> Mapping[str, ConfigKey]:
    """Return the topic keys by name, in their order."""
    return _keys("TOPIC")


def broker_keys() -> Mapping[str, ConfigKey]:
    """Return the keys of a node's properties file by name."""
    return _keys("BROKER")


def group_keys() -> Mapping[str, ConfigKey]:
    """Return the group keys by name."""
    return _keys("GROUP")


def client_metrics_keys() -> Mapping[str, ConfigKey]:
    """Return the keys of client metrics subscriptions by name."""
    return _keys("CLIENT_METRICS")


def broker_key(name: str) -> ConfigKey | None:
    """Return a broker key, including those that can only be set dynamically, or None."""
    return broker_keys().get(name) or _keys("BROKER_DYNAMIC_ONLY").get(name)


def keys_of(resource_type: int) -> Mapping[str, ConfigKey]:
    """Return the keys of resources of this type, none for a type without configuration."""
    table = _TABLES.get(resource_type)
    return _keys(table) if table else {}


def is_dynamic_broker_key(name: str) -> bool:
    """Whether brokers accept this key while they run."""
    from kraft_wire.configs.tables import BROKER_DYNAMIC

    return name in BROKER_DYNAMIC


def topic_synonyms(name: str) -> tuple[Synonym, ...]:
    """Return the broker keys that a topic key falls back on, in the order of precedence."""
    return _topic_synonyms().get(name, ())


@cache
def topic_fallback_keys() -> frozenset[str]:
    """Return every broker key that some topic key falls back on."""
    return frozenset(synonym.name for synonyms in _topic_synonyms().values() for synonym in synonyms)


def group_synonym(name: str) -> str | None:
    """Return the broker key that a group key falls back on, or None."""
    from kraft_wire.configs.tables import GROUP_SYNONYMS

    return GROUP_SYNONYMS.get(name)


def effective_topic_configs(layers: ConfigLayers, overrides: Mapping[str, str]) -> list[EffectiveConfig]:
    """Return all values of a topic with ``overrides``, by name. Internal keys are in it if they are set."""
    return _topic_configs(_topic_layers(layers), overrides)


def topic_fallbacks(layers: ConfigLayers) -> TopicFallbacks:
    """Return the values that topics fall back on, as a value that can be compared and remembered."""
    return tuple((source, tuple(sorted(values.items()))) for source, values in _topic_layers(layers))


def fallback_topic_configs(fallbacks: TopicFallbacks) -> list[EffectiveConfig]:
    """Return what ``effective_topic_configs`` returns for a topic without overrides."""
    return _topic_configs(tuple((source, dict(values)) for source, values in fallbacks), {})


def _topic_configs(below: _TopicLayers, overrides: Mapping[str, str]) -> list[EffectiveConfig]:
    return [
        _resolve(key, overrides, below)
        for key in topic_keys().values()
        if not key.internal or key.name in overrides
    ]


def effective_topic_config(layers: ConfigLayers, topic_name: str, key: str) -> str:
    """Return one value of a topic, "" for a key without value. Raises KeyError for an unknown key."""
    (value,) = effective_topic_values(layers, [topic_name], key)
    return value


def effective_topic_values(layers: ConfigLayers, topic_names: Iterable[str], key: str) -> list[str]:
    """Return the same for several topics."""
    below, found, own = _topic_layers(layers), topic_keys()[key], layers.dynamic.get
    return [_resolve(found, own(ResourceType.TOPIC, name), below).value or "" for name in topic_names]


def static_min_insync_replicas(static_configs: Mapping[str, str]) -> int:
    """Return this node's own min.insync.replicas: that of its properties file, or Kafka's default."""
    key = topic_keys()[MIN_INSYNC_REPLICAS]
    return int(static_configs.get(MIN_INSYNC_REPLICAS) or key.default or "1")


def validate_topic_configs(
    configs: Mapping[str, str | None],
    *,
    existing: Mapping[str, str] | None = None,
    static_configs: Mapping[str, str] | None = None,
) -> None:
    """Check all the values that a topic will have (LogConfig.validate).

    ``existing`` are its present values. ``static_configs`` are the node's properties: a key that is not in
    ``configs`` falls back on them when two keys are compared. Raises ApiError(INVALID_CONFIG).
    """
    try:
        _check_topic_configs(configs, existing or {}, static_configs or {})
    except InvalidConfigValue as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error


def check_known(configs: Iterable[str], keys: Mapping[str, ConfigKey], what: str, code: ErrorCode) -> None:
    """Raise ApiError(code) for a name that is not a key."""
    for name in configs:
        if name not in keys:
            raise ApiError(code, f"there is no {what} configuration {name}")


def refuse_nulls(configs: Mapping[str, str | None], what: str) -> dict[str, str]:
    """Return the values. Raises ApiError(INVALID_CONFIG) if one of them is null."""
    if None in configs.values():
        nulls = sorted(name for name, value in configs.items() if value is None)
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{what} configurations without a value: {', '.join(nulls)}")
    return {name: value for name, value in configs.items() if value is not None}


@cache
def _topic_synonyms() -> Mapping[str, tuple[Synonym, ...]]:
    from kraft_wire.configs.tables import TOPIC_SYNONYMS

    return TOPIC_SYNONYMS


@cache
def _keys(table: str) -> Mapping[str, ConfigKey]:
    from kraft_wire.configs import tables

    return {key.name: key for key in getattr(tables, table)}


_TopicLayers = tuple[tuple[ConfigSource, Mapping[str, str]], ...]
TopicFallbacks = tuple[tuple[ConfigSource, tuple[tuple[str, str], ...]], ...]
"""The layers that have a value for topics, in the order of precedence, each with its names and values."""


def _topic_layers(layers: ConfigLayers) -> _TopicLayers:
    """Return the layers that a topic falls back on, in the order of precedence.

    Layers without a value for topics are left out.
    """
    fallback, selected = topic_fallback_keys(), layers.dynamic.selected
    static = {key: value for key, value in layers.static_configs.items() if key in fallback}
    sourced = (
        (ConfigSource.DYNAMIC_BROKER, selected(ResourceType.BROKER, str(layers.node_id), fallback)),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, selected(ResourceType.BROKER, ALL_BROKERS, fallback)),
        (ConfigSource.STATIC_BROKER, static),
    )
    return tuple((source, values) for source, values in sourced if values)


def _resolve(key: ConfigKey, overrides: Mapping[str, str], layers: _TopicLayers) -> EffectiveConfig:
    if key.name in overrides:
        return _effective(key, overrides[key.name], ConfigSource.TOPIC, key.name)
    if layers:
        synonyms = topic_synonyms(key.name)
        for source, values in layers:
            for synonym in synonyms:
                if (value := values.get(synonym.name)) is not None:
                    return _effective(key, synonym.convert(value), source, synonym.name)
    return _defaults()[key.name]


@cache
def _defaults() -> Mapping[str, EffectiveConfig]:
    return {
        key.name: _effective(key, key.default, ConfigSource.DEFAULT, key.name)
        for key in topic_keys().values()
    }


def _effective(key: ConfigKey, value: str | None, source: ConfigSource, found_as: str) -> EffectiveConfig:
    return EffectiveConfig(key.name, value, source, False, key.is_sensitive, key.type_id, found_as)


def _check_topic_configs(
    configs: Mapping[str, str | None], existing: Mapping[str, str], static_configs: Mapping[str, str]
) -> None:
    keys = topic_keys()
    check_known(configs, keys, "topic", ErrorCode.INVALID_CONFIG)
    given = refuse_nulls(configs, "topic")
    for name, value in given.items():
        keys[name].check(value)
    values = _TopicValues(given, static_configs)
    _check_compaction_lags(values)
    if values.flag("remote.storage.enable"):
        _check_remote_storage(values, static_configs)
    elif _is_true(existing.get("remote.storage.enable")) and not values.flag("remote.log.delete.on.disable"):
        raise InvalidConfigValue(
            "remote.storage.enable",
            "false",
            "needs remote.log.delete.on.disable=true; to keep the remote data, "
            "leave it enabled and set remote.log.copy.disable=true",
        )


def _check_compaction_lags(values: _TopicValues) -> None:
    if not values.has_any(_LEAST_LAG, _MOST_LAG):
        return  # Kafka's defaults are right
    least, most = values.number(_LEAST_LAG), values.number(_MOST_LAG)
    if least > most:
        raise InvalidConfigValue(_LEAST_LAG, str(least), f"is above {_MOST_LAG}, {most}")


def _is_true(text: str | None) -> bool:
    return text is not None and equals_ignoring_case(trim(text), "true")


class _TopicValues:
    """The values that a topic will have, with the properties file and the defaults as fallback."""

    def __init__(self, given: Mapping[str, str], static_configs: Mapping[str, str]) -> None:
        self._given = given
        is_used = not topic_fallback_keys().isdisjoint(static_configs)
        self._layers: _TopicLayers = ((ConfigSource.STATIC_BROKER, static_configs),) if is_used else ()

    def has_any(self, *names: str) -> bool:
        """Whether one of the keys may have a value that isn't its default."""
        return bool(self._layers) or any(name in self._given for name in names)

    def text(self, name: str) -> str:
        return _resolve(topic_keys()[name], self._given, self._layers).value or ""

    def number(self, name: str) -> int:
        return parse_integer(trim(self.text(name)))

    def flag(self, name: str) -> bool:
        return _is_true(self.text(name))


def _check_remote_storage(values: _TopicValues, static_configs: Mapping[str, str]) -> None:
    """Check the settings of a topic that uses tiered storage (KIP-405)."""
    if not _is_true(static_configs.get("remote.log.storage.system.enable")):
        raise InvalidConfigValue(
            "remote.storage.enable", "true", "needs remote.log.storage.system.enable=true in this cluster"
        )
    if trim(values.text("cleanup.policy")) not in ("delete", ""):
        raise InvalidConfigValue(
            "cleanup.policy", values.text("cleanup.policy"), "must be delete for a topic with remote storage"
        )
    for unit in ("bytes", "ms"):
        _check_local_retention(values, unit)
        _check_copy_lag(values, unit)


def _check_local_retention(values: _TopicValues, unit: str) -> None:
    """Check that local retention is at most the whole retention. -2 means "the same", -1 "no limit"."""
    whole, local = values.number(f"retention.{unit}"), values.number(f"local.retention.{unit}")
    name, text = f"local.retention.{unit}", str(local)
    if local == -2:
        return
    if values.flag("remote.log.copy.disable") and local != whole:
        raise InvalidConfigValue(
            name, text, f"must equal retention.{unit}, {whole}, while copying is disabled"
        )
    if whole >= 0 and (local == -1 or local > whole):
        raise InvalidConfigValue(name, text, f"must not be above retention.{unit}, {whole}")


def _check_copy_lag(values: _TopicValues, unit: str) -> None:
    """Check that segments are copied before local retention removes them (KIP-1241)."""
    lag, local = values.number(f"remote.copy.lag.{unit}"), values.number(f"local.retention.{unit}")
    limit = values.number(f"retention.{unit}") if local == -2 else local
    if lag > 0 and 0 <= limit < lag:
        raise InvalidConfigValue(
            f"remote.copy.lag.{unit}", str(lag), f"must not be above the local retention, {limit}"
        )
