"""Write the PartitionRecords of one topic's new partitions from columns."""

from __future__ import annotations

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

    ``replicas`` has the brokers of one partition in each row, all of them in sync; the first leads.
    ``directories`` has their directory ids, 16 bytes each. Both epochs are 0. ``version`` is at least
    ``FIRST_VERSION``.
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


def _rows(field: bytes | Bytes, rows: slice) -> bytes | Bytes:
    return field if isinstance(field, bytes) else field[rows]
