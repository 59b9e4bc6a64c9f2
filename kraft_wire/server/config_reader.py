"""Reads a properties file's keys by Kafka's definitions, and collects what is wrong or without effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kraft_wire.controller.config_tables import BROKER, BROKER_DYNAMIC_ONLY, TOPIC_SYNONYMS
from kraft_wire.controller.config_types import ConfigKey, InvalidConfigValue, Value

KEYS: Mapping[str, ConfigKey] = {key.name: key for key in (*BROKER, *BROKER_DYNAMIC_ONLY)}

TOPIC_DEFAULTS = frozenset(synonym.name for synonyms in TOPIC_SYNONYMS.values() for synonym in synonyms)
GROUP_LIMITS = ("group.consumer.", "group.share.", "group.streams.")
"""These keys count as well, though nobody asks for them here: topics and groups are checked against them."""

EQUIVALENT_KEYS = (("node.id", "broker.id"),)
"""Older names that stand in where the newer key is not set."""

KNOWN_PREFIXES = ("listener.name.", "rlmm.config.", "rsm.config.")
KNOWN_ELSEWHERE = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
"""Keys that Kafka's plug-ins read: KafkaConfig doesn't define them."""

REFUSED_KEYS: Mapping[str, str] = {
    "authorizer.class.name": "authorization is not there yet and every request would be permitted",
    "config.providers": "values are not looked up elsewhere and would be taken as they stand",
    "create.topic.policy.class.name": "a Java class cannot run here, and its policy would not be applied",
    "alter.config.policy.class.name": "a Java class cannot run here, and its policy would not be applied",
}
"""Keys whose silent absence would permit what the operator forbids."""


class ConfigError(Exception):
    """A properties file that cannot be used: every problem, one line each, under the file's name."""

    def __init__(self, source: str, problems: Iterable[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__(source, self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{self.source}: {self.problems[0]}"
        return "\n  ".join([f"{self.source}: {len(self.problems)} problems", *self.problems])


def config_key(name: str) -> ConfigKey | None:
    """Kafka's definition of a broker's or controller's key."""
    return KEYS.get(name)


class ConfigReader:
    """Values by key, Kafka's default where the file has none. A bad value is a problem, told once.

    After a problem the values that are handed out may be defaults or None: call ``raise_problems`` before
    anything is built on them.
    """

    def __init__(self, properties: Mapping[str, str], source: str) -> None:
        self.warnings: list[str] = []
        self._source = source
        self._properties = _with_equivalents(properties)
        self._problems: dict[str, None] = {}
        self._used: set[str] = set()
        self._values = {name: self._read(key) for name, key in KEYS.items()}

    def get(self, name: str) -> Value | None:
        """The value of a key that Kafka defines."""
        self._used.add(name)
        return self._values[name]

    def get_int(self, name: str) -> int:
        """The value of a numeric key that has a default, or is set."""
        value = self.get(name)
        return value if isinstance(value, int) else 0

    def get_list(self, name: str) -> Sequence[str]:
        """The items of a LIST key; none where it is not set."""
        value = self.get(name)
        return value if isinstance(value, list) else []

    def get_text(self, name: str) -> str:
        """The value of a STRING key; "" where there is none."""
        value = self.get(name)
        return value if isinstance(value, str) else ""

    def is_set(self, name: str) -> bool:
        """Whether the file gives the key."""
        return name in self._properties

    def problem(self, text: str) -> None:
        self._problems[text] = None

    def raise_problems(self) -> None:
        """Raises ConfigError if there was any problem."""
        if self._problems:
            raise ConfigError(self._source, self._problems)

    def note_unused_keys(self) -> None:
        """Warn of keys that nothing asked for, and refuse those that must not be ignored."""
        for name in sorted(self._properties.keys() - self._used - TOPIC_DEFAULTS):
            if name in KEYS and name.startswith(GROUP_LIMITS):
                continue
            if name in REFUSED_KEYS and self._properties[name].strip():
                self.problem(f"{name} is not supported: {REFUSED_KEYS[name]}; remove it")
            elif name in KEYS or name in KNOWN_ELSEWHERE or name.startswith(KNOWN_PREFIXES):
                self.warnings.append(f"{name} has no effect: kraft-wire does not use this key of Kafka's")
            else:
                self.warnings.append(f"{name} is not a key that Kafka 4.4.0 knows; it is ignored")

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
