"""The screen ``configs``: a row for each value that is set dynamically. Secrets are hidden."""

from __future__ import annotations

from typing import Final

import msgspec

from kraft_wire.configs.schema import keys_of
from kraft_wire.controller.config_apis.broker_config_view import broker_definition
from kraft_wire.logs.metadata_at import MetadataThen
from kraft_wire.metadata.configs import ResourceType

HIDDEN: Final = "(hidden)"
ALL_BROKERS: Final = "(all brokers)"
_KINDS: Final = {
    ResourceType.TOPIC: "topic",
    ResourceType.BROKER: "broker",
    ResourceType.BROKER_LOGGER: "broker logger",
    ResourceType.CLIENT_METRICS: "client metrics",
    ResourceType.GROUP: "group",
}


class ConfigRow(msgspec.Struct):
    """A value of a key."""

    resource: str
    name: str
    key: str
    value: str


def config_rows(then: MetadataThen) -> list[ConfigRow]:
    """Return the values by resource and key."""
    configs = then.state.configs
    return [
        ConfigRow(
            _kind(kind),
            name if name or kind != ResourceType.BROKER else ALL_BROKERS,
            key,
            HIDDEN if may_be_secret(kind, key) else value,
        )
        for kind, name in sorted(configs.resources())
        for key, value in sorted(configs.get(kind, name).items())
    ]


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
