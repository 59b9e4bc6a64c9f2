"""Read and write variable-length integers: seven bits a byte, least significant first, the high bit for "more
follows".

Reading follows Kafka's ByteUtils: at most five bytes (ten for 64 bits), and more bytes than necessary are
accepted. Positions are indexes into the buffer. IndexError means that the buffer ended inside the integer.
"""

from __future__ import annotations

import struct
from typing import Final

Buffer = bytes | bytearray | memoryview

_UINT32: Final = 0xFFFFFFFF
_UINT64: Final = 0xFFFFFFFFFFFFFFFF


class VarintTooLong(ValueError):
    """An integer that has more bytes than allowed."""


def read_uvarint(data: Buffer, pos: int) -> tuple[int, int]:
    """Return an unsigned varint's value and the position after it.

    Bits above the 32nd are dropped, so the value is below 2**32; Java sees the same bits as a signed integer.
    """
    byte = data[pos]
    if byte < 0x80:
        return byte, pos + 1
    return _read_tail(data, pos + 1, byte & 0x7F, 28, _UINT32)


def read_varint(data: Buffer, pos: int) -> tuple[int, int]:
    """Return the signed 32-bit value of a zigzag varint and the position after it."""
    raw, pos = read_uvarint(data, pos)
    return (raw >> 1) ^ -(raw & 1), pos


def read_varlong(data: Buffer, pos: int) -> tuple[int, int]:
    """Return the signed 64-bit value of a zigzag varlong and the position after it."""
    byte = data[pos]
    pos += 1
    if byte >= 0x80:
        byte, pos = _read_tail(data, pos, byte & 0x7F, 63, _UINT64)
    return (byte >> 1) ^ -(byte & 1), pos


def _read_tail(data: Buffer, pos: int, value: int, last_shift: int, mask: int) -> tuple[int, int]:
    for shift in range(7, last_shift + 1, 7):
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & mask, pos
    raise VarintTooLong(f"no end within {last_shift // 7 + 1} bytes")


_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(0x80))
_TWO_BYTES: Final = struct.Struct(">BB").pack
_THREE_BYTES: Final = struct.Struct(">BBB").pack


def uvarint(value: int) -> bytes:
    """Return the bytes of an unsigned varint; ``value`` is within 0 to 2**32 - 1."""
    if 0 <= value < 0x80:
        return _ONE_BYTE[value]
    if 0x80 <= value < 0x4000:
        return _TWO_BYTES(value & 0x7F | 0x80, value >> 7)
    if 0x4000 <= value < 0x200000:
        return _THREE_BYTES(value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14)
    if not 0 <= value <= _UINT32:
        raise ValueError(f"{value} is not an unsigned 32-bit integer")
    return _write(value)


def varint(value: int) -> bytes:
    """Return the bytes of a zigzag varint; ``value`` is a signed 32-bit integer."""
    if not -(2**31) <= value < 2**31:
        raise ValueError(f"{value} is not a signed 32-bit integer")
    return _write((value << 1) ^ (value >> 31))


def varlong(value: int) -> bytes:
    """Return the bytes of a zigzag varlong; ``value`` is a signed 64-bit integer."""
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} is not a signed 64-bit integer")
    return _write((value << 1) ^ (value >> 63))


def _write(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
