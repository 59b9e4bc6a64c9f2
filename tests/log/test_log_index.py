"""The sparse indexes are Java's, and consistent with themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.log.batch import BatchHeader, scan_batches
from kraft_wire.log.index import (
    INTERVAL_BYTES,
    SegmentIndex,
    read_offset_entries,
    read_time_entries,
)
from kraft_wire.log.layouts import OffsetIndexLayout, TimeIndexLayout
from tests.log.batch_samples import JAVA_PARTITION

shapes = st.lists(
    st.tuples(st.integers(1, 5), st.integers(61, 6000), st.integers(-50, 100)), min_size=1, max_size=60
)
Shape = list[tuple[int, int, int]]


def laid_out(shape: Shape, base_offset: int) -> list[tuple[BatchHeader, int]]:
    """Return headers with positions, of batches with these record counts, sizes and time steps."""
    offset, position, time = base_offset, 0, 1000
    batches = []
    for count, size, step in shape:
        time += step
        header = BatchHeader(offset, size, 1, 0, 0, count - 1, time, time, -1, -1, -1, count)
        batches.append((header, position))
        offset += count
        position += size
    return batches


def indexed(batches: list[tuple[BatchHeader, int]], base_offset: int) -> SegmentIndex:
    index = SegmentIndex(base_offset)
    for header, position in batches:
        index.add(header.last_offset, header.max_timestamp, position)
    return index


@given(shapes, st.integers(0, 2**40))
def test_a_lookup_leads_to_the_batch_or_a_little_before_it(shape: Shape, base_offset: int) -> None:
    batches = laid_out(shape, base_offset)
    index = indexed(batches, base_offset)
    starts = {position: header for header, position in batches}
    for header, position in batches:
        for offset in range(header.base_offset, header.next_offset):
            found = index.position_before(offset)
            assert found in starts and found <= position
            assert starts[found].base_offset <= offset
            skipped = [size for size, at in ((h.size_bytes, p) for h, p in batches) if found < at < position]
            assert sum(skipped) <= INTERVAL_BYTES + 6000


@given(shapes)
def test_the_files_are_what_was_appended_piece_by_piece(shape: Shape) -> None:
    index = SegmentIndex(700)
    files = [b"", b""]
    for header, position in laid_out(shape, 700):
        added = index.add(header.last_offset, header.max_timestamp, position)
        files = [file + entry for file, entry in zip(files, added, strict=True)]
    files[1] += index.close()
    assert files == [index.offset_file(), index.time_file()]
    assert index.close() == b""


@given(shapes, st.integers(0, 300))
def test_truncated_and_fed_again_it_is_as_if_the_rest_had_never_been(shape: Shape, cut: int) -> None:
    batches = laid_out(shape, 0)
    index = indexed(batches, 0)
    index.truncate_to(cut)
    kept = [(header, position) for header, position in batches if header.last_offset < cut]
    for header, position in kept:
        if position >= index.last_indexed_position:
            index.add(header.last_offset, header.max_timestamp, position)
    expected = indexed(kept, 0)
    assert index.offset_file() == expected.offset_file()
    assert index.time_file() == expected.time_file()
    assert index.close() == expected.close()


@given(shapes)
def test_the_declared_layouts_read_the_same(shape: Shape) -> None:
    index = indexed(laid_out(shape, 40), 40)
    index.close()
    entries = [
        (entry.relative_offset, entry.position) for entry in OffsetIndexLayout.parse(index.offset_file())
    ]
    times = [(entry.timestamp, entry.relative_offset) for entry in TimeIndexLayout.parse(index.time_file())]
    assert entries == read_offset_entries(index.offset_file())
    assert times == read_time_entries(index.time_file())
    assert len(entries) == len(index)
    assert times == sorted(times)


@pytest.mark.parametrize("base_offset", [0, 81])
def test_java_wrote_the_same_indexes(base_offset: int) -> None:
    name = f"{base_offset:020d}"
    index = SegmentIndex(base_offset)
    for position, header in scan_batches((JAVA_PARTITION / f"{name}.log").read_bytes()):
        index.add(header.last_offset, header.max_timestamp, position)
    if base_offset == 0:
        index.close()
    offset_entries = read_offset_entries((JAVA_PARTITION / f"{name}.index").read_bytes())
    time_entries = read_time_entries((JAVA_PARTITION / f"{name}.timeindex").read_bytes())
    assert read_offset_entries(index.offset_file()) == offset_entries
    assert read_time_entries(index.time_file()) == time_entries
    assert bool(offset_entries) == (base_offset == 0)


def test_a_file_that_is_cut_within_an_entry() -> None:
    index = indexed(laid_out([(1, 5000, 1)] * 4, 0), 0)
    assert read_offset_entries(index.offset_file()[:-3]) == read_offset_entries(index.offset_file())[:-1]
    assert read_time_entries(index.time_file()[:-1]) == read_time_entries(index.time_file())[:-1]
