"""Replay large batches of partition records in columns, run by run.

Large logs consist mostly of such batches. A run is either the new partitions of one topic, in order, or
changes of leaders, ISRs and ELRs, or removals of topics. All other records, and all errors, are replayed
record by record in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from kraft_wire.columnar.fields import Ragged, Table, find_fields
from kraft_wire.columnar.gather import Chunk, Malformed
from kraft_wire.columnar.metadata import Kind, kinds
from kraft_wire.metadata.partitions.columns import Block, Changes, DirectoryNumbers
from kraft_wire.metadata.partitions.encoded_records import EncodedRecords
from kraft_wire.metadata.partitions.partition import (
    DIRECTORY_MIGRATING,
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
)
from kraft_wire.metadata.partitions.partitions import Partitions
from kraft_wire.metadata.partitions.ragged_lists import filled, given, lengths, longest, padded
from kraft_wire.metadata.partitions.rare import fits
from kraft_wire.metadata.partitions.replay_elrs import changed_elrs, new_elrs
from kraft_wire.metadata.topics import TopicRows, Topics
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.columnar.gather import Positions
    from kraft_wire.metadata.partitions.cells import Int32s, Mask


_MIN_NEW_PARTITIONS: Final = 4
_MIN_CHANGES: Final = 16
"""A shorter run is faster record by record."""
_STATE_UNCHANGED: Final = -1
_HIGHEST_EPOCH: Final = 2**31 - 1
_HASHES: Final = 4096
_HASH_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_HASH_SHIFT: Final = np.uint64(52)
_RARE: Final = ("removing_replicas", "adding_replicas")

Run = Callable[[], int]
"""A function that applies a run as far as possible and returns the number of applied records."""


class PartitionBatches:
    """Finds runs in batches and applies them. Nothing is written to the journal."""

    def __init__(
        self,
        topics: Topics,
        partitions: Partitions,
        remove_topics: Callable[[list[TopicRows]], None],
    ) -> None:
        self._topics = topics
        self._partitions = partitions
        self._remove_topics = remove_topics

    def runs(self, values: Sequence[bytes]) -> dict[int, Run]:
        """Return the runs of a batch, by the position of their first record.

        The records are decoded now. Each run checks whether its records fit the state when it is called.
        """
        encoded = EncodedRecords.of(values)
        chunk = encoded.chunk
        runs: dict[int, Run] = {}
        try:
            for kind in kinds(chunk, encoded.starts, encoded.ends):
                if _is_many(kind, PartitionRecord, _MIN_NEW_PARTITIONS):
                    runs.update(self._partition_runs(kind, chunk))
                elif _is_many(kind, PartitionChangeRecord, _MIN_CHANGES):
                    runs.update(self._change_runs(kind, chunk))
                elif _is_many(kind, RemoveTopicRecord, _MIN_CHANGES):
                    runs.update(self._removal_runs(kind, chunk))
        except Malformed:
            return {}
        return runs

    # New partitions

    def _partition_runs(self, kind: Kind, chunk: Chunk) -> Iterator[tuple[int, Run]]:
        table = find_fields(PartitionRecord, kind.version, chunk, kind.starts, kind.ends)
        topic_ids, indexes = table.uuids("topic_id"), table.numbers("partition_id")
        block, usual = self._block(table)
        follows = _follow_previous(kind.rows, usual)
        follows &= indexes[1:] == indexes[:-1] + 1
        halves = topic_ids.view(np.uint64)
        follows &= (halves[1:, 0] == halves[:-1, 0]) & (halves[1:, 1] == halves[:-1, 1])
        for span in _spans(usual, follows, _MIN_NEW_PARTITIONS):
            topic_id, index = Uuid(topic_ids[span.start].tobytes()), int(indexes[span.start])
            yield int(kind.rows[span.start]), partial(self._append, topic_id, index, block, span)

    def _append(self, topic_id: Uuid, index: int, block: Block, span: slice) -> int:
        topic = self._topics.find_rows(topic_id)
        if topic is None or topic.extent != index:
            return 0
        partitions = block.part(span)
        self._partitions.append(topic, partitions)
        return len(partitions.leader)

    def _block(self, table: Table) -> tuple[Block, Mask]:
        """Return the partitions of the records, and a mask of those without rare or impossible fields."""
        replicas, isr, directories = map(table.ragged, ("replicas", "isr", "directories"))
        leader, state = table.numbers("leader"), table.numbers("leader_recovery_state")
        elr, has_usual_elr = new_elrs(table)
        width = max(longest(replicas), longest(isr))
        if not fits(width):
            raise Malformed(f"a partition has {width} replicas, too many for columns")
        usual: Mask = (leader >= NO_LEADER) & ((state == RECOVERED) | (state == RECOVERING))
        for name in _RARE:
            if not table.is_empty(name):
                usual &= lengths(table.ragged(name)) == 0
        usual &= has_usual_elr
        here = lengths(directories)
        usual &= (here == lengths(replicas)) | (here == 0)
        return Block(
            leader,
            table.numbers("leader_epoch"),
            table.numbers("partition_epoch"),
            state,
            padded(replicas, width),
            padded(isr, width),
            self._directories(directories, lengths(replicas), width),
            elr,
        ), usual

    def _directories(self, directories: Ragged, replicas: Positions, width: int) -> Int32s:
        numbers = self._partitions.columns.directory_numbers
        numbered = _number_directories(directories.values.reshape(-1, 16), numbers)
        rows = padded(Ragged(numbered, directories.offsets, None), width)
        without = lengths(directories) == 0
        if without.any():
            (migrating,) = numbers.of((DIRECTORY_MIGRATING,))
            rows[without[:, None] & filled(replicas, width)] = migrating
        return rows

    # Changes

    def _change_runs(self, kind: Kind, chunk: Chunk) -> Iterator[tuple[int, Run]]:
        table = find_fields(PartitionChangeRecord, kind.version, chunk, kind.starts, kind.ends)
        elr, has_usual_elr = changed_elrs(table)
        usual = _usual_changes(table) & has_usual_elr
        spans = _spans(usual, _follow_previous(kind.rows, usual), _MIN_CHANGES)
        if not spans:
            return
        topic_ids = table.uuids("topic_id").view("V16").ravel().tolist()
        indexes = table.numbers("partition_id")
        isr = table.ragged("isr")
        if not fits(longest(isr)):
            raise Malformed(f"an ISR has {longest(isr)} members, too many for columns")
        changes = Changes(
            table.numbers("leader"),
            table.numbers("leader_recovery_state"),
            padded(isr, longest(isr)),
            given(isr),
            elr,
        )
        for span in spans:
            run = partial(self._change, topic_ids[span], indexes[span], changes.part(span))
            yield int(kind.rows[span.start]), run

    def _change(self, topic_ids: list[bytes], indexes: Int32s, changes: Changes) -> int:
        rows = self._partitions.rows_of(self._topics.find_all(topic_ids), indexes)
        if not len(rows) or self._partitions.columns.highest_epoch(rows) > _HIGHEST_EPOCH - len(rows):
            return 0
        if changes.elr is not None:
            rows = rows[: changes.elr.end_before_rare(self._partitions.columns.rare[rows])]
        if (wide := self._partitions.has_wide(rows)).any():
            rows = rows[: int(wide.argmax())]
        self._partitions.columns.change(rows, changes.part(slice(0, len(rows))))
        return len(rows)

    # Removed topics

    def _removal_runs(self, kind: Kind, chunk: Chunk) -> Iterator[tuple[int, Run]]:
        table = find_fields(RemoveTopicRecord, kind.version, chunk, kind.starts, kind.ends)
        topic_ids = table.uuids("topic_id").view("V16").ravel().tolist()
        usual = np.ones(len(topic_ids), np.bool_)
        for span in _spans(usual, _follow_previous(kind.rows, usual), _MIN_CHANGES):
            yield int(kind.rows[span.start]), partial(self._remove, topic_ids[span])

    def _remove(self, topic_ids: list[bytes]) -> int:
        topics = self._topics.find_all(topic_ids)
        if len({topic.id for topic in topics}) < len(topics):
            return 0  # the second removal of a topic is an error
        if topics:
            self._remove_topics(topics)
        return len(topics)


def _is_many(kind: Kind, record_class: type[Message], fewest: int) -> bool:
    """Whether these are at least ``fewest`` records of this type, at a version that exists."""
    is_version = record_class.MIN_VERSION <= kind.version <= record_class.MAX_VERSION
    return kind.api_key == record_class.API_KEY and is_version and len(kind.rows) >= fewest


def _usual_changes(table: Table) -> Mask:
    """Return a mask of the changes without replicas and directories, with possible values."""
    state = table.numbers("leader_recovery_state")
    usual: Mask = table.numbers("leader") >= NO_LEADER_CHANGE
    usual &= (state == _STATE_UNCHANGED) | (state == RECOVERED) | (state == RECOVERING)
    for name in (*_RARE, "replicas", "directories"):
        if not table.is_default(name):
            usual &= ~given(table.ragged(name))
    return usual


def _follow_previous(places: Positions, usual: Mask) -> Mask:
    """Return for each row from the second on whether it follows the previous row in the batch, and both are
    usual."""
    follows: Mask = usual[1:] & usual[:-1] & (places[1:] == places[:-1] + 1)
    return follows


def _spans(usual: Mask, follows: Mask, fewest: int) -> list[slice]:
    """Return the spans of at least ``fewest`` rows that follow each other."""
    bounds = np.concatenate([[0], np.flatnonzero(~follows) + 1, [len(usual)]])
    firsts = np.flatnonzero((np.diff(bounds) >= fewest) & usual[bounds[:-1]])
    return [slice(int(bounds[first]), int(bounds[first + 1])) for first in firsts]


def _number_directories(ids: NDArray[np.uint8], numbers: DirectoryNumbers) -> Int32s:
    """Return each directory's number.

    There are few different directories, so only two kinds of ids are looked up: one of those with the same
    hash, and those that differ from it.
    """
    halves = ids.view(np.uint64)
    slots = ((halves[:, 0] ^ halves[:, 1]) * _HASH_FACTOR >> _HASH_SHIFT).astype(np.intp)
    places = np.arange(len(ids))
    chosen = np.empty(_HASHES, np.intp)
    chosen[slots] = places
    alike = chosen[slots]
    same = (halves[alike, 0] == halves[:, 0]) & (halves[alike, 1] == halves[:, 1])
    looked_up = np.flatnonzero((alike == places) | ~same)
    numbered = np.empty(len(ids), np.int32)
    numbered[looked_up] = numbers.of_bytes(ids[looked_up].view("V16").ravel().tolist())
    return np.where(same, numbered[alike], numbered)
