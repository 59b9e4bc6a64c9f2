"""All partitions, by topic and index, with queries by broker."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from kraft_wire.metadata.errors import Contradiction
from kraft_wire.metadata.freeing import Table
from kraft_wire.metadata.journal import Inverse, Journal
from kraft_wire.metadata.partitions.cells import count_members, unpadded
from kraft_wire.metadata.partitions.columns import (
    FREE,
    Before,
    Block,
    Changes,
    PartitionColumns,
)
from kraft_wire.metadata.partitions.lazy_numpy import np
from kraft_wire.metadata.partitions.partition import (
    Ids,
    Partition,
    PartitionRef,
)
from kraft_wire.metadata.partitions.places import Places
from kraft_wire.metadata.partitions.rare import Lists, Rare, narrow, rare_of
from kraft_wire.metadata.partitions.rare_lists import RareKey, RareLists
from kraft_wire.metadata.partitions.regions import Regions
from kraft_wire.metadata.topics import TopicRows, Topics
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.cells import Int32s, Mask, Rows
    from kraft_wire.metadata.partitions.elr_columns import Elr


class _RemovedPartitions(msgspec.Struct, frozen=True):
    """The partitions of topics while they are removed from the columns. ``rare`` has places in the block."""

    block: Block
    rare: dict[int, Rare]
    extents: list[int]
    counts: list[int]


class Partitions:
    """The partitions of all topics, in columns.

    Invariants: the partitions of a topic are in one region of rows; rows that belong to no topic are FREE.
    Inverses name a topic and an index, never a row, because regions move.
    """

    def __init__(self, topics: Topics, journal: Journal) -> None:
        self._topics = topics
        self._journal = journal
        self._regions = Regions()
        self._rare = RareLists(self._regions)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def tables(self) -> list[Table]:
        """The tables that grow with the number of topics and partitions, without the columns."""
        return [self._regions.owners, self._rare.table]

    @property
    def _columns(self) -> PartitionColumns:
        return self._regions.columns

    @property
    def columns(self) -> PartitionColumns:
        """The columns, for queries over all rows. A row whose leader is FREE belongs to no topic."""
        return self._columns

    @property
    def row_count(self) -> int:
        """The number of rows of the columns that can be in use; the rows from there on are all FREE."""
        return self._regions.top

    def get(self, topic_id: Uuid, index: int) -> Partition | None:
        """Return a partition; None if the topic or the partition doesn't exist."""
        topic = self._topics.find_rows(topic_id)
        return None if topic is None else self.read(topic, index)

    def of_topic(self, topic_id: Uuid) -> list[Partition]:
        """Return a topic's partitions in the order of their indexes; empty if the topic doesn't exist."""
        return [partition for _, partition in self.indexed(topic_id)]

    def indexed(self, topic_id: Uuid) -> list[tuple[int, Partition]]:
        """Return the same as ``of_topic``, with the indexes."""
        topic = self._topics.find_rows(topic_id)
        if topic is None:
            return []
        found = [(index, self.read(topic, index)) for index in range(topic.extent)]
        return [(index, partition) for index, partition in found if partition is not None]

    def led_by(self, broker_id: int) -> list[PartitionRef]:
        """Return the partitions whose leader is this broker; with NO_LEADER those without a leader."""
        return self.refs(np.flatnonzero(self._leaders() == broker_id))

    def count_led_by(self, broker_id: int) -> int:
        """Return the number of partitions that a broker leads; with NO_LEADER the number without a leader."""
        return int(np.count_nonzero(self._leaders() == broker_id))

    def count_led_by_others(self) -> int:
        """Return the number of partitions that another broker leads than the preferred one, or none."""
        leaders = self._leaders()
        preferred = self._columns.replicas[: len(leaders), 0]
        return int(np.count_nonzero((leaders != preferred) & (leaders != FREE)))

    def with_isr_member(self, broker_id: int) -> list[PartitionRef]:
        """Return the partitions whose ISR contains this broker."""
        return self.refs(self.rows_with_isr_member(broker_id, self._all_rows))

    def rare_keys(self) -> list[RareKey]:
        """Return the partitions that may be reassigned, and few others."""
        return self._rare.keys()

    def reassigning(self, among: Iterable[RareKey]) -> list[PartitionRef]:
        """Return those of the partitions that are being reassigned."""
        return [PartitionRef(topic.id, index) for topic, index in self._rare.find(_is_reassigning, among)]

    def count_reassigning(self) -> int:
        """Return the number of partitions that are being reassigned."""
        return len(self._rare.find(_is_reassigning, self._rare.keys()))

    # Rows, for decisions about many partitions. They are valid until the next change.

    @property
    def moves(self) -> int:
        """The number of times that the partitions of a topic moved to other rows."""
        return self._regions.moves

    def moved_since(self, moves: int) -> list[TopicRows] | None:
        """Return the topics that moved since there were so many moves; None if not all are remembered."""
        return self._regions.moved_since(moves)

    def rows_with_isr_member(self, broker_id: int, window: slice) -> Rows:
        """Return the rows in a window of all rows whose ISR contains this broker, in ascending order."""
        cells = np.flatnonzero(self._columns.isr[window].reshape(-1) == broker_id)
        rows = cells // self._columns.width
        if len(rows) > 1:
            rows = rows[np.diff(rows, prepend=-1) > 0]
        return self._with_wide(rows + window.start, window, lambda wide: broker_id in wide.isr)

    def rows_with_elr_member(self, broker_id: int, window: slice) -> Rows:
        """Return the rows in a window of all rows whose ELR contains this broker, in ascending order."""
        rows = self._columns.elrs.rows_with_member(broker_id, window)
        return self._with_wide(rows, window, lambda wide: broker_id in wide.elr)

    def rows_in_directories(self, rows: Rows, broker_id: int, directories: Iterable[Uuid]) -> Rows:
        """Return those of the rows whose replica on this broker is in one of the directories."""
        wanted = set(directories)
        known = map(self._columns.directory_numbers.known, wanted)
        numbers = np.array([number for number in known if number is not None], np.int32)
        inside = np.isin(self._columns.directories[rows], numbers)
        inside &= self._columns.replicas[rows] == broker_id

        def is_inside(wide: Lists) -> bool:
            places = zip(wide.replicas, wide.directories, strict=True)
            return any(id == broker_id and directory in wanted for id, directory in places)

        return self._with_wide(rows[inside.any(axis=1)], rows, is_inside)

    def replicas_in(self, rows: Rows) -> list[Ids]:
        """Return the replicas of the partitions in these rows."""
        wide = self._rare.wide(rows)
        in_columns = map(unpadded, self._columns.replicas[rows].tolist())
        found = zip(rows.tolist(), in_columns, strict=True)
        return [wide[row].replicas if row in wide else replicas for row, replicas in found]

    def replication_factors(self, rows: Rows) -> Int32s:
        """Return the numbers of replicas of the partitions in these rows."""
        factors = count_members(self._columns.replicas[rows])
        wide = self._rare.wide(rows)
        for place in np.flatnonzero(np.isin(rows, list(wide))).tolist():
            factors[place] = len(wide[int(rows[place])].replicas)
        return factors

    def has_wide(self, rows: Rows) -> Mask:
        """Return which rows have partitions whose lists aren't in the columns."""
        return np.isin(rows, list(self._rare.wide(rows)))

    def _with_wide(self, found: Rows, rows: slice | Rows, wanted: Callable[[Lists], bool]) -> Rows:
        """Return the rows found in the columns and those of the wide partitions that are wanted."""
        others = [row for row, wide in self._rare.wide(rows).items() if wanted(wide)]
        return np.union1d(found, others).astype(np.intp) if others else found

    def places(self, rows: Rows) -> Places:
        """Return rows, in ascending order, as topics and indexes, which stay valid when regions move."""
        owners = self._columns.owner[rows]
        firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        topics = [self._regions.owners[ordinal] for ordinal in owners[firsts].tolist()]
        counts = np.diff(firsts, append=len(rows))
        starts = np.array([topic.start for topic in topics], np.intp)
        return Places(topics, counts, (rows - np.repeat(starts, counts)).astype(np.int32))

    def refs(self, rows: Rows) -> list[PartitionRef]:
        """Return the partitions in these rows."""
        owners = map(self._regions.owners.__getitem__, self._columns.owner[rows].tolist())
        return [
            PartitionRef(topic.id, row - topic.start)
            for row, topic in zip(rows.tolist(), owners, strict=True)
        ]

    # For replay

    def read(self, topic: TopicRows, index: int) -> Partition | None:
        """Return a partition of a known topic."""
        if not 0 <= index < topic.extent:
            return None
        row = topic.start + index
        if self._columns.is_free(row):
            return None
        return self._columns.get(row, self._rare.get(topic, index))

    def place(self, topic: TopicRows, index: int, new: Partition) -> None:
        """Write a partition, whether it exists or not."""
        if self._journal.active:
            self._journal.add(self._swap, topic, index, self.read(topic, index))
        self._write(topic, index, new)

    def append(self, topic: TopicRows, block: Block) -> None:
        """Write partitions after a topic's last one. None of them may have rare lists."""
        if self._journal.active:
            self._journal.add(self._cut_off, topic, block.leader.size)
        count = block.leader.size
        end = topic.extent + count
        if end > topic.capacity:
            self._regions.make_room(topic, end)
        self._columns.paste(slice(topic.start + topic.extent, topic.start + end), block, topic.ordinal)
        topic.extent = end
        topic.count += count
        self._count += count

    def append_to(self, topic_id: Uuid, first_index: int, block: Block) -> None:
        """Write partitions after a topic's last one. Raises Contradiction if their indexes don't follow."""
        self.append(self._topic_up_to(topic_id, first_index), block)

    def append_each(self, topic_id: Uuid, first_index: int, partitions: Iterable[Partition]) -> None:
        """Do the same with partitions that don't fit into a block."""
        topic = self._topic_up_to(topic_id, first_index)
        for index, partition in enumerate(partitions, first_index):
            self.place(topic, index, partition)

    def _topic_up_to(self, topic_id: Uuid, end_index: int) -> TopicRows:
        topic = self._topics.rows(topic_id)
        if topic.extent != end_index:
            raise Contradiction(f"{topic.name!r} has {topic.extent} partitions, not {end_index}")
        return topic

    def rows_of(self, topics: list[TopicRows], indexes: Int32s) -> Rows:
        """Return the rows of partitions, given by topic and index, up to the first that doesn't exist."""
        indexes = indexes[: len(topics)]
        rows: Rows = np.array(array("q", [topic.start for topic in topics]), np.intp) + indexes
        extents = np.array(array("q", [topic.extent for topic in topics]))
        exists = (indexes >= 0) & (indexes < extents)
        exists[exists] = self._columns.leader[rows[exists]] != FREE
        return rows if exists.all() else rows[: int(exists.argmin())]

    def change(self, topic: TopicRows, index: int, old: Partition, new: Partition) -> None:
        """Change a partition from ``old`` to ``new``."""
        if self._journal.active:
            self._journal.add(self._swap, topic, index, old)
        self._write(topic, index, new)

    def change_all(self, places: Places, changes: Changes) -> None:
        """Change existing partitions each at most once. One inverse is for all."""
        rows = places.rows()
        if self._journal.active:
            self._journal.add(self._swap_rows, places, self._columns.copy_changing(rows))
        self._columns.change(rows, changes)

    def clear_elr(self, only: TopicRows | None) -> None:
        """Empty the ELRs and the last known ELRs of one topic, or of all. Those that had any have changed."""
        for topic, index in self._rare.find(_has_elr, self._rare.keys()):
            if only is None or topic is only:
                self._clear_rare_elr(topic, index)
        window = self._all_rows if only is None else slice(only.start, only.start + only.extent)
        rows = self._columns.elrs.rows_with_any(window)
        if len(rows):
            if self._journal.active:
                self._journal.add(self._restore_elr, self.places(rows), self._columns.elrs.of(rows))
            self._columns.clear_elr(rows)

    def drop_topics(self, topics: Iterable[TopicRows]) -> None:
        """Remove the partitions of topics and free their regions. One inverse is for all."""
        present = sorted([topic for topic in topics if topic.count], key=_start)
        if present:
            taken = self._take_out(present, keep=self._journal.active)
            if taken is not None:
                self._journal.add(self._put_back, present, taken)

    # Rows

    def _swap(self, topic: TopicRows, index: int, partition: Partition | None) -> Inverse:
        other = self.read(topic, index)
        if partition is None:
            self._erase(topic, index)
        else:
            self._write(topic, index, partition)
        return self._swap, (topic, index, other)

    def _cut_off(self, topic: TopicRows, count: int) -> Inverse:
        """Remove a topic's last partitions."""
        start = topic.extent - count
        rows = slice(topic.start + start, topic.start + topic.extent)
        block = self._columns.copy(rows)
        self._columns.clear(rows)
        self._count -= count
        topic.count -= count
        topic.extent = start
        if topic.count == 0:
            self._regions.give_up([topic])
        return self._append_again, (topic, block)

    def _append_again(self, topic: TopicRows, block: Block) -> Inverse:
        self.append(topic, block)
        return self._cut_off, (topic, block.leader.size)

    def _swap_rows(self, places: Places, before: Before) -> Inverse:
        rows = places.rows()
        now = self._columns.copy_changing(rows)
        self._columns.put_changing(rows, before)
        return self._swap_rows, (places, now)

    def _restore_elr(self, places: Places, elr: Elr) -> Inverse:
        self._columns.restore_elr(places.rows(), elr)
        return self._clear_elr_again, (places, elr)

    def _clear_elr_again(self, places: Places, elr: Elr) -> Inverse:
        self._columns.clear_elr(places.rows())
        return self._restore_elr, (places, elr)

    def _write(self, topic: TopicRows, index: int, partition: Partition) -> None:
        if index >= topic.capacity:
            self._regions.make_room(topic, index + 1)
        row = topic.start + index
        if self._columns.is_free(row):
            self._columns.set_owner(row, topic.ordinal)
            topic.count += 1
            topic.extent = max(topic.extent, index + 1)
            self._count += 1
        rare = rare_of(partition)
        self._columns.put(row, partition if rare.wide is None else narrow(partition))
        self._rare.put(topic, index, rare)

    def _erase(self, topic: TopicRows, index: int) -> None:
        row = topic.start + index
        self._columns.clear(slice(row, row + 1))
        self._rare.drop(topic, index)
        self._count -= 1
        topic.count -= 1
        if topic.count == 0:
            self._regions.give_up([topic])
            return
        while self._columns.is_free(topic.start + topic.extent - 1):
            topic.extent -= 1

    def _take_out(self, topics: list[TopicRows], *, keep: bool) -> _RemovedPartitions | None:
        """Remove the partitions of topics, which are in the order of their rows."""
        extents = [topic.extent for topic in topics]
        rows = self._regions.rows_of(topics)
        rare = self._rare.take(rows)
        taken = None
        if keep:
            counts = [topic.count for topic in topics]
            taken = _RemovedPartitions(self._columns.copy(rows), rare, extents, counts)
        self._columns.clear(rows)
        for topic in topics:
            self._count -= topic.count
            topic.count = 0
        self._regions.give_up(topics)
        return taken

    def _put_back(self, topics: list[TopicRows], taken: _RemovedPartitions) -> Inverse:
        for topic, extent, count in zip(topics, taken.extents, taken.counts, strict=True):
            self._regions.make_room(topic, extent)
            topic.extent, topic.count = extent, count
            self._count += count
        rows = self._regions.rows_of(topics)
        owners = np.repeat(np.array([topic.ordinal for topic in topics], np.int32), taken.extents)
        self._columns.paste(rows, taken.block, owners)
        self._rare.put_back(rows, taken.rare)
        return self._drop_again, (topics,)

    def _drop_again(self, topics: list[TopicRows]) -> Inverse:
        topics = sorted(topics, key=_start)
        taken = self._take_out(topics, keep=True)
        assert taken is not None
        return self._put_back, (topics, taken)

    def _clear_rare_elr(self, topic: TopicRows, index: int) -> None:
        old = self.read(topic, index)
        assert old is not None, "it has a rare list"
        new = msgspec.structs.replace(old, elr=(), last_known_elr=(), partition_epoch=old.partition_epoch + 1)
        self.change(topic, index, old, new)

    # All rows

    @property
    def _all_rows(self) -> slice:
        return slice(0, self._regions.top)

    def _leaders(self) -> Int32s:
        return self._columns.leader[: self._regions.top]


def _start(topic: TopicRows) -> int:
    return topic.start


def _is_reassigning(rare: Rare) -> bool:
    return bool(rare.adding_replicas or rare.removing_replicas)


def _has_elr(rare: Rare) -> bool:
    return rare.has_elr
