"""Read and write record batches of format version 2 (KIP-98, DefaultRecordBatch).

    base offset i64 | length i32 | leader epoch i32 | magic i8 = 2 | crc u32 | attributes i16
    | last offset delta i32 | base timestamp i64 | max timestamp i64 | producer id i64
    | producer epoch i16 | base sequence i32 | count i32 | records

``length`` counts the bytes after itself. The checksum (CRC-32C) covers everything from the attributes on, but
not base offset, length and leader epoch. Batches of a metadata log are uncompressed and have no producer id;
all records of a batch have the batch's timestamp and consecutive offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct

import google_crc32c
import msgspec

from kraft_wire.log.errors import BatchTooLarge, CorruptBatch, CutOffBatch
from kraft_wire.log.record import (
    RECORD_OVERHEAD_BYTES,
    FramedRecords,
    Record,
    Span,
    encode_records,
    frame_values,
    record_spans,
)

__all__ = [
    "BEGINNING",
    "HEADER_SIZE_BYTES",
    "LENGTH_END",
    "MAGIC_POSITION",
    "MAX_BATCH_SIZE_BYTES",
    "MAX_READABLE_BATCH_SIZE_BYTES",
    "RECORD_OVERHEAD_BYTES",
    "Batch",
    "BatchHeader",
    "FramedRecords",
    "Record",
    "encode_batch",
    "encode_framed_batch",
    "encode_keyed_batch",
    "first_batch_size_bytes",
    "frame_values",
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
"""The largest batch that is written: Kafka's default (internal.metadata.max.batch.size.in.bytes)."""

MAX_READABLE_BATCH_SIZE_BYTES = 2 * MAX_BATCH_SIZE_BYTES
"""A batch that claims to be larger is damaged. The limit is twice that for writing, because in Kafka the
limit is a setting. It also leaves the first byte of the length zero, which the search for batches relies on.
"""

BEGINNING = Struct(">qi")
"""Base offset and length: enough to find the end of a batch."""

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
    """The header of a batch. ``size_bytes`` is the size of the whole batch, with its header."""

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
    """A whole batch: its header, and all its bytes, header included."""

    header: BatchHeader
    data: bytes


def read_header(data: bytes | memoryview, position: int) -> BatchHeader | None:
    """Return the header of the batch at ``position``; None if ``data`` ends before the batch does.

    Raises CorruptBatch if a metadata log can't have such a batch. The checksum isn't checked.
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
    """Check the first bytes of a batch that ends too early, or that is no batch."""
    if available < LENGTH_END:
        return
    base_offset, length = BEGINNING.unpack_from(data, position)
    if length < HEADER_SIZE_BYTES - LENGTH_END:
        raise CorruptBatch(position, base_offset, f"length {length} is too small for a batch's header")
    if available > MAGIC_POSITION and data[position + MAGIC_POSITION] != MAGIC:
        version = data[position + MAGIC_POSITION]
        raise CorruptBatch(position, base_offset, f"format version {version} instead of {MAGIC}")


def check_batch(data: bytes | memoryview, position: int, header: BatchHeader) -> None:
    """Check the batch's checksum. Raises CorruptBatch, also for a compressed batch."""
    crc = google_crc32c.value(bytes(data[position + _CRC_START : position + header.size_bytes]))
    if crc != header.crc:
        reason = f"checksum {crc:08x} instead of {header.crc:08x} in its header"
        raise CorruptBatch(position, header.base_offset, reason)
    codec = header.attributes & _COMPRESSION
    if codec:
        name = _CODECS.get(codec, f"codec {codec}")
        raise CorruptBatch(
            position, header.base_offset, f"compressed with {name}; batches of a metadata log never are"
        )


def is_intact(data: bytes) -> bool:
    """Whether the bytes are one batch as it was written, by length, version and checksum alone.

    A metadata log may still not contain such a batch.
    """
    if len(data) < HEADER_SIZE_BYTES:
        return False
    _, length, _, magic, crc = _UNCHECKED.unpack_from(data)
    if LENGTH_END + length != len(data) or magic != MAGIC:
        return False
    return bool(google_crc32c.value(data[_CRC_START:]) == crc)


