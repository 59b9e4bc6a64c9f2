"""Write the PartitionRecords of one topic's new partitions: many from columns, few one by one.

All replicas are in sync, the first leads, and both epochs are 0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from kraft_wire.columnar.templates import big_endian, delta_spans, framed
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.metadata_record import FRAME_VERSION
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.protocol.varint import uvarint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.columnar.gather import Bytes

FIRST_VERSION: Final = 1
"""The first version of the record with directories."""
_HEAD: Final = struct.Struct(">BBBi")
_EMPTY_ARRAY: Final = b"\x01"
_NO_TAGGED_FIELDS: Final = b"\x00"


def encode_new_partitions(
    topic_id: Uuid,
    first_index: int,
    replicas: NDArray[np.int32],
    directories: Bytes,
    version: int,
    first_delta: int,
) -> bytes:
    """Return the records as they stand in a batch, where the first has the offset delta ``first_delta``.

    ``replicas`` has the brokers of one partition in each row. ``directories`` has their directory ids, 16
    bytes each. ``version`` is at least ``FIRST_VERSION``.
    """
    count, replication_factor = replicas.shape
    indexes = np.arange(first_index, first_index + count, dtype=np.int32)
    deltas = np.arange(first_delta, first_delta + count)
    length = uvarint(replication_factor + 1)
    brokers = big_endian(replicas, ">i4")
    fields: list[bytes | Bytes] = [
        bytes((FRAME_VERSION, PartitionRecord.API_KEY, version)),
        big_endian(indexes, ">i4"),
        topic_id + length,
        brokers,
        length,
        brokers,
        _EMPTY_ARRAY * 2,
        brokers[:, :4],
        bytes(8) + length,
        directories,
        _NO_TAGGED_FIELDS,
    ]
    matrices = [
        framed([_rows(field, span) for field in fields], deltas[span], delta_bytes)
        for span, delta_bytes in delta_spans(first_delta, count)
    ]
    return b"".join([matrix.tobytes() for matrix in matrices])


def new_partition_values(
    topic_id: Uuid,
    first_index: int,
    assignments: Iterable[Sequence[int]],
    directories: Mapping[int, Uuid],
    version: int,
) -> list[bytes]:
    """Return the records without the framing of a batch, given the directory of each broker's replicas.

    Partitions with the same brokers share what follows the topic id.
    """
    tails: dict[tuple[int, ...], bytes] = {}
    values = []
    for index, assignment in enumerate(map(tuple, assignments), first_index):
        tail = tails.get(assignment)
        if tail is None:
            own = tuple([directories[broker_id] for broker_id in assignment])
            tail = tails[assignment] = topic_id + _tail(assignment, own)
        values.append(_HEAD.pack(FRAME_VERSION, PartitionRecord.API_KEY, version, index) + tail)
    return values


@lru_cache(maxsize=1024)
def _tail(assignment: tuple[int, ...], directories: tuple[Uuid, ...]) -> bytes:
    length = uvarint(len(assignment) + 1)
    brokers = length + struct.pack(f">{len(assignment)}i", *assignment)
    leader = brokers[len(length) : len(length) + 4]
    return b"".join(
        (brokers, brokers, _EMPTY_ARRAY * 2, leader, bytes(8), length, *directories, _NO_TAGGED_FIELDS)
    )


def _rows(field: bytes | Bytes, rows: slice) -> bytes | Bytes:
    return field if isinstance(field, bytes) else field[rows]
