"""The metadata records of a chunk, type by type (the frame: ``kraft_wire.protocol.metadata_record``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kraft_wire.columnar.gather import Chunk, Malformed
from kraft_wire.protocol.metadata_record import FRAME_VERSION

if TYPE_CHECKING:
    from kraft_wire.columnar.gather import Positions

_MOST: Final = 0x7F
"""Types and versions are small: their varints take one byte. Others are for the generated decoder."""


class Kind(msgspec.Struct, frozen=True):
    """Records of one type and version: their numbers among the chunk's records, and where their bodies
    lie."""

    api_key: int
    version: int
    rows: Positions
    starts: Positions
    ends: Positions


def kinds(chunk: Chunk, starts: Positions, ends: Positions) -> list[Kind]:
    """The records with these values by type and version, in ascending order. Raises Malformed."""
    if ((ends - starts) < 3).any():
        raise Malformed("a metadata record without its frame")
    frames = chunk.bytes[starts], chunk.bytes[starts + 1], chunk.bytes[starts + 2]
    if (frames[0] != FRAME_VERSION).any() or (frames[1] > _MOST).any() or (frames[2] > _MOST).any():
        raise Malformed("a metadata record whose frame is unusual")
    both = frames[1].astype(np.int64) << 8 | frames[2]
    found = np.flatnonzero(np.bincount(both)).tolist()
    if len(found) == 1:
        return [_kind(found[0], np.arange(len(both)), starts, ends)]
    return [
        _kind(number, rows := np.flatnonzero(both == number), starts[rows], ends[rows]) for number in found
    ]


def _kind(number: int, rows: Positions, starts: Positions, ends: Positions) -> Kind:
    return Kind(number >> 8, number & 0xFF, rows, starts + 3, ends)
