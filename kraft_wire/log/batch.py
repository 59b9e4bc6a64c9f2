"""Record batches of format version 2 (KIP-98, DefaultRecordBatch): taking them apart, putting them together.

    base offset i64 | length i32 | leader epoch i32 | magic i8 = 2 | crc u32 | attributes i16
    | last offset delta i32 | base timestamp i64 | max timestamp i64 | producer id i64
    | producer epoch i16 | base sequence i32 | count i32 | records

``length`` counts from behind itself. The checksum (CRC-32C) covers everything from the attributes on; base
offset, length and leader epoch lie outside it. A metadata log holds uncompressed batches without producer
ids; in each of them all records have the batch's timestamp and consecutive offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct

import google_crc32c
import msgspec

from kraft_wire.log.errors import BatchTooLarge, CorruptBatch
from kraft_wire.log.record import RECORD_OVERHEAD_BYTES, Record, Span, encode_records, record_spans

__all__ = [
    "BEGINNING",
    "HEADER_SIZE_BYTES",
    "LENGTH_END",
    "MAGIC_POSITION",
    "MAX_BATCH_SIZE_BYTES",
    "RECORD_OVERHEAD_BYTES",
    "Batch",
    "BatchHeader",
    "Record",
    "encode_batch",
    "encode_keyed_batch",
    "is_intact",
    "iter_records",
    "read_header",
    "record_values",
    "scan_batches",
    "split_batches",
]

MAGIC = 2
CONTROL = 0x20
MAX_BATCH_SIZE_BYTES = 8 * 1024 * 1024
"""Kafka's limit for a batch of a metadata log or snapshot."""

BEGINNING = Struct(">qi")
"""Base offset and length: what it takes to know where a batch ends."""

LENGTH_END = BEGINNING.size
MAGIC_POSITION = 16

HEADER_SIZE_BYTES = 61

_HEADER = Struct(">qiibIhiqqqhii")
_UNCHECKED = Struct(">qiibI")
_CHECKED = Struct(">hiqqqhii")
_CRC_START = 21
_COMPRESSION = 0x07
_CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_NO_PRODUCER_ID = -1


class BatchHeader(msgspec.Struct, frozen=True, gc=False):
    """What stands before a batch's records. ``size_bytes`` is the whole batch's, this header included."""

    base_offset: int
    size_bytes: int
    leader_epoch: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)


class Batch(msgspec.Struct, frozen=True, gc=False):
    """One whole batch: its header, and its bytes, header included."""

    header: BatchHeader
    data: bytes


