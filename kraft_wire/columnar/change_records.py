"""Write the PartitionChangeRecords of one batch from columns.

The records of one shape (which fields they have, how many members the ISR and the ELR have, how many bytes
their offset delta takes) are one matrix of bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

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
"""A list of more members doesn't fit into the shapes: the size of its field would take two bytes."""
_ISR_TAG, _LEADER_TAG, _RECOVERY_TAG, _ELR_TAG, _LAST_KNOWN_TAG = 0, 1, 5, 6, 7


class ElrFields(msgspec.Struct, frozen=True):
    """The fields of KIP-966. ``members`` are padded with -1; ``given`` says which records have them.

    ``last_known`` is the only member of the last known ELR; -1 if that is empty, -2 in records without it.
    """

    members: Int32s
    given: NDArray[np.bool_]
    last_known: Int32s


class ChangeColumns(msgspec.Struct, frozen=True):
    """The fields of PartitionChangeRecords.

    ``leader`` is NO_LEADER_CHANGE (-2) and ``recovery_state`` -1 in records without these fields. ``isr`` is
    padded with -1; ``isr_given`` says which records have it. Without ``elr``, no record has its fields.
    """

    topic_ids: NDArray[np.uint8]
    indexes: Int32s
    leader: Int32s
    recovery_state: NDArray[np.int8]
    isr: Int32s
    isr_given: NDArray[np.bool_]
    elr: ElrFields | None = None

    def __len__(self) -> int:
        return len(self.indexes)


class _Shape(NamedTuple):
    """The numbers of ``members`` are -1 without that list; ``delta_bytes`` is the length of the offset delta.

    ``of`` undoes ``_shape_numbers``.
    """

    isr_members: int
    elr_members: int
    last_known_members: int
    has_leader: bool
    has_recovery_state: bool
    delta_bytes: int

    @classmethod
    def of(cls, number: int) -> _Shape:
        return cls(
            (number >> 12) - 1,
            (number >> 6 & 63) - 1,
            (number >> 4 & 3) - 1,
            bool(number & 8),
            bool(number & 4),
            (number & 3) + 1,
        )


def encode_changes(columns: ChangeColumns, version: int, first_delta: int) -> bytes:
    """Return the records as they stand in a batch, where the first has the offset delta ``first_delta``.

    No ISR and no ELR may have more than ``MOST_MEMBERS`` members.
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
    delta_bytes = 1 + np.searchsorted(DELTA_LIMITS, deltas, side="right")
    numbers: Positions = (
        (_counts(columns.isr, columns.isr_given) << 12)
        + ((columns.leader != -2).astype(np.int64) << 3)
        + ((columns.recovery_state >= 0).astype(np.int64) << 2)
        + (delta_bytes - 1)
    )
    if columns.elr is not None:
        numbers += _counts(columns.elr.members, columns.elr.given) << 6
        numbers += np.clip(columns.elr.last_known.astype(np.int64), -2, 0) + 2 << 4
    return numbers


def _counts(lists: Int32s, given: NDArray[np.bool_]) -> Positions:
    """Return one more than the number of members of each list; 0 where it isn't given."""
    counts: Positions = np.where(given, np.count_nonzero(lists >= 0, axis=1) + 1, 0)
    return counts


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
    if shape.isr_members >= 0:
        tagged += _list_field(_ISR_TAG, columns.isr[rows], shape.isr_members)
    if shape.has_leader:
        tagged += [bytes((_LEADER_TAG, 4)), big_endian(columns.leader[rows], ">i4")]
    if shape.has_recovery_state:
        tagged += [bytes((_RECOVERY_TAG, 1)), big_endian(columns.recovery_state[rows], ">i1")]
    elr = columns.elr
    if elr is not None and shape.elr_members >= 0:
        tagged += _list_field(_ELR_TAG, elr.members[rows], shape.elr_members)
    if elr is not None and shape.last_known_members >= 0:
        tagged += _list_field(_LAST_KNOWN_TAG, elr.last_known[rows, None], shape.last_known_members)
    lists = (shape.isr_members, shape.elr_members, shape.last_known_members)
    count = sum(members >= 0 for members in lists) + shape.has_leader + shape.has_recovery_state
    return [uvarint(count), *tagged]


def _list_field(tag: int, lists: Int32s, members: int) -> list[bytes | Bytes]:
    """Return a tagged field with lists of so many members."""
    head = bytes((tag, 1 + 4 * members, members + 1))
    return [head, big_endian(lists[:, :members], ">i4")] if members else [head]
