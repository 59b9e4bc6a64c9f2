"""Parse, check and format the values of configuration keys as Kafka's ConfigDef does."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum
from typing import Final

import msgspec

from kraft_wire.configs.java_text import (
    WHITE_SPACE,
    equals_ignoring_case,
    is_duration_from_zero,
    parse_double,
    parse_integer,
    trim,
)

Value = bool | int | float | str | list[str]

_COMMA: Final = re.compile(f"{WHITE_SPACE}*,{WHITE_SPACE}*")
_THROTTLED_REPLICA: Final = re.compile(r"([0-9]+:[0-9]+)?")
_INTEGER_BITS: Final = {"SHORT": 16, "INT": 32, "LONG": 64}


class ConfigType(IntEnum):
    """The type of a key, with the numbers of DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """The source of a value, with the numbers of DescribeConfigs and CreateTopics."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class InvalidConfigValue(Exception):
    """A value is not valid for its key. The text has the key, the value and the reason."""

    def __init__(self, name: str, value: str | None, reason: str) -> None:
        super().__init__(f"{name}={value}: {reason}" if value is not None else f"{name}: {reason}")
        self.name = name
        self.value = value
        self.reason = reason


class Synonym(msgspec.Struct, frozen=True, gc=False):
    """A broker key that a topic key falls back on. Its value times ``factor`` is that of the topic."""

    name: str
    factor: int = 1

    def convert(self, value: str) -> str:
        """Return the topic's value for this broker value. An empty one is 0, as in Java's ConfigSynonym."""
        if self.factor == 1:
            return value
        return str(parse_integer(trim(value) or "0") * self.factor)


class ConfigKey(msgspec.Struct, frozen=True, gc=False):
    """One key as Kafka defines it.

    ``default`` is text, or None without a default; bounds are inclusive. ``allowed_in_any_case`` has names in
    upper case. The items of a ``distinct`` list are not empty and not repeated. ``rule`` is the name of a
    check in ``RULES``. Only keys that Kafka doesn't have are given a ``documentation``.
    """

    name: str
    type: str
    default: str | None = None
    required: bool = False
    internal: bool = False
    minimum: int | float | None = None
    maximum: int | float | None = None
    allowed: tuple[str, ...] = ()
    allowed_in_any_case: tuple[str, ...] = ()
    distinct: bool = False
    not_null: bool = False
    not_empty: bool = False
    rule: str = ""
    documentation: str | None = None

    @property
    def type_id(self) -> ConfigType:
        """The type in the form of DescribeConfigs."""
        return ConfigType[self.type]

    @property
    def is_sensitive(self) -> bool:
        """Whether the value must never be shown."""
        return self.type == "PASSWORD"

    def parse(self, text: str) -> Value:
        """Parse a value without checking its bounds. Raises InvalidConfigValue."""
        return _PARSERS[self.type](self, trim(text))

    def check(self, text: str | None) -> Value | None:
        """Parse a value and check it. Raises InvalidConfigValue."""
        if text is None:
            if self.required or self.not_null:
                raise InvalidConfigValue(self.name, None, "has no value")
            return None
        value = self.parse(text)
        if isinstance(value, list):
            self._check_list(text, value)
        elif isinstance(value, str):
            self._check_name(text, value)
        elif not isinstance(value, bool):
            self._check_range(text, value)
        self._check_rule(text, value)
        return value

    def normalize(self, text: str) -> str:
        """Return the value in the form in which Java prints it."""
        return format_value(self.parse(text))

    def _check_range(self, text: str, value: float) -> None:
        if self.minimum is not None and value < self.minimum:
            raise InvalidConfigValue(self.name, text, f"must be at least {self.minimum}")
        if self.maximum is not None and value > self.maximum:
            raise InvalidConfigValue(self.name, text, f"must be at most {self.maximum}")

    def _check_name(self, text: str, value: str) -> None:
        if self.not_empty and not value:
            raise InvalidConfigValue(self.name, text, "must not be empty")
        if self.allowed and value not in self.allowed:
            raise InvalidConfigValue(self.name, text, f"must be one of {', '.join(self.allowed)}")
        if self.allowed_in_any_case and value.upper() not in self.allowed_in_any_case:
            names = ", ".join(self.allowed_in_any_case)
            raise InvalidConfigValue(self.name, text, f"must be one of {names}, in any case")

    def _check_list(self, text: str, values: list[str]) -> None:
        if self.not_empty and not values:
            raise InvalidConfigValue(self.name, text, "must not be empty")
        if not self.distinct:
            return
        if "" in values:
            raise InvalidConfigValue(self.name, text, "has an empty item")
        for value in values:
            if self.allowed and value not in self.allowed:
                raise InvalidConfigValue(self.name, text, f"{value} is not one of {', '.join(self.allowed)}")

    def _check_rule(self, text: str, value: Value) -> None:
        rule = RULES.get(self.rule)
        if rule is not None and (reason := rule(value)):
            raise InvalidConfigValue(self.name, text, reason)


def format_value(value: Value) -> str:
    """Return a parsed value in the form of Java's ConfigDef.convertToString."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, float):
        return _java_double(value)
    return str(value)


