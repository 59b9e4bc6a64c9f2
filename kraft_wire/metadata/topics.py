"""Replay topics, by name and by id, with the region of the columns that holds their partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import msgspec

from kraft_wire.metadata.errors import Contradiction
from kraft_wire.metadata.freeing import Table
from kraft_wire.metadata.journal import ABSENT, Journal
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.uuid import Uuid


class Topic(msgspec.Struct, frozen=True, gc=False):
    """A topic, as a value for readers."""

    name: str
    id: Uuid
    partition_count: int


class TopicRows(msgspec.Struct, gc=False):
    """A topic and its region of the columns: partition ``index`` is in row ``start + index``.

    The region has ``capacity`` rows. ``extent`` is one more than the highest index in use, ``count`` the
    number of partitions. The region may move at any time, so row numbers must not be kept. ``ordinal`` is the
    value of the columns' ``owner``; -1 while the topic has no region.
    """

    name: str
    id: Uuid
    ordinal: int = -1
    start: int = 0
    capacity: int = 0
    extent: int = 0
    count: int = 0


class Topics:
    """All topics. Only replay changes them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._by_id: dict[Uuid, TopicRows] = {}
        self._by_name: dict[str, TopicRows] = {}
        self._alike: dict[str, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Topic]:
        return map(_view, self._by_id.values())

    def by_name(self, name: str) -> Topic | None:
        """Return the topic of this name, None if there is none."""
        topic = self._by_name.get(name)
        return None if topic is None else _view(topic)

    def by_id(self, topic_id: Uuid) -> Topic | None:
        """Return the topic of this id, None if there is none."""
        topic = self._by_id.get(topic_id)
        return None if topic is None else _view(topic)

    def is_name(self, name: str) -> bool:
        """Whether there is a topic of this name."""
        return name in self._by_name

    @property
    def tables(self) -> list[Table]:
        """The tables that grow with the number of topics."""
        return [self._by_id, self._by_name, self._alike]

    def ids(self) -> list[Uuid]:
        """Return the ids of all topics."""
        return list(self._by_id)

    def colliding(self, name: str) -> str | None:
        """Return a topic whose name differs only in "." and "_", because their metrics have the same name;
        None if there is none."""
        others = self._alike.get(_unified(name), ())
        return next((other for other in others if other != name), None)

    def rows(self, topic_id: Uuid) -> TopicRows:
        """Return the region of a topic that a record names. Raises Contradiction if there is no such
        topic."""
        topic = self._by_id.get(topic_id)
        if topic is None:
            raise Contradiction(f"there is no topic with id {topic_id}")
        return topic

    def find_rows(self, topic_id: Uuid) -> TopicRows | None:
        """Return the region of a topic; None if there is no such topic."""
        return self._by_id.get(topic_id)

    def find_all(self, topic_ids: Iterable[bytes]) -> list[TopicRows]:
        """Return the regions of these topics, up to the first that doesn't exist."""
        found = list(map(self._by_id.get, cast(Iterable[Uuid], topic_ids)))
        known = found[: found.index(None)] if None in found else found
        return cast(list[TopicRows], known)

    def rows_by_name(self, name: str) -> TopicRows:
        """Return the same as ``rows``, by name."""
        topic = self._by_name.get(name)
        if topic is None:
            raise Contradiction(f"there is no topic named {name!r}")
        return topic

    def replay_topic(self, record: TopicRecord, offset: int) -> None:
        """Create a topic without partitions."""
        other = self._by_name.get(record.name)
        if other is not None:
            raise Contradiction(f"topic {record.name!r} exists already, with id {other.id}")
        if record.topic_id in self._by_id:
            raise Contradiction(
                f"topic id {record.topic_id} is taken by {self._by_id[record.topic_id].name!r}"
            )
        topic = TopicRows(record.name, record.topic_id)
        self._journal.put(self._by_id, topic.id, topic)
        self._journal.put(self._by_name, topic.name, topic)
        if _may_collide(topic.name):
            alike = self._alike.get(_unified(topic.name), ())
            self._journal.put(self._alike, _unified(topic.name), (*alike, topic.name))

    def remove_all(self, topics: Sequence[TopicRows]) -> None:
        """Remove topics. The caller removes their partitions."""
        self._journal.put_all(self._by_id, dict.fromkeys([topic.id for topic in topics], ABSENT))
        self._journal.put_all(self._by_name, dict.fromkeys([topic.name for topic in topics], ABSENT))
        alike = self._alike_without([topic.name for topic in topics if _may_collide(topic.name)])
        if alike:
            self._journal.put_all(self._alike, alike)

    def _alike_without(self, names: list[str]) -> dict[str, tuple[str, ...]]:
        """Return the entries of ``_alike`` that change when topics of these names are removed."""
        removed = set(names)
        unified = set(map(_unified, names))
        left = {key: [name for name in self._alike[key] if name not in removed] for key in unified}
        return {key: tuple(names) if names else ABSENT for key, names in left.items()}


def _view(topic: TopicRows) -> Topic:
    return Topic(topic.name, topic.id, topic.count)


def _may_collide(name: str) -> bool:
    return "." in name or "_" in name


def _unified(name: str) -> str:
    return name.replace(".", "_")
