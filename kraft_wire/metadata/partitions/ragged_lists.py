"""Lists of numbers as records hold them, one after the other, and their form in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kraft_wire.columnar.fields import Ragged
from kraft_wire.metadata.partitions.cells import PAD

if TYPE_CHECKING:
    from kraft_wire.columnar.gather import Positions
    from kraft_wire.metadata.partitions.cells import Int32s, Mask


def given(ragged: Ragged) -> Mask:
    """Return which lists aren't null."""
    return np.ones(len(ragged.offsets) - 1, np.bool_) if ragged.valid is None else ragged.valid


def lengths(ragged: Ragged) -> Positions:
    """Return the numbers of members."""
    return np.diff(ragged.offsets)


def longest(ragged: Ragged) -> int:
    """Return the highest number of members."""
    return int(lengths(ragged).max(initial=0))


def filled(counts: Positions, width: int) -> Mask:
    """Return a mask of the cells that lists of these lengths take."""
    cells: Mask = np.arange(width) < counts[:, None]
    return cells


def padded(ragged: Ragged, width: int) -> Int32s:
    """Return the lists in the rows of a matrix."""
    counts = lengths(ragged)
    if (counts == width).all():
        return ragged.values.reshape(len(counts), width)
    padded: Int32s = np.full((len(counts), width), PAD, np.int32)
    padded[filled(counts, width)] = ragged.values
    return padded
