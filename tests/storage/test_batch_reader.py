"""Reading batches from a file stops where the file ends, and at batches that are impossibly large."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_wire.log.batch import LENGTH_END, MAX_READABLE_BATCH_SIZE_BYTES, encode_batch
from kraft_wire.log.errors import CorruptBatch, CutOffBatch
from kraft_wire.storage.log.batch_reader import read_batches

FIRST = encode_batch(0, 1, 0, [b"a"])
SECOND = encode_batch(1, 1, 0, [b"b" * 100])


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    found = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    os.write(found, FIRST + SECOND)
    yield found
    os.close(found)


def positions(fd: int, end: int) -> list[int]:
    return [position for position, _ in read_batches(fd, 0, end, chunk_size_bytes=64)]


def test_every_batch_has_its_position(fd: int) -> None:
    assert positions(fd, len(FIRST + SECOND)) == [0, len(FIRST)]


@pytest.mark.parametrize("left", [1, LENGTH_END, len(SECOND) - 1])
def test_a_batch_that_the_end_cuts_off_is_reported(fd: int, left: int) -> None:
    with pytest.raises(CutOffBatch, match=rf"byte {len(FIRST)} .*cut off: {left} bytes are left"):
        positions(fd, len(FIRST) + left)


def test_a_file_that_was_cut_between_batches_ends_there(fd: int) -> None:
    end = os.fstat(fd).st_size
    os.ftruncate(fd, len(FIRST))
    assert positions(fd, end) == [0]


def test_a_file_that_was_cut_within_a_batch_is_reported(fd: int) -> None:
    end = os.fstat(fd).st_size
    os.ftruncate(fd, len(FIRST) + 30)
    with pytest.raises(CutOffBatch, match="30 bytes are left"):
        positions(fd, end)


def test_a_length_that_no_batch_has_is_not_read_into_memory(fd: int) -> None:
    os.ftruncate(fd, 4 * MAX_READABLE_BATCH_SIZE_BYTES)
    os.pwrite(fd, (2 * MAX_READABLE_BATCH_SIZE_BYTES).to_bytes(4, "big"), len(FIRST) + 8)
    with pytest.raises(CorruptBatch, match="is more than a batch of a metadata log has"):
        positions(fd, os.fstat(fd).st_size)
