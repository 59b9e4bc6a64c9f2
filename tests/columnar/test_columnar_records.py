"""The records of a chunk are those that the log's own decoder finds."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.columnar.gather import Chunk, Malformed
from kraft_wire.columnar.metadata import Kind, kinds
from kraft_wire.columnar.records import Records, find_records
from kraft_wire.log.batch import encode_batch, encode_keyed_batch, record_values, scan_batches, split_batches
from kraft_wire.log.errors import CorruptBatch

VALUES = st.lists(st.binary(max_size=200), min_size=1, max_size=40)


def records_of(log: bytes) -> Records:
    return find_records(Chunk(log), list(scan_batches(log, check_crc=False)))


def kinds_of(log: bytes) -> list[Kind]:
    records = records_of(log)
    return kinds(Chunk(log), records.value_starts, records.value_ends)


def values_of(log: bytes) -> list[bytes]:
    found = records_of(log)
    return [log[start:end] for start, end in zip(found.value_starts, found.value_ends, strict=True)]


def log_of(batches: list[list[bytes]]) -> bytes:
    data, offset = [], 7
    for values in batches:
        data.append(encode_batch(offset, 3, 1_000, values))
        offset += len(values)
    return b"".join(data)


@given(st.lists(VALUES, max_size=5))
def test_any_values_are_found(batches: list[list[bytes]]) -> None:
    log = log_of(batches)
    assert values_of(log) == [value for values in batches for value in values]
    found = records_of(log)
    assert found.counts.tolist() == [len(values) for values in batches]
    assert found.offset_deltas.tolist() == [delta for values in batches for delta in range(len(values))]


@pytest.mark.parametrize("sizes", [(5,), (5, 5, 5, 6), (59, 60, 61), (100,), (8185, 8186, 8187), (70_000, 3)])
@pytest.mark.parametrize("count", [1, 2, 5, 6, 7, 63, 64, 65, 2_000])
def test_runs_of_records_of_one_size_are_followed_exactly(sizes: tuple[int, ...], count: int) -> None:
    random = Random(count)
    pieces = {size: random.randbytes(size) for size in sizes}
    changes = [random.choice(sizes) for _ in range(count // 20 + 1)]
    values = [
        pieces[changes[number // 20]] for number in range(min(count, 90 if max(sizes) > 5_000 else count))
    ]
    log = log_of([values, values[:3]])
    assert values_of(log) == [*values, *values[:3]]


HEAD = b"\x00\x00\x80\x01\x01"
"""The first bytes of a record with a long offset delta, after its length."""


@pytest.mark.parametrize("decoys", [0.0, 0.02, 1.0])
@pytest.mark.parametrize("most", [62, 300, 9_000])
def test_records_of_large_batches_are_found_whatever_they_hold(most: int, decoys: float) -> None:
    """The beginnings of records are guessed; values that look like a beginning only cost time."""
    random = Random(most)

    def value() -> bytes:
        return (
            HEAD + random.randbytes(random.randrange(8))
            if random.random() < decoys
            else random.randbytes(random.randrange(most))
        )

    batches = [[value() for _ in range(count)] for count in (400, 3, 191, 192, 193)]
    assert values_of(log_of(batches)) == [value for values in batches for value in values]


def test_offset_deltas_of_three_bytes() -> None:
    random = Random(3)
    values = [random.randbytes(random.randrange(12)) for _ in range(9_000)]
    assert values_of(log_of([values])) == values


@given(st.integers(0, 2**32), st.data())
def test_damaged_large_batches_are_never_read_as_something_else(seed: int, data: st.DataObject) -> None:
    random = Random(seed)
    values = [random.randbytes(random.randrange(80)) for _ in range(200)]
    damage_and_read(values, data)


def test_an_unusual_record_is_for_others_to_read() -> None:
    log = encode_keyed_batch(0, 1, 5, [(b"key", b"value")], attributes=0)
    with pytest.raises(Malformed, match="key"):
        records_of(log)


@given(VALUES, st.data())
def test_damaged_batches_are_never_read_as_something_else(values: list[bytes], data: st.DataObject) -> None:
    damage_and_read(values, data)


def damage_and_read(values: list[bytes], data: st.DataObject) -> None:
    log = bytearray(log_of([values]))
    position = data.draw(st.integers(61, len(log) - 1))
    log[position] ^= 1 << data.draw(st.integers(0, 7))
    damaged = bytes(log)
    try:
        found = values_of(damaged)
    except Malformed:
        return
    try:
        expected = record_values(split_batches(damaged, check_crc=False)[0][0])
    except CorruptBatch as error:
        raise AssertionError(f"columns took what the log's own reading doesn't: {error}") from None
    assert found == expected


def test_kinds_are_in_the_order_of_their_types_and_keep_the_order_of_the_log() -> None:
    frames = [b"\x01\x05\x00a", b"\x01\x03\x01b", b"\x01\x05\x00c", b"\x01\x03\x00d", b"\x01\x05\x00"]
    log = log_of([frames])
    found = kinds_of(log)
    assert [(kind.api_key, kind.version, kind.rows.tolist()) for kind in found] == [
        (3, 0, [3]),
        (3, 1, [1]),
        (5, 0, [0, 2, 4]),
    ]
    bodies = [[log[start:end] for start, end in zip(kind.starts, kind.ends, strict=True)] for kind in found]
    assert bodies == [[b"d"], [b"b"], [b"a", b"c", b""]]


@pytest.mark.parametrize(
    "value", [b"", b"\x01", b"\x01\x05", b"\x00\x05\x00", b"\x81\x05\x00", b"\x01\x85\x00"]
)
def test_unusual_frames_are_for_others_to_read(value: bytes) -> None:
    log = log_of([[b"\x01\x05\x00", value]])
    with pytest.raises(Malformed):
        kinds_of(log)
