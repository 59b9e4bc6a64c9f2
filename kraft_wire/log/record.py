"""Encode and find the records inside a batch.

    length varint | attributes i8 = 0 | timestamp delta varlong = 0 | offset delta varint
    | key length varint (-1: no key) | key | value length varint | value | header count varint = 0

Varints are zig-zag encoded. Records of a metadata log have no headers, and the timestamp of their batch. Like
Java's controllers (RecordsIterator), this module rejects other records.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from kraft_wire.log.errors import CorruptBatch
from kraft_wire.protocol.varint import read_varint, varint

Span = tuple[int, int, int, int]
"""Key start, key end, value start, value end. Both positions of the key are -1 for a record without a key."""

RECORD_OVERHEAD_BYTES = 16
"""The most bytes that a data record adds to its value: length 4, attributes 1, timestamp delta 1, offset
delta 4, no key 1, value length 4, header count 1."""

_NO_KEY = b"\x01"
_TABLE_SIZE = 2048
_VARINTS = [varint(number) for number in range(_TABLE_SIZE)]
_KEYLESS_HEADS = [b"\x00\x00" + delta + _NO_KEY for delta in _VARINTS]
"""The bytes between a data record's length and its value's length, by offset delta."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record. ``key`` is None in data batches. ``timestamp`` is in milliseconds since the Unix epoch."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes


class FramedRecords(msgspec.Struct, frozen=True, gc=False):
    """The bytes of a batch's records, in pieces, and the number of records. Their offset deltas count from
    0."""

    pieces: Sequence[bytes]
    count: int

    @property
    def size_bytes(self) -> int:
        """The size of all records."""
        return sum(map(len, self.pieces))


def frame_values(values: Sequence[bytes]) -> FramedRecords:
    """Return data records with these values."""
    return FramedRecords(encode_records(values), len(values))


def encode_records(
    values: Sequence[bytes], keys: Sequence[bytes] | None = None, *, first_delta: int = 0
) -> list[bytes]:
    """Return the bytes, in pieces, of records whose offset deltas count from ``first_delta``. Only control
    records have keys."""
    pieces: list[bytes] = []
    for position, value in enumerate(values):
        delta = first_delta + position
        if keys is not None:
            head = b"\x00\x00" + _varint(delta) + _varint(len(keys[position])) + keys[position]
        else:
            head = _keyless_head(delta)
        head += _varint(len(value))
        pieces += (_varint(len(head) + len(value) + 1), head, value, b"\x00")
    return pieces


def _varint(number: int) -> bytes:
    return _VARINTS[number] if number < _TABLE_SIZE else varint(number)


def _keyless_head(delta: int) -> bytes:
    return _KEYLESS_HEADS[delta] if delta < _TABLE_SIZE else b"\x00\x00" + varint(delta) + _NO_KEY


def record_spans(data: bytes, position: int, base_offset: int, count: int) -> list[Span]:
    """Find keys and values of ``count`` records that begin at ``position`` and must end where ``data`` does.

    Raises CorruptBatch; its position is counted in ``data``.
    """
    spans: list[Span] = []
    with suppress(IndexError):
        _usual_spans(data, position, count, spans)
    if spans:
        position = spans[-1][3] + 1
    for delta in range(len(spans), count):
        try:
            span, position = _record_span(data, position, delta)
        except IndexError:
            raise _corrupt(position, base_offset + delta, "extends beyond the end of its batch") from None
        except ValueError as error:
            raise _corrupt(position, base_offset + delta, str(error)) from None
        spans.append(span)
    if position != len(data):
        raise CorruptBatch(
            position, base_offset + count, f"{len(data) - position} bytes follow the last record"
        )
    return spans


def _usual_spans(data: bytes, position: int, count: int, spans: list[Span]) -> None:
    """Find records of the usual form, without keys and with lengths below 8,192; stop at the first other one.

    Replay spends its time in this loop. ``_record_span`` reads the records that it doesn't recognise.
    """
    has_head = data.startswith
    for head in _KEYLESS_HEADS[:count]:
        length = data[position]
        position += 1
        if length > 0x7F:
            high = data[position]
            position += 1
            if high > 0x7F:
                return
            length += (high << 7) - 0x80
        end = position + (length >> 1)
        if length & 1 or not has_head(head, position):
            return
        position += len(head)
        length = data[position]
        position += 1
        if length > 0x7F:
            high = data[position]
            position += 1
            if high > 0x7F:
                return
            length += (high << 7) - 0x80
        value_end = position + (length >> 1)
        if length & 1 or value_end + 1 != end or data[value_end]:
            return
        spans.append((-1, -1, position, value_end))
        position = end


def _record_span(data: bytes, position: int, delta: int) -> tuple[Span, int]:
    """Return one record's span and its end. Raises ValueError, or IndexError if ``data`` is too short."""
    byte = data[position]
    if not byte & 0x81:
        length = byte >> 1
        position += 1
    else:
        length, position = _read_length(data, position)
    end = position + length
    head = _keyless_head(delta)
    if data.startswith(head, position):
        key_start = key_end = -1
        position += len(head)
    else:
        key_start, key_end = _unusual_head(data, position, delta)
        position = key_end
    byte = data[position]
    if not byte & 0x81:
        length = byte >> 1
        position += 1
    else:
        length, position = _read_length(data, position)
    value_end = position + length
    if data[value_end]:
        raise ValueError("has headers, or is longer than its value says")
    if value_end + 1 != end:
        raise ValueError(f"ends at byte {value_end + 1}, but by its length at {end}")
    return (key_start, key_end, position, value_end), end


def _unusual_head(data: bytes, position: int, delta: int) -> tuple[int, int]:
    """Return where the key of a record lies that has one, or that is malformed."""
    if data[position + 1]:
        raise ValueError("has a timestamp of its own")
    offset_delta, position = read_varint(data, position + 2)
    if offset_delta != delta:
        raise ValueError(f"has offset delta {offset_delta} instead of {delta}")
    if data[position] == _NO_KEY[0]:
        raise ValueError("has attributes")
    key_length, position = _read_length(data, position)
    return position, position + key_length


def _read_length(data: bytes, position: int) -> tuple[int, int]:
    low, high = data[position], data[position + 1]
    if low & 0x81 == 0x80 and high < 0x80:
        return (high << 7 | low & 0x7F) >> 1, position + 2
    length, position = read_varint(data, position)
    if length < 0:
        raise ValueError(f"has an inner length of {length}")
    return length, position


def _corrupt(position: int, offset: int, what: str) -> CorruptBatch:
    return CorruptBatch(position, offset, f"the record {what}")
