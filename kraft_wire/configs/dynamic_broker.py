"""Tell which of the values that are set dynamically on brokers a node takes.

A controller stores any value of a broker that a client sets straight at it. A node leaves out what it can't
change while it runs, and what it can't read. Rules: DynamicBrokerConfig.fromPersistentProps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kraft_wire.configs.schema import broker_key, broker_keys, is_dynamic_broker_key
from kraft_wire.configs.types import InvalidConfigValue

_LISTENER_KEY: Final = re.compile(r"listener\.name\.[^.]*\.(.*)", re.DOTALL)
_PER_LISTENER_FOR_ALL_BROKERS: Final = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
"""The only keys of a listener that can be set for all brokers at once."""


def general_key(name: str) -> str | None:
    """Return the general key of the key of one listener, ``listener.name.NAME.KEY``; None for other keys."""
    match = _LISTENER_KEY.fullmatch(name)
    return match[1] if match else None


def taken_values(stored: Mapping[str, str], *, for_all_brokers: bool) -> Mapping[str, str]:
    """Return those of the stored values that a node takes. Keys unknown to Kafka are taken."""
    return {
        name: value
        for name, value in stored.items()
        if _is_changeable(name) and _is_valid(name, value) and not (for_all_brokers and _is_of_one(name))
    }


def _is_changeable(name: str) -> bool:
    """Whether the key may change while a node runs. Key stores only change for one listener at a time."""
    from kraft_wire.configs.tables import BROKER_DYNAMIC_PER_LISTENER

    if name in BROKER_DYNAMIC_PER_LISTENER:
        return False
    return is_dynamic_broker_key(name) or name not in broker_keys()


def _is_of_one(name: str) -> bool:
    """Whether the key can be set on single brokers only."""
    from kraft_wire.configs.tables import BROKER_DYNAMIC_PER_BROKER

    general = general_key(name)
    if general is not None:
        return general not in _PER_LISTENER_FOR_ALL_BROKERS
    return name in BROKER_DYNAMIC_PER_BROKER


def _is_valid(name: str, value: str) -> bool:
    key = broker_key(general_key(name) or name)
    if key is None or not is_dynamic_broker_key(key.name):
        return True
    try:
        key.check(value)
    except InvalidConfigValue:
        return False
    return True
