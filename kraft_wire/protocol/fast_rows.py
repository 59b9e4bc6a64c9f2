"""Read arrays of structs that hold only numbers, ids and arrays of numbers, all elements at once.

The elements of such an array mostly have one shape: their inner arrays are as long as those of the first
element. Then every element takes the same number of bytes, the lengths are columns that can be compared at
once, and struct reads the other columns.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import chain, count
from operator import itemgetter
from typing import Any, Final, NamedTuple

MOST_AT_ONCE: Final = 128
"""Up to this compact size, the plan of an array is cached and unpacks its fixed fields at once."""
MOST_PLANS: Final = 512
"""The maximum number of cached plans."""
PAUSE: Final = 16
"""The number of arrays that are read element by element after one whose elements differ, because the next
ones probably differ as well."""

Columns = tuple[Iterable[Any], ...]
ReadRows = Callable[[bytes, int, int], tuple[Columns, int, int]]


class Plan(NamedTuple):
    """A plan to read an array of one compact size whose elements have one shape. The plan of a large array is
    not cached."""

    sizes: tuple[int, ...]
    """The shape: the compact sizes of an element's arrays."""
    size: int
    span_bytes: int
    lengths: Callable[[bytes], tuple[bytes, ...]]
    """Returns the columns of the arrays' sizes and of the count of tagged fields."""
    expected: tuple[bytes, ...]
    fixed: Callable[[bytes], Iterable[Any]]
    """Returns the fixed fields of one element after the other."""
    arrays: tuple[Callable[[bytes], Iterable[Any]], ...]
    """Each returns the values of one inner array."""


@cache
def row_reader(codes: str) -> ReadRows:
    """Return a reader of arrays whose elements have fields with these struct codes; "i*" is a compact array
    of "i".

    The reader takes the array's compact size and the position after it. It returns an iterable for every
    field, to be advanced in turn, as map and zip do; then the compact size of the rest, which must be read
    element by element, and the position of that rest. It reads all elements or none.
    """
    parts = tuple(codes.split())
    least_bytes = 1 + sum(1 if part.endswith("*") else struct.calcsize(">" + part) for part in parts)
    arrays = _arrays(parts)
    in_turn = _in_turn(parts)
    nothing: Columns = in_turn([()] * (1 + len(arrays)))
    last = _plan(parts, (1,) * len(arrays), 1)
    failed = 0

    def read(data: bytes, pos: int, size: int) -> tuple[Columns, int, int]:
        nonlocal last, failed
        if failed:
            failed -= 1
            return nothing, size, pos
        if last.size != size:
            if (size - 1) * least_bytes > len(data) - pos:
                return nothing, size, pos
            last = _plan_for(parts, last.sizes, size)
        sizes, _, span_bytes, lengths, expected, fixed, columns = last
        rows = data[pos : pos + span_bytes]
        if lengths(rows) == expected:
            if size > MOST_AT_ONCE:
                last = _plan(parts, sizes, 1)
            found = in_turn([iter(fixed(rows)), *[column(rows) for column in columns]])
            return found, 1, pos + span_bytes
        first = _sizes_at(data, pos, arrays)
        if first is None or first == sizes:
            failed, last = PAUSE, _plan(parts, sizes, 1)
            return nothing, size, pos
        last = _plan_for(parts, first, size)
        return read(data, pos, size)

    return read


def _arrays(parts: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return for each array how many bytes are between it and the previous one, and how many its elements
    have."""
    found = []
    distance = 0
    for part in parts:
        if part.endswith("*"):
            found.append((distance, struct.calcsize(">" + part[:-1])))
            distance = 0
        else:
            distance += struct.calcsize(">" + part)
    return found


def _in_turn(parts: tuple[str, ...]) -> Callable[[list[Iterable[Any]]], Columns]:
    """Return a function that sorts the iterables of the fixed fields and of the arrays into the order of the
    fields."""
    arrays = count(1)
    order = [next(arrays) if part.endswith("*") else 0 for part in parts]
    return itemgetter(*order) if len(order) > 1 else lambda columns: (columns[order[0]],)


def _sizes_at(data: bytes, pos: int, arrays: list[tuple[int, int]]) -> tuple[int, ...] | None:
    """Return the sizes of the arrays of the element at ``pos``, if each has one byte and isn't null."""
    sizes = []
    for distance, width in arrays:
        pos += distance
        size = data[pos]
        if not 0 < size < 128:
            return None
        sizes.append(size)
        pos += 1 + (size - 1) * width
    return tuple(sizes)


def _plan_for(parts: tuple[str, ...], sizes: tuple[int, ...], size: int) -> Plan:
    return _plan(parts, sizes, size) if size <= MOST_AT_ONCE else _plan.__wrapped__(parts, sizes, size)


@lru_cache(MOST_PLANS)
def _plan(parts: tuple[str, ...], sizes: tuple[int, ...], size: int) -> Plan:
    remaining = iter(sizes)
    formats = [f"{next(remaining) - 1}{part[:-1]}" if part.endswith("*") else part for part in parts]
    is_array = [part.endswith("*") for part in parts]
    offsets, stride = [], 0
    for layout, array in zip(formats, is_array, strict=True):
        offsets += [stride] * array
        stride += array + struct.calcsize(">" + layout)
    columns = [slice(offset, None, stride + 1) for offset in (*offsets, stride)]
    fixed = _skipping(formats, is_array, [not array for array in is_array])
    arrays = [
        _skipping(formats, is_array, [at == nth for at in range(len(parts))])
        for nth, array in enumerate(is_array)
        if array
    ]
    return Plan(
        sizes,
        size,
        (size - 1) * (stride + 1),
        itemgetter(*columns) if sizes else lambda rows: (rows[columns[0]],),
        tuple(bytes((each,)) * (size - 1) for each in (*sizes, 0)),
        struct.Struct(">" + fixed * (size - 1)).unpack if size <= MOST_AT_ONCE else _flat(fixed),
        tuple(struct.Struct(">" + array).iter_unpack for array in arrays),
    )


def _flat(layout: str) -> Callable[[bytes], Iterable[Any]]:
    unpack = struct.Struct(">" + layout).iter_unpack
    return lambda rows: chain.from_iterable(unpack(rows))


def _skipping(formats: list[str], is_array: list[bool], taken: list[bool]) -> str:
    """Return the struct format of an element that skips all but some parts; arrays have their size before
    them."""
    codes = ""
    for layout, array, wanted in zip(formats, is_array, taken, strict=True):
        codes += "x" * array + (layout if wanted else f"{struct.calcsize('>' + layout)}x")
    return codes + "x"
