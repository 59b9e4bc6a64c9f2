"""Dynamic configurations by resource."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from kraft_wire.metadata.journal import Journal
from kraft_wire.protocol.messages.config_record import ConfigRecord

Resource = tuple[int, str]
"""A resource's type and name. The name is "" for the default of all brokers."""


class ResourceType(IntEnum):
    """org.apache.kafka.common.config.ConfigResource.Type."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Configs:
    """What has been set on resources. Names that nobody knows any more are kept: replay judges no configs.

    Invariant: the values of a resource are replaced as a whole, never changed in place, and never empty.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._values: dict[Resource, dict[str, str]] = {}

    def get(self, resource_type: int, name: str) -> dict[str, str]:
        """A copy of what is set on a resource; empty where nothing is."""
        return dict(self._values.get((resource_type, name), {}))

    def value(self, resource_type: int, name: str, key: str) -> str | None:
        """One value of a resource; None where it is not set."""
        values = self._values.get((resource_type, name))
        return None if values is None else values.get(key)

    def resources(self) -> Iterator[Resource]:
        """The resources that anything is set on."""
        return iter(list(self._values))

    def replay(self, record: ConfigRecord, offset: int) -> None:
        """One key of one resource is set; null deletes it."""
        resource = (record.resource_type, record.resource_name)
        values = self.get(*resource)
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        if values:
            self._journal.put(self._values, resource, values)
        else:
            self._journal.drop(self._values, resource)

    def remove_topic(self, name: str) -> None:
        """A topic is deleted, and its configuration with it."""
        self._journal.drop(self._values, (ResourceType.TOPIC.value, name))
