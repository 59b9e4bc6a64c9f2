"""Find the values of broker keys on this node, and every place that sets them.

A key takes its value from itself or from a synonym: ``log.roll.ms`` also from ``log.roll.hours``, the key
of one listener (``listener.name.NAME.KEY``) also from the general key. Each of these is looked up in four
layers: dynamic for this node, dynamic for all brokers, the properties file, Kafka's defaults. Rules:
DynamicBrokerConfig.brokerConfigSynonyms, ConfigHelper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kraft_wire.configs.dynamic_broker import general_key, taken_values
from kraft_wire.configs.own_keys import OWN_KEYS
from kraft_wire.configs.schema import ALL_BROKERS, broker_key, broker_keys
from kraft_wire.configs.types import ConfigKey, ConfigSource
from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.metadata.configs import ResourceType

_LOG_ROLL: Final = ("log.roll.ms", "log.roll.hours")
_LOG_ROLL_JITTER: Final = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_LOG_RETENTION: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_LOG_FLUSH: Final = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
_FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(_LOG_ROLL, _LOG_ROLL),
    **dict.fromkeys(_LOG_ROLL_JITTER, _LOG_ROLL_JITTER),
    **dict.fromkeys(_LOG_RETENTION, _LOG_RETENTION),
    "log.flush.interval.ms": _LOG_FLUSH,
}
_MECHANISM_KEYS: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
"""Keys of a listener that are set for one SASL mechanism: listener.name.NAME.MECHANISM.KEY."""


class SourcedValue(msgspec.Struct, frozen=True, gc=False):
    """A value of a key and the place where it is set."""

    name: str
    value: str
    source: ConfigSource


def broker_synonyms(name: str) -> tuple[str, ...]:
    """Return the keys that a broker key takes its value from, in the order of precedence."""
    if family := _FAMILIES.get(name):
        return family
    if (base := general_key(name)) is not None:
        mechanism = next((key for key in _MECHANISM_KEYS if base.endswith(key)), None)
        return name, mechanism or base
    return (name,)


def broker_definition(name: str) -> ConfigKey | None:
    """Return the definition of a broker key or of a synonym of it, or None for an unknown key."""
    own = OWN_KEYS.get(name)
    return own or broker_key(name) or next(filter(None, map(broker_key, broker_synonyms(name))), None)


class BrokerConfigView:
    """The configuration of this node. Stored values that it can't take are left out."""

    def __init__(self, state: ControllerState) -> None:
        configs = state.metadata.configs
        stored = _without_own_keys(configs.get(ResourceType.BROKER, str(state.node_id)))
        own = taken_values(stored, for_all_brokers=False)
        stored_for_all = _without_own_keys(configs.get(ResourceType.BROKER, ALL_BROKERS))
        self.all_brokers = taken_values(stored_for_all, for_all_brokers=True)
        static = _with_both_ids(state.settings.static_configs)
        keys = {**broker_keys(), **OWN_KEYS}
        defaults = {name: key.default for name, key in keys.items() if key.default is not None}
        self._layers: tuple[tuple[ConfigSource, Mapping[str, str]], ...] = (
            (ConfigSource.DYNAMIC_BROKER, own),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, self.all_brokers),
            (ConfigSource.STATIC_BROKER, static),
            (ConfigSource.DEFAULT, defaults),
        )

    def names(self) -> Iterable[str]:
        """Return every key that is not internal, and every key that is set somewhere."""
        names = {key.name for key in broker_keys().values() if not key.internal}
        names.update(OWN_KEYS)
        for _, values in self._layers[:3]:
            names.update(values)
        return sorted(names)

    def value(self, name: str) -> str | None:
        """Return the key's value in the first layer that has one. Synonyms are not considered."""
        return next((values[name] for _, values in self._layers if name in values), None)

    def sourced(self, name: str) -> list[SourcedValue]:
        """Return the places that set the key, in the order of precedence.

        Synonyms before the first place with the key's own name are left out, as in Kafka.
        """
        names = broker_synonyms(name)
        found = [
            SourcedValue(synonym, values[synonym], source)
            for source, values in self._layers
            for synonym in names
            if synonym in values
        ]
        own = next((i for i, sourced in enumerate(found) if sourced.name == name), len(found))
        return found[own:]


def _without_own_keys(stored: Mapping[str, str]) -> Mapping[str, str]:
    """Return the dynamic values without those of our own keys, which are read at the start only."""
    return {name: value for name, value in stored.items() if name not in OWN_KEYS}


def _with_both_ids(static: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties with both node.id and broker.id, which are the same setting."""
    node_id = static.get("node.id", static.get("broker.id"))
    return static if node_id is None else {"node.id": node_id, "broker.id": node_id, **static}
