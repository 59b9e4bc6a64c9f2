"""Record batches: compared with the declared layouts, with every kind of damage, encoded and decoded."""

from __future__ import annotations

import gzip

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.log.batch import (
    HEADER_SIZE_BYTES,
    MAX_BATCH_SIZE_BYTES,
    RECORD_OVERHEAD_BYTES,
    Batch,
    encode_batch,
    encode_keyed_batch,
    is_intact,
    iter_records,
    read_header,
    record_values,
    split_batches,
)
from kraft_wire.log.errors import BatchTooLarge, CorruptBatch
from tests.log.batch_samples import data_batch, leader_change, read_with_construct

offsets = st.integers(0, 2**62)
values = st.lists(st.binary(max_size=200), min_size=1, max_size=80)
CRC = slice(17, 21)


def only_batch(data: bytes) -> Batch:
    [batch], consumed = split_batches(data)
    assert consumed == len(data)
    return batch


def with_right_crc(data: bytes) -> bytes:
    return data[:17] + int(google_crc32c.value(data[21:])).to_bytes(4, "big") + data[21:]


def rebuilt(records: bytes, count: int = 1) -> Batch:
    """Return a batch with a valid checksum, given the bytes of its records."""
    head = bytearray(encode_batch(40, 3, 1000, [b""] * count)[:HEADER_SIZE_BYTES])
    head[8:12] = (len(head) - 12 + len(records)).to_bytes(4, "big")
    return only_batch(with_right_crc(bytes(head) + records))


@given(offsets, st.integers(0, 2**31 - 1), st.integers(-1, 2**62), values)
def test_a_batch_is_read_as_it_was_written(offset: int, epoch: int, time: int, contents: list[bytes]) -> None:
    batch = only_batch(encode_batch(offset, epoch, time, contents))
    header = batch.header
    assert (header.base_offset, header.leader_epoch, header.record_count) == (offset, epoch, len(contents))
    assert (header.last_offset, header.next_offset) == (offset + len(contents) - 1, offset + len(contents))
    assert (header.base_timestamp, header.max_timestamp) == (time, time)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert not header.is_control
    assert record_values(batch) == contents
    records = list(iter_records(batch))
    assert [record.offset for record in records] == [offset + n for n in range(len(contents))]
    assert {(record.timestamp, record.key) for record in records} == {(time, None)}


@given(offsets, values)
def test_the_declared_layouts_read_the_same(offset: int, contents: list[bytes]) -> None:
    data = encode_batch(offset, 7, 99, contents)
    [batch] = read_with_construct(data)
    header = batch.header
    assert (header.base_offset, header.leader_epoch, header.crc) == (
        offset,
        7,
        google_crc32c.value(data[21:]),
    )
    assert not (header.attributes.is_control or header.attributes.is_transactional)
    assert [record.value for record in batch.records] == contents
    assert [record.offset_delta for record in batch.records] == list(range(len(contents)))
    assert {(record.timestamp_delta, record.key_length, record.header_count) for record in batch.records} == {
        (0, -1, 0)
    }


@given(st.lists(st.tuples(st.binary(max_size=80), st.binary(max_size=80)), min_size=1, max_size=20))
def test_keys_are_read_as_they_were_written(pairs: list[tuple[bytes, bytes]]) -> None:
    batch = only_batch(encode_keyed_batch(5, 1, 1000, pairs, attributes=0x20))
    assert batch.header.is_control
    assert [(record.key, record.value) for record in iter_records(batch)] == pairs


@pytest.mark.parametrize("size", [62, 63, 64, 65, 8189, 8190, 8191, 8192, 8193, 100_000, 2_000_000])
def test_lengths_around_the_steps_of_a_varint(size: int) -> None:
    contents = [bytes([n]) * size for n in range(2)]
    assert record_values(only_batch(encode_batch(0, 0, 0, contents))) == contents


def test_more_records_than_the_tables_of_the_fast_path_hold() -> None:
    contents = [b"%d" % n for n in range(20_000)]
    batch = only_batch(encode_batch(0, 0, 0, contents))
    assert record_values(batch) == contents
    assert [record.value for record in read_with_construct(batch.data)[0].records] == contents


def test_batches_are_split_up_to_an_incomplete_one() -> None:
    batches = [leader_change(10, 2), data_batch(11, 2, 3), data_batch(14, 2)]
    whole = b"".join(batches)
    for length in range(len(whole) + 1):
        found, consumed = split_batches(whole[:length])
        expected = [data for n, data in enumerate(batches) if sum(map(len, batches[: n + 1])) <= length]
        assert [batch.data for batch in found] == expected
        assert consumed == sum(map(len, expected))


def test_a_memoryview_is_split_as_bytes_are() -> None:
    data = data_batch(0, 0) + data_batch(1, 0)
    assert split_batches(memoryview(data)) == split_batches(data)


