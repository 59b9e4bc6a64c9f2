"""Damage the bytes of a batch."""

from __future__ import annotations

import random
from typing import Final

_LENGTH: Final = slice(8, 12)
_LENGTH_END: Final = 12
FIRST_CHECKED_BYTE: Final = 16
"""The position of the format version. The checksum covers all bytes after itself, but not the epoch before
it."""


def size_of_batch(data: bytes) -> int:
    """Return the size of a batch by the length field in its first bytes."""
    return _LENGTH_END + int.from_bytes(data[_LENGTH], "big")


def flipped(data: bytes, chance: random.Random) -> bytes:
    """Return the bytes with one flipped bit in the first batch, in a place that its checksum covers."""
    size_bytes = size_of_batch(data)
    rotten = bytearray(data)
    rotten[chance.randrange(FIRST_CHECKED_BYTE, min(size_bytes, len(data)))] ^= 1 << chance.randrange(8)
    return bytes(rotten)
