"""Choose the records that an exporter gets: by type, by topic, by broker."""

from __future__ import annotations

from typing import Final

from kraft_wire.exporters.records import ExportRecord
from kraft_wire.exporters.settings import FilterSettings, wants_no_op
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.clear_elr_record import ClearElrRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.uuid import Uuid

_TOPIC_ID: Final = "topic_id"
_BROKER_LISTS: Final = ("replicas", "isr", "removing_replicas", "adding_replicas")
_BROKER_FIELDS: Final = ("broker_id", "id", "leader")


class Filter:
    """The records that an exporter wants.

    ``types`` and the NoOpRecords come first. With ``topics`` or ``brokers``, only records that name one of
    them are taken: the topic itself, its partitions and its configuration; the broker's registration and its
    configuration, and partitions with it as leader, in the ISR or among the replicas. What can't be decoded
    is taken: better a record too many than one that is missing.

    Partitions have the id of their topic. A filter of topics must have seen the topic's own record before
    (``learn``).
    """

    def __init__(self, settings: FilterSettings) -> None:
        self._types = frozenset(settings.types)
        self._topics = frozenset(settings.topics)
        self._brokers = frozenset(settings.brokers)
        self._broker_names = frozenset(map(str, settings.brokers))
        self._no_op = wants_no_op(settings)
        self._topic_ids: set[Uuid] = set()

    @property
    def needs_topic_ids(self) -> bool:
        """Whether records before the first exported one must be given to ``learn``."""
        return bool(self._topics)

    @property
    def is_by_type(self) -> bool:
        """Whether ``takes_type`` says all: no record has to be looked into."""
        return not self._topics and not self._brokers

    def takes_type(self, name: str) -> bool:
        """Whether the exporter wants records of a type."""
        if name == NoOpRecord.NAME and not self._no_op:
            return False
        return not self._types or name in self._types

    def learn(self, record: ExportRecord) -> None:
        """Take note of a topic's id."""
        if self._topics and record.type == TopicRecord.NAME:
            message = record.message
            if isinstance(message, TopicRecord) and message.name in self._topics:
                self._topic_ids.add(message.topic_id)

    def takes(self, record: ExportRecord) -> bool:
        """Whether the exporter wants a record. Records must be given in the order of the log."""
        self.learn(record)
        if not self.takes_type(record.type):
            return False
        if self.is_by_type:
            return True
        message = record.message
        return message is None or self._is_of_topic(message) or self._is_of_broker(message)

    def _is_of_topic(self, message: Message) -> bool:
        if not self._topics:
            return False
        if isinstance(message, ConfigRecord):
            return message.resource_type == ResourceType.TOPIC and message.resource_name in self._topics
        if isinstance(message, ClearElrRecord):
            return not message.topic_name or message.topic_name in self._topics  # "" is every topic
        return getattr(message, _TOPIC_ID, None) in self._topic_ids

    def _is_of_broker(self, message: Message) -> bool:
        if not self._brokers:
            return False
        if isinstance(message, ConfigRecord):
            is_broker = message.resource_type == ResourceType.BROKER
            return is_broker and message.resource_name in self._broker_names
        if any(getattr(message, name, None) in self._brokers for name in _BROKER_FIELDS):
            return True
        lists = (getattr(message, name, None) or () for name in _BROKER_LISTS)
        return any(not self._brokers.isdisjoint(members) for members in lists)