def scan_batches(data: bytes | memoryview, check_crc: bool = True) -> Iterator[tuple[int, BatchHeader]]:
    """Yield the whole batches in ``data`` as (position, header), up to its end or to an incomplete batch.

    Raises CorruptBatch at the first bytes that are no batch.
    """
    position = 0
    while (header := read_header(data, position)) is not None:
        if check_crc:
            check_batch(data, position, header)
        yield position, header
        position += header.size_bytes


def first_batch_size_bytes(data: bytes, position: int, available: int) -> int:
    """Return the size of a batch by its length field, where ``data`` holds only the beginning of the batch.

    ``position`` is the batch's position in its file, for errors; ``available`` is the number of bytes that
    the file has from there on. Raises CutOffBatch if the batch needs more, CorruptBatch for an impossible
    length.
    """
    if available < LENGTH_END:
        raise CutOffBatch(position, -1, f"cut off: {available} bytes are left")
    base_offset, length = BEGINNING.unpack_from(data)
    size_bytes: int = LENGTH_END + length
    if size_bytes > available:
        reason = f"cut off: {available} bytes are left of a batch of {size_bytes}"
        raise CutOffBatch(position, base_offset, reason)
    if size_bytes > MAX_READABLE_BATCH_SIZE_BYTES:
        reason = f"length {length} is more than a batch of a metadata log has"
        raise CorruptBatch(position, base_offset, reason)
    return size_bytes


def split_batches(data: bytes | memoryview, check_crc: bool = True) -> tuple[list[Batch], int]:
    """Return the whole batches at the beginning of ``data``, and the number of bytes they take.

    An incomplete batch at the end, as in a Fetch response or in a file that is read in pieces, is ignored.
    Raises CorruptBatch with the position in ``data``.
    """
    batches: list[Batch] = []
    end = 0
    for position, header in scan_batches(data, check_crc):
        end = position + header.size_bytes
        batches.append(Batch(header, bytes(data[position:end])))
    return batches, end


def iter_records(batch: Batch) -> Iterator[Record]:
    """Yield the batch's records with their offsets. Raises CorruptBatch; its position is counted in the
    batch."""
    header, data = batch.header, batch.data
    timestamp = header.base_timestamp
    offset = header.base_offset
    for key_start, key_end, value_start, value_end in _spans(batch):
        key = data[key_start:key_end] if key_start >= 0 else None
        yield Record(offset, timestamp, key, data[value_start:value_end])
        offset += 1


def record_values(batch: Batch) -> list[bytes]:
    """Return the values of the batch's records, in order. Raises CorruptBatch."""
    data = batch.data
    return [data[start:end] for _, _, start, end in _spans(batch)]


def _spans(batch: Batch) -> list[Span]:
    header = batch.header
    if header.attributes & _COMPRESSION:
        check_batch(batch.data, 0, header)
    return record_spans(batch.data, HEADER_SIZE_BYTES, header.base_offset, header.record_count)


def encode_batch(base_offset: int, leader_epoch: int, timestamp_ms: int, values: Sequence[bytes]) -> bytes:
    """Return a data batch with one record for each value. Raises BatchTooLarge above 8 MiB."""
    return encode_framed_batch(base_offset, leader_epoch, timestamp_ms, frame_values(values))


def encode_framed_batch(
    base_offset: int, leader_epoch: int, timestamp_ms: int, records: FramedRecords
) -> bytes:
    """Return a data batch of records that are framed already. Raises BatchTooLarge above 8 MiB."""
    return _assemble(base_offset, leader_epoch, timestamp_ms, 0, records.count, records.pieces)


def encode_keyed_batch(
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    records: Sequence[tuple[bytes, bytes]],
    attributes: int,
) -> bytes:
    """Return a batch of (key, value) records. Only control batches have keys."""
    keys = [key for key, _ in records]
    pieces = encode_records([value for _, value in records], keys)
    return _assemble(base_offset, leader_epoch, timestamp_ms, attributes, len(records), pieces)


def _assemble(
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    attributes: int,
    count: int,
    pieces: Sequence[bytes],
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
