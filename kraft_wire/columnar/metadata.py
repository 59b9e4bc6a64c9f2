"""Group the metadata records of a chunk by type (for the frame see
``kraft_wire.protocol.metadata_record``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kraft_wire.columnar.gather import Chunk, Malformed
from kraft_wire.protocol.metadata_record import FRAME_VERSION

if TYPE_CHECKING:
    from kraft_wire.columnar.gather import Positions

_FRAME_BYTES: Final = 3
_MOST: Final = 0x7F
"""Types and versions are small, so that their varints take one byte. The generated decoder reads others."""


class Kind(msgspec.Struct, frozen=True):
    """The records of one type and version: their numbers among the chunk's records, and where their bodies
    lie."""

    api_key: int
    version: int
    rows: Positions
    starts: Positions
    ends: Positions


def kinds(chunk: Chunk, starts: Positions, ends: Positions) -> list[Kind]:
    """Group the records with these values by type and version, in ascending order. Raises Malformed."""
    bodies = starts + _FRAME_BYTES
    if (ends < bodies).any():
        raise Malformed("a metadata record without its frame")
    frame_versions, api_keys, versions = (chunk.bytes[index:][starts] for index in range(_FRAME_BYTES))
    if (frame_versions != FRAME_VERSION).any() or ((api_keys | versions) > _MOST).any():
        raise Malformed("a metadata record whose frame is unusual")
    both = api_keys.astype(np.uint16) << 8 | versions
    if (both == both[:1]).all():
        return [_kind(int(number), np.arange(len(both)), bodies, ends) for number in both[:1]]
    found = []
    for number in np.bincount(both).nonzero()[0].tolist():
        rows = (both == number).nonzero()[0]
        found.append(_kind(number, rows, bodies[rows], ends[rows]))
    return found


def _kind(number: int, rows: Positions, bodies: Positions, ends: Positions) -> Kind:
    return Kind(number >> 8, number & 0xFF, rows, bodies, ends)
