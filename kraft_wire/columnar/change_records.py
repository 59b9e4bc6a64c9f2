"""Write the PartitionChangeRecords of one batch from columns.

The records of one shape (which fields they have, how many members the ISR has, how many bytes their offset
delta takes) have equal lengths and differ only in numbers at the same places. So all records of a shape are
one matrix of bytes, one row for each record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.metadata_record import FRAME_VERSION
from kraft_wire.protocol.varint import uvarint, varint

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kraft_wire.columnar.gather import Bytes, Positions

    Int32s = NDArray[np.int32]

MOST_MEMBERS: Final = 31
"""An ISR of more members doesn't fit into the shapes: the size of its field would take two bytes."""
_ISR_TAG, _LEADER_TAG, _RECOVERY_TAG = 0, 1, 5
_DELTA_LIMITS: Final = (64, 8192, 1 << 20)
"""From these offset deltas on, a delta takes one byte more."""


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
    delta_bytes = 1 + np.searchsorted(_DELTA_LIMITS, deltas, side="right")
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
        _big_endian(columns.indexes[rows], ">i4"),
        columns.topic_ids[rows],
        *_tagged_fields(shape, columns, rows),
    ]
    value_size = sum(len(field) if isinstance(field, bytes) else field.shape[1] for field in fields)
    value_length = varint(value_size)
    size = 3 + shape.delta_bytes + len(value_length) + value_size + 1
    pieces: list[bytes | Bytes] = [
        varint(size) + b"\x00\x00",
        _varints(deltas, shape.delta_bytes),
        b"\x01" + value_length,
        *fields,
        b"\x00",
    ]
    return _joined(pieces, len(deltas))


def _tagged_fields(shape: _Shape, columns: ChangeColumns, rows: Positions | slice) -> list[bytes | Bytes]:
    tagged: list[bytes | Bytes] = []
    if shape.members >= 0:
        tagged.append(bytes((_ISR_TAG, 1 + 4 * shape.members, shape.members + 1)))
        if shape.members:
            tagged.append(_big_endian(columns.isr[rows][:, : shape.members], ">i4"))
    if shape.has_leader:
        tagged += [bytes((_LEADER_TAG, 4)), _big_endian(columns.leader[rows], ">i4")]
    if shape.has_recovery_state:
        tagged += [bytes((_RECOVERY_TAG, 1)), _big_endian(columns.recovery_state[rows], ">i1")]
    count = (shape.members >= 0) + shape.has_leader + shape.has_recovery_state
    return [uvarint(count), *tagged]


def _big_endian(numbers: NDArray[np.int32] | NDArray[np.int8], code: str) -> Bytes:
    return np.ascontiguousarray(numbers, code).view(np.uint8).reshape(len(numbers), -1)


def _varints(numbers: Positions, size: int) -> Bytes:
    """Return zigzag varints of one size, one in each row."""
    matrix = np.empty((len(numbers), size), np.uint8)
    for place in range(size):
        matrix[:, place] = (numbers << 1 >> 7 * place) & 0x7F | (0x80 if place < size - 1 else 0)
    return matrix


def _joined(pieces: list[bytes | Bytes], count: int) -> Bytes:
    """Return a matrix of these columns; a piece of plain bytes is the same in all rows."""
    size = sum(len(piece) if isinstance(piece, bytes) else piece.shape[1] for piece in pieces)
    matrix = np.empty((count, size), np.uint8)
    place = 0
    for piece in pieces:
        if isinstance(piece, bytes):
            matrix[:, place : place + len(piece)] = np.frombuffer(piece, np.uint8)
            place += len(piece)
        else:
            matrix[:, place : place + piece.shape[1]] = piece
            place += piece.shape[1]
    return matrix
