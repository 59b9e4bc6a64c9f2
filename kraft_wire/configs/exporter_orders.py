"""Define what operators order of exporters while controllers run: two keys for each exporter, set on the
default of all brokers.

``kraft.wire.exporter.NAME.paused`` is true or false. ``kraft.wire.exporter.NAME.reset`` is START@ID: the
exporter begins again where START says, once for each new text. The metadata log has them, so that they
survive failovers. Kafka's brokers and controllers keep keys that they don't know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from kraft_wire.configs.own_keys import EXPORTER_PREFIX
from kraft_wire.configs.types import ConfigKey, InvalidConfigValue

SNAPSHOT_AND_TAIL: Final = "snapshot+tail"
TAIL: Final = "tail"

Start = int | str
"""The place where an exporter without a position begins: SNAPSHOT_AND_TAIL, TAIL, or an offset."""

_PAUSED: Final = "paused"
_RESET: Final = "reset"
_OFFSET: Final = re.compile("[0-9]{1,18}")
_ORDER: Final = re.compile(re.escape(EXPORTER_PREFIX) + rf"(?P<exporter>[^.]+)\.(?P<key>{_PAUSED}|{_RESET})")


class Orders(msgspec.Struct, frozen=True):
    """The orders for one exporter. ``reset`` is the text of its key; "" if there never was a reset."""

    is_paused: bool = False
    reset: str = ""

    @property
    def start(self) -> Start | None:
        """The place where the reset lets it begin; None without a reset."""
        return start_of(self.reset.partition("@")[0])


def paused_key(exporter: str) -> str:
    """Return the key that pauses an exporter."""
    return f"{EXPORTER_PREFIX}{exporter}.{_PAUSED}"


def reset_key(exporter: str) -> str:
    """Return the key that resets an exporter."""
    return f"{EXPORTER_PREFIX}{exporter}.{_RESET}"


def start_of(text: str) -> Start | None:
    """Read the place where an exporter begins; None for any other text."""
    if text in (SNAPSHOT_AND_TAIL, TAIL):
        return text
    return int(text) if _OFFSET.fullmatch(text) else None


def is_order(name: str) -> bool:
    """Whether a key is an order for an exporter."""
    return _ORDER.fullmatch(name) is not None


def check_order(name: str, value: str) -> None:
    """Check the value of an order. Raises InvalidConfigValue."""
    if name.endswith(f".{_PAUSED}"):
        ConfigKey(name, "BOOLEAN").check(value)
        return
    start, at, _ = value.partition("@")
    if not at or start_of(start) is None:
        reason = f"use {SNAPSHOT_AND_TAIL}, {TAIL} or an offset, then @ and a text that is new each time"
        raise InvalidConfigValue(name, value, reason)


def orders_in(values: Mapping[str, str]) -> dict[str, Orders]:
    """Return the orders among the values of the default of all brokers, by exporter. Java's controllers check
    nothing: a value that can't be used is as good as none."""
    found: dict[str, dict[str, str]] = {}
    for name, value in values.items():
        match = _ORDER.fullmatch(name)
        if match and _is_valid(name, value):
            found.setdefault(match["exporter"], {})[match["key"]] = value
    return {
        exporter: Orders(each.get(_PAUSED, "").strip().lower() == "true", each.get(_RESET, ""))
        for exporter, each in found.items()
    }


def _is_valid(name: str, value: str) -> bool:
    try:
        check_order(name, value)
    except InvalidConfigValue:
        return False
    return True
