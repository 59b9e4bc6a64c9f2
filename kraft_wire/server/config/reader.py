"""Read the keys of a properties file by Kafka's definitions, and collect all problems and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kraft_wire.configs.nearest import nearest
from kraft_wire.configs.own_keys import OWN_KEYS, PREFIX
from kraft_wire.configs.tables import BROKER, BROKER_DYNAMIC_ONLY, TOPIC_SYNONYMS
from kraft_wire.configs.types import ConfigKey, InvalidConfigValue, Value
from kraft_wire.server.config.endpoints import Parsed, T

KEYS: Mapping[str, ConfigKey] = {key.name: key for key in (*BROKER, *BROKER_DYNAMIC_ONLY, *OWN_KEYS.values())}

_TOLD_FIRST = ("process.roles", "node.id")
"""The keys whose problems come first: without them nothing else in a file makes sense."""

TOPIC_DEFAULTS = frozenset(synonym.name for synonyms in TOPIC_SYNONYMS.values() for synonym in synonyms)
GROUP_LIMITS = ("group.consumer.", "group.share.", "group.streams.")
"""The start of keys that nothing reads here, but that have an effect: groups are checked against them."""

EQUIVALENT_KEYS = (("node.id", "broker.id"),)
"""Newer keys, and the older names that count if the newer key isn't set."""

KNOWN_PREFIXES = ("listener.name.", "rlmm.config.", "rsm.config.")
KNOWN_ELSEWHERE = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
"""Keys that Kafka's plug-ins read and KafkaConfig doesn't define."""

REFUSED_KEYS: Mapping[str, str] = {
    "authorizer.class.name": "there is no authorization yet, so every request would be permitted",
    "config.providers": "providers are not asked, so references to them would be used as values",
}
"""Keys that can't be ignored: that would permit what the operator forbids."""


class ConfigError(Exception):
    """A properties file can't be used. The text has a line for every problem, then for every warning."""

    def __init__(self, source: str, problems: Iterable[str], warnings: Iterable[str] = ()) -> None:
        self.source = source
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)
        super().__init__(source, self.problems, self.warnings)

    def __str__(self) -> str:
        warnings = [f"warning: {warning}" for warning in self.warnings]
        if len(self.problems) == 1:
            return "\n  ".join([f"{self.source}: {self.problems[0]}", *warnings])
        return "\n  ".join([f"{self.source}: {len(self.problems)} problems", *self.problems, *warnings])


def config_key(name: str) -> ConfigKey | None:
    """Return the definition of a broker's or controller's key, ours included; None for an unknown key."""
    return KEYS.get(name)


class ConfigReader:
    """The values of a file by key, with Kafka's defaults. A bad value is a problem, reported once.

    After a problem, values may be defaults or None: call ``raise_problems`` before using them.
    """

    def __init__(self, properties: Mapping[str, str], source: str) -> None:
        self.warnings: list[str] = []
        self._source = source
        self._properties = _with_equivalents(properties)
        self._problems: dict[str, None] = {}
        self._used: set[str] = set()
        self._values = {name: self._read(KEYS[name]) for name in {**dict.fromkeys(_TOLD_FIRST), **KEYS}}

    def get(self, name: str) -> Value | None:
        """Return the value of a key that is defined."""
        self._used.add(name)
        return self._values[name]

    def get_int(self, name: str) -> int:
        """Return the value of a numeric key that has a default or is set."""
        value = self.get(name)
        return value if isinstance(value, int) else 0

    def get_list(self, name: str) -> Sequence[str]:
        """Return the items of a LIST key; none if it isn't set."""
        value = self.get(name)
        return value if isinstance(value, list) else []

    def get_text(self, name: str) -> str:
        """Return the value of a STRING or CLASS key; "" if it isn't set."""
        value = self.get(name)
        return value if isinstance(value, str) else ""

    def beginning_with(self, prefix: str) -> dict[str, str]:
        """Return the keys of the file that begin so, which no table defines, with their texts."""
        found = {name: text for name, text in self._properties.items() if name.startswith(prefix)}
        self._used.update(found)
        return found

    def is_set(self, name: str) -> bool:
        """Whether the file gives the key."""
        return name in self._properties

    def problem(self, text: str) -> None:
        """Note a problem, unless it is already noted."""
        self._problems[text] = None

    def without_problems(self, key: str, parsed: Parsed[T]) -> tuple[T, ...]:
        """Note the problems of a list, and return its other entries."""
        for problem in parsed.problems:
            self.problem(f"{key}: {problem}")
        return parsed.values

    def raise_problems(self) -> None:
        """Raise ConfigError if there is a problem."""
        if self._problems:
            raise ConfigError(self._source, self._problems, self.warnings)

    def note_unused_keys(self) -> None:
        """Warn of keys that have no effect, and refuse those that must not be ignored."""
        for name in sorted(self._properties.keys() - self._used - TOPIC_DEFAULTS):
            if name in KEYS and name.startswith(GROUP_LIMITS):
                continue
            if name in REFUSED_KEYS and self._properties[name].strip():
                self.problem(f"{name} is not supported: {REFUSED_KEYS[name]}; remove it")
            elif name in KEYS or name in KNOWN_ELSEWHERE or name.startswith(KNOWN_PREFIXES):
                self.warnings.append(f"{name} has no effect: kraft-wire doesn't use this Kafka key")
            elif name.startswith(PREFIX):
                self.problem(f"{name} is not a key of kraft-wire{nearest(name, OWN_KEYS)}")
            else:
                near = nearest(name, KEYS)
                self.warnings.append(f"{name} is not a key of Kafka 4.4.0 and is ignored{near}")

    def _read(self, key: ConfigKey) -> Value | None:
        if key.name not in self._properties:
            if key.required:
                self.problem(f"{key.name} is missing")
                return None
            return None if key.default is None else key.parse(key.default)
        try:
            return key.check(self._properties[key.name])
        except InvalidConfigValue as error:
            self.problem(str(error))
            return None if key.default is None else key.parse(key.default)


def _with_equivalents(properties: Mapping[str, str]) -> dict[str, str]:
    filled = dict(properties)
    for newer, older in EQUIVALENT_KEYS:
        if newer not in filled and older in filled:
            filled[newer] = filled[older]
    return filled
