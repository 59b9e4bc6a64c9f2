"""The screen ``configs``: a row for each value that is set dynamically. Secrets are hidden."""

from __future__ import annotations

from typing import Final

import msgspec

from kraft_wire.configs.schema import keys_of
from kraft_wire.controller.config_apis.broker_config_view import broker_definition
from kraft_wire.logs.metadata_at import MetadataThen
from kraft_wire.metadata.configs import ResourceType

ALL_BROKERS: Final = "all brokers"
_KINDS: Final = {
    ResourceType.TOPIC: "topic",
    ResourceType.BROKER: "broker",
    ResourceType.BROKER_LOGGER: "broker logger",
    ResourceType.CLIENT_METRICS: "client metrics",
    ResourceType.GROUP: "group",
}


class ConfigRow(msgspec.Struct):
    """A value of a key. ``name`` is null for the values of all brokers; ``value`` is null if it is hidden."""

    resource: str
    name: str | None
    key: str
    value: str | None
    hidden: bool


def config_rows(then: MetadataThen) -> list[ConfigRow]:
    """Return the values by resource and key."""
    configs = then.state.configs
    return [
        _row(kind, name, key, value)
        for kind, name in sorted(configs.resources())
        for key, value in sorted(configs.get(kind, name).items())
    ]


def _row(kind: int, name: str, key: str, value: str) -> ConfigRow:
    is_hidden = may_be_secret(kind, key)
    shown = None if is_hidden else value
    if kind == ResourceType.BROKER and not name:
        return ConfigRow(ALL_BROKERS, None, key, shown, is_hidden)
    return ConfigRow(_kind(kind), name, key, shown, is_hidden)


def may_be_secret(resource_type: int, key: str) -> bool:
    """Whether a value must not be shown: that of a key which isn't known may be a secret, as for Kafka."""
    if resource_type == ResourceType.BROKER_LOGGER:
        return False
    is_broker = resource_type == ResourceType.BROKER
    definition = broker_definition(key) if is_broker else keys_of(resource_type).get(key)
    return definition is None or definition.is_sensitive


def _kind(resource_type: int) -> str:
    try:
        return _KINDS[ResourceType(resource_type)]
    except (ValueError, KeyError):
        return f"type {resource_type}"
