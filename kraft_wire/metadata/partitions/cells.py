"""Lists of numbers in the rows of a matrix, padded up to its width."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

from kraft_wire.metadata.partitions.lazy_numpy import np
from kraft_wire.metadata.partitions.partition import Ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int32s = NDArray[np.int32]
    Mask = NDArray[np.bool_]
    Rows = NDArray[np.intp]

Number = TypeVar("Number", "np.int32", "np.int8", "np.bool_")

PAD: Final = -1
"""The filler of a row's lists up to the columns' width. It is never a broker's id or a directory's number."""
_ROWS_AT_ONCE: Final = 1 << 14


def grown(old: NDArray[Number], shape: tuple[int, ...], fill: int) -> NDArray[Number]:
    """Return a column of this shape, with what is in ``old``, and ``fill`` elsewhere."""
    if old.shape == shape:
        return old
    kept = len(old)
    new = np.empty(shape, old.dtype)
    if old.ndim == 1:
        new[:kept] = old[:kept]
        new[kept:] = fill
    else:
        new[:kept, : old.shape[1]] = old[:kept]
        new[:kept, old.shape[1] :] = fill
        new[kept:] = fill
    return new


class _Owner:
    """The owner of something, as the columns' owner is."""

    def __init__(self) -> None:
        self.column = object()

    def references(self) -> int:
        return _references(self.column)


def _references(column: object) -> int:
    return sys.getrefcount(column)


@cache
def _references_of_one_owner() -> int:
    """Return what ``lengthened`` counts if there is no other reference. It depends on Python's version."""
    return _Owner().references()


def lengthened(column: NDArray[Number], rows: int, fill: int) -> NDArray[Number]:
    """Return the column with so many rows, the new ones with ``fill``. The caller owns the only reference.

    It is lengthened in place, which takes a fraction of the time of a copy: the system moves its pages. If
    somebody else has a reference to it, such as a view, there is a copy, and that reference stays valid.
    """
    kept = len(column)
    shape = (rows, *column.shape[1:])
    if sys.getrefcount(column) != _references_of_one_owner():
        return grown(column, shape, fill)
    column.resize(shape, refcheck=False)
    column[kept:] = fill
    return column


def widened(column: NDArray[Number], width: int, fill: int) -> NDArray[Number]:
    """Return the column with so many cells in a row, the new ones with ``fill``. The caller owns the only
    reference; as in ``lengthened``, the memory grows in place. The rows move within it, the last one first.
    """
    rows, old_width = column.shape
    if sys.getrefcount(column) != _references_of_one_owner():
        return grown(column, (rows, width), fill)
    column.resize((rows, width), refcheck=False)
    flat = column.reshape(-1)
    for end in range(rows, 0, -_ROWS_AT_ONCE):
        start = max(0, end - _ROWS_AT_ONCE)
        moving = flat[start * old_width : end * old_width].reshape(-1, old_width).copy()
        column[start:end, :old_width] = moving
        column[start:end, old_width:] = fill
    return column


def copied(column: NDArray[Number], rows: slice | Rows) -> NDArray[Number]:
    """Return a copy of rows."""
    return column[rows].copy() if isinstance(rows, slice) else column.take(rows, axis=0)


def trim(numbers: list[int]) -> list[int]:
    """Remove the filler at the end of a row, in place."""
    while numbers and numbers[-1] == PAD:
        numbers.pop()
    return numbers


def unpadded(numbers: list[int]) -> Ids:
    """Return a row without the filler at its end."""
    return tuple(trim(numbers))


def any_in_row(cells: Mask) -> Mask:
    """Return for each row whether any of its few cells is true. numpy's own ``any`` takes several times as
    long for short rows."""
    found: Mask = cells[:, 0].copy()
    for column in range(1, cells.shape[1]):
        found |= cells[:, column]
    return found


def count_members(lists: Int32s) -> Int32s:
    """Return the number of members of each list."""
    counts = np.zeros(len(lists), np.int32)
    for column in range(lists.shape[1]):
        counts += lists[:, column] != PAD
    return counts


def are_in(members: Int32s, lists: Int32s) -> Mask:
    """Return which members of the lists are in the other list of their row. PAD is if that isn't full."""
    found: Mask = members == lists[:, :1]
    for column in range(1, lists.shape[1]):
        found |= members == lists[:, column, None]
    return found
