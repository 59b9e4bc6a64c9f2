"""Write the PartitionChangeRecords of one batch from columns.

The records of one shape (which fields they have, how many members the ISR has, how many bytes their offset
delta takes) are one matrix of bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kraft_wire.columnar.templates import DELTA_LIMITS, big_endian, framed
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.metadata_record import FRAME_VERSION
from kraft_wire.protocol.varint import uvarint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.columnar.gather import Bytes, Positions

    Int32s = NDArray[np.int32]

MOST_MEMBERS: Final = 31
"""An ISR of more members doesn't fit into the shapes: the size of its field would take two bytes."""
_ISR_TAG, _LEADER_TAG, _RECOVERY_TAG = 0, 1, 5


class ChangeColumns(msgspec.Struct, frozen=True):
    """The fields of PartitionChangeRecords.

    ``leader`` is NO_LEADER_CHANGE (-2) and ``recovery_state`` -1 in records without these fields. ``isr`` is
    padded with -1; ``isr_given`` says which records have it.
    """

    topic_ids: NDArray[np.uint8]
    indexes: Int32s
    leader: Int32s
    recovery_state: NDArray[np.int8]
    isr: Int32s
    isr_given: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.indexes)


class _Shape(msgspec.Struct, frozen=True):
    """``members`` is -1 without an ISR; ``delta_bytes`` is the length of the offset delta.

    ``of`` undoes ``_shape_numbers``.
    """

    members: int
    has_leader: bool
    has_recovery_state: bool
    delta_bytes: int

    @classmethod
    def of(cls, number: int) -> _Shape:
        return cls((number >> 4) - 1, bool(number & 8), bool(number & 4), (number & 3) + 1)


def encode_changes(columns: ChangeColumns, version: int, first_delta: int) -> bytes:
    """Return the records as they stand in a batch, where the first has the offset delta ``first_delta``.

    No ISR may have more than ``MOST_MEMBERS`` members.
    """
    count = len(columns)
    if not count:
        return b""
    deltas = np.arange(first_delta, first_delta + count)
    numbers = _shape_numbers(columns, deltas)
    used = np.unique(numbers)
    if len(used) == 1:
        return _matrix(_Shape.of(int(used[0])), columns, deltas, slice(None), version).tobytes()
    groups = [np.flatnonzero(numbers == number) for number in used]
    matrices = [
        _matrix(_Shape.of(int(number)), columns, deltas, rows, version)
        for number, rows in zip(used, groups, strict=True)
    ]
    return _interleaved(groups, matrices, count)


def _shape_numbers(columns: ChangeColumns, deltas: Positions) -> Positions:
    members = np.where(columns.isr_given, np.count_nonzero(columns.isr >= 0, axis=1), -1)
    delta_bytes = 1 + np.searchsorted(DELTA_LIMITS, deltas, side="right")
    numbers: Positions = (
        ((members + 1) << 4)
        + ((columns.leader != -2).astype(np.int64) << 3)
        + ((columns.recovery_state >= 0).astype(np.int64) << 2)
        + (delta_bytes - 1)
    )
    return numbers


def _interleaved(groups: list[Positions], matrices: list[Bytes], count: int) -> bytes:
    """Return the rows of all matrices in the order of the records."""
    sizes = np.empty(count, np.int64)
    for rows, matrix in zip(groups, matrices, strict=True):
        sizes[rows] = matrix.shape[1]
    starts = np.cumsum(sizes) - sizes
    out = np.empty(int(sizes.sum()), np.uint8)
    for rows, matrix in zip(groups, matrices, strict=True):
        out[starts[rows][:, None] + np.arange(matrix.shape[1])] = matrix
    return out.tobytes()


def _matrix(
    shape: _Shape, columns: ChangeColumns, deltas: Positions, rows: Positions | slice, version: int
) -> Bytes:
    """Return the records of one shape, one in each row."""
    deltas = deltas[rows]
    head = bytes((FRAME_VERSION, PartitionChangeRecord.API_KEY, version))
    fields: list[bytes | Bytes] = [
        head,
        big_endian(columns.indexes[rows], ">i4"),
        columns.topic_ids[rows],
        *_tagged_fields(shape, columns, rows),
    ]
    return framed(fields, deltas, shape.delta_bytes)


def _tagged_fields(shape: _Shape, columns: ChangeColumns, rows: Positions | slice) -> list[bytes | Bytes]:
    tagged: list[bytes | Bytes] = []
    if shape.members >= 0:
        tagged.append(bytes((_ISR_TAG, 1 + 4 * shape.members, shape.members + 1)))
        if shape.members:
            tagged.append(big_endian(columns.isr[rows][:, : shape.members], ">i4"))
    if shape.has_leader:
        tagged += [bytes((_LEADER_TAG, 4)), big_endian(columns.leader[rows], ">i4")]
    if shape.has_recovery_state:
        tagged += [bytes((_RECOVERY_TAG, 1)), big_endian(columns.recovery_state[rows], ">i1")]
    count = (shape.members >= 0) + shape.has_leader + shape.has_recovery_state
    return [uvarint(count), *tagged]