def split_list(text: str) -> list[str]:
    """Return the items of a LIST value, separated by commas with optional white space. "" has no items."""
    trimmed = trim(text)
    return _COMMA.split(trimmed) if trimmed else []


def _parse_boolean(key: ConfigKey, text: str) -> bool:
    if equals_ignoring_case(text, "true"):
        return True
    if equals_ignoring_case(text, "false"):
        return False
    raise InvalidConfigValue(key.name, text, "must be true or false")


def _parse_integer(key: ConfigKey, text: str) -> int:
    bits = _INTEGER_BITS[key.type]
    try:
        value = parse_integer(text)
    except ValueError:
        value = 1 << bits
    if -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        return value
    raise InvalidConfigValue(key.name, text, f"must be a whole number of {bits} bits")


def _parse_double(key: ConfigKey, text: str) -> float:
    try:
        return parse_double(text)
    except ValueError:
        raise InvalidConfigValue(key.name, text, "must be a number") from None


def _parse_list(key: ConfigKey, text: str) -> list[str]:
    """Parse a list. Repeated items of a distinct list are dropped without an error (KIP-1161)."""
    items = split_list(text)
    return list(dict.fromkeys(items)) if key.distinct else items


def _parse_text(key: ConfigKey, text: str) -> str:
    return text


_PARSERS: Final[dict[str, Callable[[ConfigKey, str], Value]]] = {
    "BOOLEAN": _parse_boolean,
    "SHORT": _parse_integer,
    "INT": _parse_integer,
    "LONG": _parse_integer,
    "DOUBLE": _parse_double,
    "LIST": _parse_list,
    "STRING": _parse_text,
    "PASSWORD": _parse_text,
    "CLASS": _parse_text,
}


def _throttled_replicas(value: Value) -> str:
    items = [trim(item) for item in value] if isinstance(value, list) else []
    if "".join(items) == "*" or all(_THROTTLED_REPLICA.fullmatch(item) for item in items):
        return ""
    return "must be * or a list of partition:broker"


def _gzip_level(value: Value) -> str:
    return "" if value == -1 or (isinstance(value, int) and 1 <= value <= 9) else "must be -1 or 1 to 9"


def _share_offset_reset(value: Value) -> str:
    text = value if isinstance(value, str) else ""
    if text in ("earliest", "latest"):
        return ""
    prefix, _, duration = text.partition(":")
    if prefix == "by_duration" and is_duration_from_zero(duration):
        return ""
    return "must be earliest, latest or by_duration: and an ISO 8601 duration that is not negative"


def _http_url(value: Value) -> str:
    from urllib.parse import urlsplit  # hardly any key has this rule

    text = str(value)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "must be http:// or https://, a host, and perhaps a port and a path"
    if parts.username is not None or parts.password is not None:
        return "must not have a user or a password"
    return "" if text.isascii() and text.isprintable() and " " not in text else "must be ASCII without spaces"


RULES: Final[dict[str, Callable[[Value], str]]] = {
    "ThrottledReplicaListValidator": _throttled_replicas,
    "[1,...,9] or -1": _gzip_level,
    "ShareGroupAutoOffsetResetStrategy.Validator": _share_offset_reset,
    "HTTP URL": _http_url,
}
"""The checks of ``ConfigKey.rule``. Each returns the fault of a value, or ""."""


def _java_double(value: float) -> str:
    """Format as Double.toString: plain from 1e-3 to 1e7, else one digit before the point and an exponent."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "." in text else f"{text}.0"
    mantissa, _, exponent = f"{value:.16e}".partition("e")
    for digits in range(17):
        shorter = f"{value:.{digits}e}"
        if float(shorter) == value:
            mantissa, _, exponent = shorter.partition("e")
            break
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