def read_header(data: bytes | memoryview, position: int) -> BatchHeader | None:
    """The header of the batch at ``position``; None where ``data`` ends before the batch does.

    Raises CorruptBatch where no batch of a metadata log can look like this. The checksum is not looked at.
    """
    available = len(data) - position
    if available < HEADER_SIZE_BYTES:
        _check_beginning(data, position, available)
        return None
    (
        base_offset,
        length,
        epoch,
        magic,
        crc,
        attributes,
        last_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = _HEADER.unpack_from(data, position)
    if length < HEADER_SIZE_BYTES - LENGTH_END or magic != MAGIC:
        _check_beginning(data, position, available)
    size_bytes = LENGTH_END + length
    if available < size_bytes:
        return None
    if count != last_delta + 1 or last_delta < 0:
        reason = f"{count} records cannot end at offset delta {last_delta}"
        raise CorruptBatch(position, base_offset, reason)
    return BatchHeader(
        base_offset,
        size_bytes,
        epoch,
        crc,
        attributes,
        last_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )


def _check_beginning(data: bytes | memoryview, position: int, available: int) -> None:
    """Judge the first bytes of a batch that is cut off early or is none."""
    if available < LENGTH_END:
        return
    base_offset, length = BEGINNING.unpack_from(data, position)
    if length < HEADER_SIZE_BYTES - LENGTH_END:
        raise CorruptBatch(position, base_offset, f"length {length} is less than a batch's header takes")
    if available > MAGIC_POSITION and data[position + MAGIC_POSITION] != MAGIC:
        version = data[position + MAGIC_POSITION]
        raise CorruptBatch(position, base_offset, f"format version {version} instead of {MAGIC}")


def check_batch(data: bytes | memoryview, position: int, header: BatchHeader) -> None:
    """Compare the batch's checksum with its bytes. Raises CorruptBatch, for a compressed batch as well."""
    crc = google_crc32c.value(bytes(data[position + _CRC_START : position + header.size_bytes]))
    if crc != header.crc:
        reason = f"checksum {crc:08x} where its header says {header.crc:08x}"
        raise CorruptBatch(position, header.base_offset, reason)
    codec = header.attributes & _COMPRESSION
    if codec:
        name = _CODECS.get(codec, f"codec {codec}")
        raise CorruptBatch(
            position, header.base_offset, f"compressed with {name}; batches of a metadata log never are"
        )


def is_intact(data: bytes) -> bool:
    """Whether the bytes are one batch as somebody wrote it, by length, version and checksum alone.

    Such a batch may still be one that a metadata log must not contain.
    """
    if len(data) < HEADER_SIZE_BYTES:
        return False
    _, length, _, magic, crc = _UNCHECKED.unpack_from(data)
    if LENGTH_END + length != len(data) or magic != MAGIC:
        return False
    return bool(google_crc32c.value(data[_CRC_START:]) == crc)


def scan_batches(data: bytes | memoryview, check_crc: bool = True) -> Iterator[tuple[int, BatchHeader]]:
    """The whole batches in ``data``, as (position, header), up to where it ends or an incomplete batch
    begins.

    Raises CorruptBatch at the first batch that is none.
    """
    position = 0
    while (header := read_header(data, position)) is not None:
        if check_crc:
            check_batch(data, position, header)
        yield position, header
        position += header.size_bytes


def split_batches(data: bytes | memoryview, check_crc: bool = True) -> tuple[list[Batch], int]:
    """The whole batches at the beginning of ``data``, and how many bytes they take.

    An incomplete batch at the end is left alone, as a Fetch response or a file read in pieces has it. Raises
    CorruptBatch with the position in ``data``.
    """
    batches: list[Batch] = []
    end = 0
    for position, header in scan_batches(data, check_crc):
        end = position + header.size_bytes
        batches.append(Batch(header, bytes(data[position:end])))
    return batches, end


def iter_records(batch: Batch) -> Iterator[Record]:
    """The batch's records, with their offsets. Raises CorruptBatch, its position counted in the batch."""
    header, data = batch.header, batch.data
    timestamp = header.base_timestamp
    offset = header.base_offset
    for key_start, key_end, value_start, value_end in _spans(batch):
        key = data[key_start:key_end] if key_start >= 0 else None
        yield Record(offset, timestamp, key, data[value_start:value_end])
        offset += 1


def record_values(batch: Batch) -> list[bytes]:
    """The values of the batch's records, in order. Raises CorruptBatch."""
    data = batch.data
    return [data[start:end] for _, _, start, end in _spans(batch)]


def _spans(batch: Batch) -> list[Span]:
    header = batch.header
    if header.attributes & _COMPRESSION:
        check_batch(batch.data, 0, header)
    return record_spans(batch.data, HEADER_SIZE_BYTES, header.base_offset, header.record_count)


def encode_batch(base_offset: int, leader_epoch: int, timestamp_ms: int, values: Sequence[bytes]) -> bytes:
    """One data batch with a record a value. Raises BatchTooLarge above 8 MiB."""
    return _assemble(base_offset, leader_epoch, timestamp_ms, 0, len(values), encode_records(values))


def encode_keyed_batch(
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    records: Sequence[tuple[bytes, bytes]],
    attributes: int,
) -> bytes:
    """One batch of (key, value) records: control batches are the only ones with keys."""
    keys = [key for key, _ in records]
    pieces = encode_records([value for _, value in records], keys)
    return _assemble(base_offset, leader_epoch, timestamp_ms, attributes, len(records), pieces)


def _assemble(
    base_offset: int, leader_epoch: int, timestamp_ms: int, attributes: int, count: int, pieces: list[bytes]
) -> bytes:
    if not count:
        raise ValueError("a batch holds at least one record")
    checked = _CHECKED.pack(attributes, count - 1, timestamp_ms, timestamp_ms, _NO_PRODUCER_ID, -1, -1, count)
    body = b"".join((checked, *pieces))
    size_bytes = _CRC_START + len(body)
    if size_bytes > MAX_BATCH_SIZE_BYTES:
        raise BatchTooLarge(size_bytes, MAX_BATCH_SIZE_BYTES)
    crc = google_crc32c.value(body)
    return _UNCHECKED.pack(base_offset, size_bytes - LENGTH_END, leader_epoch, MAGIC, crc) + body
