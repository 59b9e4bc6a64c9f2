"""Read the keys of exporters: ``kraft.wire.exporters`` names them, ``kraft.wire.exporter.NAME.…`` configures
one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from kraft_wire.configs.exporter_orders import SNAPSHOT_AND_TAIL, TAIL, Orders, Start, start_of
from kraft_wire.configs.java_text import trim
from kraft_wire.configs.nearest import nearest
from kraft_wire.configs.own_keys import EXPORTER_PREFIX, EXPORTERS_KEY
from kraft_wire.configs.types import ConfigKey, InvalidConfigValue, Value
from kraft_wire.exporters.kinds import KINDS, SinkKind
from kraft_wire.protocol.messages import METADATA_RECORDS
from kraft_wire.protocol.messages.no_op_record import NoOpRecord

CONTROL_RECORDS: Final = ("LeaderChangeMessage", "KRaftVersionRecord", "VotersRecord")
"""The records of raft itself, which are exported like those of the metadata."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TYPE: Final = ConfigKey("type", "STRING", required=True)
_START: Final = ConfigKey("start", "STRING", SNAPSHOT_AND_TAIL)
_TYPES: Final = ConfigKey("types", "LIST", "", distinct=True)
_TOPICS: Final = ConfigKey("topics", "LIST", "", distinct=True)
_BROKERS: Final = ConfigKey("brokers", "LIST", "", distinct=True)
_NO_OP: Final = ConfigKey("no-op", "BOOLEAN", "false")
_CHANGES: Final = ConfigKey("changes", "BOOLEAN", "false")
KEYS_OF_ALL: Final = (_TYPE, _START)
"""The keys that all exporters have."""
COMMON_KEYS: Final = (*KEYS_OF_ALL, _TYPES, _TOPICS, _BROKERS, _NO_OP, _CHANGES)
"""The keys that exporters have that may leave records out."""


class FilterSettings(msgspec.Struct, frozen=True):
    """The records to export; an empty tuple doesn't restrict them. See ``filters.Filter``."""

    types: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()
    no_op: bool = False


ALL_RECORDS: Final = FilterSettings(no_op=True)


class ExporterSettings(msgspec.Struct, frozen=True):
    """One exporter. ``options`` are the values of its kind's own keys, defaults included. With ``changes``,
    records say what they change."""

    name: str
    kind: str
    start: Start
    filter: FilterSettings
    options: dict[str, Value]
    changes: bool = False


class Read(NamedTuple):
    """The exporters that could be read, and what is wrong with the others."""

    exporters: tuple[ExporterSettings, ...]
    problems: tuple[str, ...]


def types_in(properties: Mapping[str, str]) -> set[str]:
    """Return the kinds that the exporters of a file should have, whether there are such kinds or not."""
    return {trim(keys[_TYPE.name]) for keys in _keys_by_exporter(properties).values() if _TYPE.name in keys}


def read_exporters(
    names: Sequence[str], properties: Mapping[str, str], kinds: Mapping[str, SinkKind] = KINDS
) -> Read:
    """Return the exporters of these names. ``properties`` may hold other keys, too. A key of an exporter that
    isn't named, and one that its kind doesn't have, are problems."""
    exporters: list[ExporterSettings] = []
    problems: list[str] = []
    keys = _keys_by_exporter(properties)
    for name in names:
        reader = _Reader(name, keys.pop(name, {}), kinds)
        found = reader.read()
        problems += reader.problems
        if found is not None and not reader.problems:
            exporters.append(found)
    problems += [
        f"{EXPORTER_PREFIX}{name}.{key}: {EXPORTERS_KEY} names no exporter {name!r}{nearest(name, names)}"
        for name, own in keys.items()
        for key in own
    ]
    return Read(tuple(exporters), tuple(problems))


