"""The allocator of rows: no row is handed out twice, none is lost."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.metadata.partitions.rows import RowAllocator


def test_a_region_at_the_top_grows_where_it_is() -> None:
    allocator = RowAllocator()
    start = allocator.allocate(3)
    assert allocator.extend(start + 3, 7)
    assert allocator.top == 10


def test_a_region_grows_into_the_hole_after_it() -> None:
    allocator = RowAllocator()
    first, second, _third = allocator.allocate(2), allocator.allocate(5), allocator.allocate(1)
    allocator.release(second, 5)
    assert not allocator.extend(first + 2, 6)
    assert allocator.extend(first + 2, 4)
    assert allocator.free == 1


def test_released_rows_are_used_again_and_neighbours_merge() -> None:
    allocator = RowAllocator()
    regions = [allocator.allocate(4) for _ in range(4)]
    allocator.release(regions[0], 4)
    allocator.release(regions[2], 4)
    allocator.release(regions[1], 4)
    assert allocator.allocate(12) == regions[0]
    assert allocator.top == 16


def test_the_top_falls_when_the_last_region_is_released() -> None:
    allocator = RowAllocator()
    first, second = allocator.allocate(4), allocator.allocate(4)
    allocator.release(first, 4)
    allocator.release(second, 4)
    assert (allocator.top, allocator.free) == (0, 0)


@given(st.lists(st.tuples(st.sampled_from("aer"), st.integers(0, 20), st.integers(1, 40)), max_size=80))
def test_rows_are_neither_shared_nor_lost(steps: list[tuple[str, int, int]]) -> None:
    allocator = RowAllocator()
    regions: list[tuple[int, int]] = []
    for action, which, size in steps:
        if action == "a" or not regions:
            regions.append((allocator.allocate(size), size))
            continue
        start, old = regions.pop(which % len(regions))
        if action == "r":
            allocator.release(start, old)
        else:
            grown = allocator.extend(start + old, size)
            regions.append((start, old + size if grown else old))
        used = sorted(regions)
        assert all(a + n <= b for (a, n), (b, _) in pairwise(used))
        assert sum(n for _, n in used) + allocator.free == allocator.top
