"""Runs of records that make a topic's partitions, applied all at once: large logs are mostly such runs.

Only the plain case is treated: partitions behind the topic's last one, in order, of one shape, without
anything that is rare. Whatever else there is takes the ordinary way, record by record, and so do all errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import takewhile
from struct import Struct
from typing import TYPE_CHECKING, Final

from kraft_wire.metadata.columns import PAD, Block
from kraft_wire.metadata.lazy_numpy import np
from kraft_wire.metadata.partition import NO_LEADER, RECOVERED
from kraft_wire.metadata.partitions import Partitions
from kraft_wire.metadata.topics import TopicRows, Topics
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.metadata.columns import Int32s

WORTHWHILE: Final = 8
"""Fewer records are faster one by one."""

_HEADS: Final = (b"\x01\x03\x01", b"\x01\x03\x02")
"""Frame version, type and version of a PartitionRecord that says where replicas are."""
_INDEX_AND_TOPIC: Final = Struct(">3xi16s")
_TOPIC: Final = slice(7, 23)
_FREE_FIELDS: Final = (
    "index",
    "replicas",
    "isr",
    "leader",
    "leader_epoch",
    "partition_epoch",
    "directories",
)


class PartitionRuns:
    """Finds and applies runs. Nothing is written into the journal."""

    def __init__(self, topics: Topics, partitions: Partitions) -> None:
        self._topics = topics
        self._partitions = partitions

    def apply(self, values: Sequence[bytes], position: int) -> int:
        """Apply the run that begins at ``position``; returns how many values that were, 0 for none."""
        topic = self._topic_to_extend(values, position)
        if topic is None:
            return 0
        record, _ = decode_metadata_record(values[position])
        size = len(values[position])
        if not isinstance(record, PartitionRecord) or not _is_plain(record, size):
            return 0
        run = _like_the_first(values, position)
        fields, shared = _layout(len(record.replicas), len(record.isr))
        rows = np.frombuffer(b"".join(run), fields)
        count = _plain_rows(rows, shared, record.partition_id)
        self._partitions.append(topic, self._block(rows[:count], len(record.replicas)))
        return count

    def _topic_to_extend(self, values: Sequence[bytes], position: int) -> TopicRows | None:
        first = values[position]
        last_position = position + WORTHWHILE - 1
        if not first.startswith(_HEADS) or last_position >= len(values) or len(first) < _TOPIC.stop:
            return None
        if values[last_position][_TOPIC] != first[_TOPIC]:
            return None
        index, topic_id = _INDEX_AND_TOPIC.unpack_from(first)
        topic = self._topics.find_rows(topic_id)
        return topic if topic is not None and topic.extent == index else None

    def _block(self, rows: NDArray[np.void], width: int) -> Block:
        isr: Int32s = np.full((rows.size, width), PAD, np.int32)
        isr[:, : rows["isr"].shape[1]] = rows["isr"]
        numbers = self._partitions.columns.directory_numbers.of_bytes(rows["directories"].ravel().tolist())
        return Block(
            rows["leader"],
            rows["leader_epoch"],
            rows["partition_epoch"],
            np.full(rows.size, RECOVERED, np.int8),
            rows["replicas"],
            isr,
            np.array(numbers, np.int32).reshape(rows.size, width),
        )


def _is_plain(record: PartitionRecord, size: int) -> bool:
    """Whether the record takes as few bytes as its lists need: then there is nothing else in it."""
    replicas, isr = len(record.replicas), len(record.isr)
    if not 0 < isr <= replicas == len(record.directories):
        return False
    return size == _layout(replicas, isr)[0].itemsize


def _like_the_first(values: Sequence[bytes], position: int) -> Sequence[bytes]:
    """Those from ``position`` on that have the same size, not many of another topic among them."""
    topic, size = values[position][_TOPIC], len(values[position])
    length = WORTHWHILE
    while position + 2 * length <= len(values) and values[position + 2 * length - 1][_TOPIC] == topic:
        length *= 2
    candidates = values[position : position + 2 * length]
    return candidates[: len(list(takewhile(size.__eq__, map(len, candidates))))]


@cache
def _layout(replicas: int, isr: int) -> tuple[np.dtype[np.void], NDArray[np.intp]]:
    """The bytes of a plain record with so many replicas, and which of them all records of a run share."""
    fields = np.dtype(
        [
            ("head", "V3"),
            ("index", ">i4"),
            ("topic", "V16"),
            ("replica_count", "u1"),
            ("replicas", ">i4", (replicas,)),
            ("isr_count", "u1"),
            ("isr", ">i4", (isr,)),
            ("removing_and_adding", "V2"),
            ("leader", ">i4"),
            ("leader_epoch", ">i4"),
            ("partition_epoch", ">i4"),
            ("directory_count", "u1"),
            ("directories", "V16", (replicas,)),
            ("tag_count", "u1"),
        ]
    )
    shared = np.ones(fields.itemsize, np.bool_)
    assert fields.fields is not None, "it has names"
    for name in _FREE_FIELDS:
        kind, start = fields.fields[name][:2]
        shared[start : start + kind.itemsize] = False
    return fields, np.flatnonzero(shared)


def _plain_rows(rows: NDArray[np.void], shared: NDArray[np.intp], first_index: int) -> int:
    """How many rows at the beginning are shaped as the first, in order, and possible."""
    octets = rows.view(np.uint8).reshape(rows.size, -1)[:, shared]
    good = (octets == octets[0]).all(axis=1)
    good &= rows["index"] == np.arange(first_index, first_index + rows.size)
    good &= rows["leader"] >= NO_LEADER
    return rows.size if good.all() else int(good.argmin())