def _keys_by_exporter(properties: Mapping[str, str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for name in sorted(properties):
        if name.startswith(EXPORTER_PREFIX):
            exporter, _, key = name.removeprefix(EXPORTER_PREFIX).partition(".")
            found.setdefault(exporter, {})[key] = properties[name]
    return found


class _Reader:
    """The keys of one exporter, without their common beginning."""

    def __init__(self, name: str, texts: Mapping[str, str], kinds: Mapping[str, SinkKind]) -> None:
        self.problems: list[str] = []
        self._kinds = kinds
        self._name = name
        self._texts = texts

    def read(self) -> ExporterSettings | None:
        """Return the exporter; None if its name or its kind can't be used."""
        if not _NAME.fullmatch(self._name):
            self.problems.append(
                f"{EXPORTERS_KEY}: {self._name!r} is no name of an exporter: use letters, digits, - and _,"
                " at most 64"
            )
            return None
        kind = self._value(msgspec.structs.replace(_TYPE, allowed=tuple(self._kinds)))
        if not isinstance(kind, str) or kind not in self._kinds:
            self._refuse_unknown((*COMMON_KEYS, *(key for each in self._kinds.values() for key in each.keys)))
            return None
        own_keys, takes_all = self._kinds[kind].keys, self._kinds[kind].takes_all
        self._refuse_unknown((*(KEYS_OF_ALL if takes_all else COMMON_KEYS), *own_keys))
        options = {key.name: self._value(key) for key in own_keys}
        filters = ALL_RECORDS if takes_all else self._filters()
        given = {name: value for name, value in options.items() if value is not None}
        changes = not takes_all and self._value(_CHANGES) is True
        return ExporterSettings(self._name, kind, self._start(), filters, given, changes)

    def _filters(self) -> FilterSettings:
        return FilterSettings(
            self._record_types(),
            tuple(self._list(_TOPICS)),
            self._broker_ids(),
            self._value(_NO_OP) is True,
        )

    def _refuse_unknown(self, keys: Sequence[ConfigKey]) -> None:
        known = [key.name for key in keys]
        for name in self._texts:
            if name not in known:
                self._add(name, f"an exporter of this type has no such key{nearest(name, known)}")

    def _start(self) -> Start:
        text = self._value(_START)
        start = start_of(text) if isinstance(text, str) else None
        if start is not None:
            return start
        self._add(_START.name, f"is {text!r}; use {SNAPSHOT_AND_TAIL}, {TAIL} or an offset")
        return SNAPSHOT_AND_TAIL

    def _record_types(self) -> tuple[str, ...]:
        known = (*METADATA_RECORDS.values(), *CONTROL_RECORDS)
        types = self._list(_TYPES)
        for name in types:
            if name not in known:
                self._add(_TYPES.name, f"{name} is no type of record{nearest(name, known)}")
        return tuple(types)

    def _broker_ids(self) -> tuple[int, ...]:
        texts = self._list(_BROKERS)
        for text in texts:
            if not re.fullmatch("[0-9]{1,10}", text):
                self._add(_BROKERS.name, f"{text!r} is no broker's id")
        return tuple(int(text) for text in texts if text.isdecimal())

    def _list(self, key: ConfigKey) -> Iterable[str]:
        value = self._value(key)
        return value if isinstance(value, list) else ()

    def _value(self, key: ConfigKey) -> Value | None:
        """Return the value of a key, or its default. A bad value is a problem."""
        text = self._texts.get(key.name)
        if text is None:
            if key.required:
                self._add(key.name, "is missing")
            return None if key.default is None else key.parse(key.default)
        try:
            return msgspec.structs.replace(key, name=self._full(key.name)).check(text)
        except InvalidConfigValue as error:
            self.problems.append(str(error))
            return None if key.default is None else key.parse(key.default)

    def _add(self, key: str, problem: str) -> None:
        self.problems.append(f"{self._full(key)}: {problem}")

    def _full(self, key: str) -> str:
        return f"{EXPORTER_PREFIX}{self._name}.{key}"


def ordered(exporters: Sequence[ExporterSettings], orders: Mapping[str, Orders]) -> list[ExporterSettings]:
    """Return the exporters that aren't paused. One that was reset starts where its reset says."""
    return [
        msgspec.structs.replace(exporter, start=_start_of(exporter, orders))
        for exporter in exporters
        if not orders.get(exporter.name, Orders()).is_paused
    ]


def starts_of(exporters: Sequence[ExporterSettings], orders: Mapping[str, Orders]) -> dict[str, Start]:
    """Return where each exporter begins that has no position."""
    return {exporter.name: _start_of(exporter, orders) for exporter in exporters}


def _start_of(exporter: ExporterSettings, orders: Mapping[str, Orders]) -> Start:
    start = orders.get(exporter.name, Orders()).start
    return exporter.start if start is None else start


def wants_no_op(settings: FilterSettings) -> bool:
    """Whether NoOpRecords are exported: they are if they are asked for by the key, or by their type."""
    return settings.no_op or NoOpRecord.NAME in settings.types
