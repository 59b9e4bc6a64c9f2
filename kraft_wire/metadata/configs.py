"""Replay dynamic configurations, by resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from enum import IntEnum

from kraft_wire.metadata.freeing import Table
from kraft_wire.metadata.journal import ABSENT, Journal
from kraft_wire.protocol.messages.config_record import ConfigRecord

Resource = tuple[int, str]
"""A resource's type and name. The name is "" for the default of all brokers."""


class ResourceType(IntEnum):
    """The types of org.apache.kafka.common.config.ConfigResource.Type."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Configs:
    """The configuration values that are set on resources. Unknown names are kept: replay doesn't validate
    configs.

    Invariant: the values of a resource are never empty. They are changed in place, so nobody else has them.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._values: dict[Resource, dict[str, str]] = {}

    def get(self, resource_type: int, name: str) -> dict[str, str]:
        """Return a copy of the values of a resource; empty if none is set."""
        return dict(self._values.get((resource_type, name), {}))

    def value(self, resource_type: int, name: str, key: str) -> str | None:
        """Return one value of a resource; None if it is not set."""
        values = self._values.get((resource_type, name))
        return None if values is None else values.get(key)

    def selected(self, resource_type: int, name: str, keys: Set[str]) -> dict[str, str]:
        """Return those values of a resource that have one of the few ``keys``."""
        values = self._values.get((resource_type, name))
        return {key: values[key] for key in values.keys() & keys} if values else {}

    def with_values(self, resource_type: int, names: Iterable[str]) -> set[str]:
        """Return those of the names of resources for which any value is set."""
        kind = int(resource_type)
        return {name for name in names if (kind, name) in self._values}

    @property
    def tables(self) -> list[Table]:
        """The tables that grow with the number of resources."""
        return [self._values]

    def resources(self) -> Iterator[Resource]:
        """The resources with at least one value."""
        return iter(list(self._values))

    def replay(self, record: ConfigRecord, offset: int) -> None:
        """Set one key of one resource; null deletes it."""
        resource = (record.resource_type, record.resource_name)
        values = self._values.get(resource)
        if record.value is not None:
            if values is None:
                self._journal.put(self._values, resource, {record.name: record.value})
            else:
                self._journal.put(values, record.name, record.value)
        elif values is not None and values.keys() == {record.name}:
            self._journal.drop(self._values, resource)
        elif values is not None:
            self._journal.drop(values, record.name)

    def remove_topics(self, names: Iterable[str]) -> None:
        """Delete the configurations of deleted topics."""
        kind = ResourceType.TOPIC.value
        configured = [resource for name in names if (resource := (kind, name)) in self._values]
        if configured:
            self._journal.put_all(self._values, dict.fromkeys(configured, ABSENT))