def test_every_flipped_bit_below_the_checksum_is_found() -> None:
    data = data_batch(5, 1, 2)
    for position in range(16, len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            assert not is_intact(bytes(flipped))
            with pytest.raises(CorruptBatch) as caught:
                split_batches(bytes(flipped))
            assert (caught.value.position, caught.value.offset) == (0, 5)


def test_a_flipped_bit_in_the_length_is_found_or_looks_cut_off() -> None:
    data = data_batch(5, 1, 2) + data_batch(7, 1)
    for position in range(8, 12):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            try:
                assert split_batches(bytes(flipped)) == ([], 0)
            except CorruptBatch as error:
                assert error.position == 0


def test_the_position_of_a_corrupt_batch_is_counted_in_the_buffer() -> None:
    first, second = data_batch(0, 1), bytearray(data_batch(1, 1))
    second[-2] ^= 1
    with pytest.raises(CorruptBatch) as caught:
        split_batches(first + second)
    assert (caught.value.position, caught.value.offset) == (len(first), 1)
    assert "checksum" in str(caught.value)


def test_the_checksum_can_be_left_alone() -> None:
    data = bytearray(data_batch(0, 1))
    data[-2] ^= 1
    assert len(split_batches(bytes(data), check_crc=False)[0]) == 1


@pytest.mark.parametrize("length", [-1, 0, 48])
def test_a_length_that_no_batch_has(length: int) -> None:
    data = bytearray(data_batch(9, 1))
    data[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatch, match=f"length {length} "):
        split_batches(bytes(data[:20]))
    with pytest.raises(CorruptBatch, match=f"length {length} "):
        split_batches(bytes(data))


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_another_format_version(magic: int) -> None:
    data = bytearray(data_batch(9, 1))
    data[16] = magic
    with pytest.raises(CorruptBatch, match=f"format version {magic} "):
        split_batches(bytes(data[:17]))
    with pytest.raises(CorruptBatch, match=f"format version {magic} "):
        split_batches(bytes(data))


@pytest.mark.parametrize(
    ("codec", "name"), [(1, "gzip"), (2, "snappy"), (3, "lz4"), (4, "zstd"), (7, "codec 7")]
)
def test_compression_is_refused_by_name(codec: int, name: str) -> None:
    body = gzip.compress(b"records")
    data = bytearray(encode_batch(9, 1, 1000, [b"x"])[:HEADER_SIZE_BYTES]) + body
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[22] |= codec
    compressed = with_right_crc(bytes(data))
    assert is_intact(compressed)
    with pytest.raises(CorruptBatch, match=f"compressed with {name}"):
        split_batches(compressed)
    header = read_header(compressed, 0)
    assert header is not None
    with pytest.raises(CorruptBatch, match=f"compressed with {name}"):
        record_values(Batch(header, compressed))


@pytest.mark.parametrize(("count", "last_delta"), [(2, 0), (0, 0), (0, -1), (1, 1), (-1, -2)])
def test_a_count_that_does_not_go_with_the_offsets(count: int, last_delta: int) -> None:
    data = bytearray(data_batch(9, 1))
    data[23:27] = last_delta.to_bytes(4, "big", signed=True)
    data[57:61] = count.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatch, match=f"{count} records"):
        split_batches(with_right_crc(bytes(data)))


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        (b"\x0e\x00\x02\x00\x01\x02v\x00", "timestamp"),
        (b"\x0e\x00\x00\x02\x01\x02v\x00", "offset delta 1 instead of 0"),
        (b"\x0e\x01\x00\x00\x01\x02v\x00", "attributes"),
        (b"\x0e\x00\x00\x00\x01\x02v\x02", "headers"),
        (b"\x10\x00\x00\x00\x01\x02v\x00\x00", "but by its length"),
        (b"\x0c\x00\x00\x00\x01\x02v\x00", "but by its length"),
        (b"\x0f\x00\x00\x00\x01\x02v\x00", "inner length of -8"),
        (b"\x0e\x00\x00\x00\x01\x01v\x00", "inner length of -1"),
        (b"\x0e\x00\x00\x00\x03\x02v\x00", "inner length of -2"),
        (b"\x0e\x00\x00\x00\x01\x7ev\x00", "beyond the end"),
        (b"\x80\x80\x80\x80\x80\x80\x00", "no end"),
        (b"\x0e\x00\x00\x00\x01\x02v\x00\x00", "1 bytes follow"),
        (b"\x0e\x00", "beyond the end"),
        (b"", "beyond the end"),
    ],
)
def test_records_that_java_would_refuse(records: bytes, problem: str) -> None:
    batch = rebuilt(records)
    for read in (record_values, lambda corrupt: list(iter_records(corrupt))):
        with pytest.raises(CorruptBatch, match=problem) as caught:
            read(batch)
        assert caught.value.offset in (40, 41)


def test_lengths_longer_than_needed_are_read_as_java_does() -> None:
    batch = rebuilt(b"\x90\x80\x00\x00\x00\x00\x01\x82\x00v\x00")
    assert record_values(batch) == [b"v"]


@given(st.binary(max_size=60), st.integers(1, 4))
def test_whatever_lies_in_a_batch_is_read_or_refused(noise: bytes, count: int) -> None:
    batch = rebuilt(noise, count)
    try:
        contents = record_values(batch)
    except CorruptBatch:
        return
    assert len(contents) == count == len(list(iter_records(batch)))


@given(st.binary(max_size=200))
def test_whatever_comes_is_split_or_refused(noise: bytes) -> None:
    try:
        batches, consumed = split_batches(noise)
    except CorruptBatch as error:
        assert 0 <= error.position <= len(noise)
    else:
        assert b"".join(batch.data for batch in batches) == noise[:consumed]


def test_a_batch_above_the_limit_is_refused() -> None:
    value = bytes(MAX_BATCH_SIZE_BYTES // 4)
    with pytest.raises(BatchTooLarge) as caught:
        encode_batch(0, 0, 0, [value] * 4)
    assert caught.value.limit_bytes == MAX_BATCH_SIZE_BYTES
    assert caught.value.size_bytes > MAX_BATCH_SIZE_BYTES
    assert str(MAX_BATCH_SIZE_BYTES) in str(caught.value)


@given(values)
def test_the_estimated_overhead_is_enough(contents: list[bytes]) -> None:
    estimate = HEADER_SIZE_BYTES + sum(len(value) + RECORD_OVERHEAD_BYTES for value in contents)
    assert len(encode_batch(0, 0, 0, contents)) <= estimate


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        encode_batch(0, 0, 0, [])
