"""Arrays of structs that hold only numbers, ids and arrays of numbers, read all at once.

Elements of such an array mostly have one shape: their arrays are as long as those of the first one. Then
every element takes the same number of bytes, the lengths are in columns that can be compared at once, and
struct reads the other columns.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import chain, count
from operator import itemgetter
from typing import Any, Final, NamedTuple

MOST_AT_ONCE: Final = 128
"""Up to this compact size, an array has a plan that is kept and unpacks its fixed fields in one go."""
MOST_PLANS: Final = 512
"""So many of those are kept."""

Columns = tuple[Iterable[Any], ...]
ReadRows = Callable[[bytes, int, int], tuple[Columns, int, int]]


class Plan(NamedTuple):
    """How to read an array of one compact size whose elements have one shape."""

    sizes: tuple[int, ...]
    """The shape: the compact sizes of an element's arrays."""
    size: int
    span_bytes: int
    lengths: Callable[[bytes], tuple[bytes, ...]]
    """The columns of the arrays' sizes and of the count of tagged fields."""
    expected: tuple[bytes, ...]
    fixed: Callable[[bytes], Iterable[Any]]
    """The fixed fields of one element after the other."""
    arrays: tuple[Callable[[bytes], Iterable[Any]], ...]
    """The values of each array."""


@cache
def row_reader(codes: str) -> ReadRows:
    """How to read arrays of elements of fields with these struct codes; "i*" is a compact array of "i".

    The reader takes the array's compact size and the position behind it. It returns an iterable for every
    field, to be advanced in turn, as map and zip do; then the compact size of what is left to be read one by
    one, and where that begins. It reads all or nothing.
    """
    parts = tuple(codes.split())
    least_bytes = 1 + sum(struct.calcsize(">" + part) if part[-1] != "*" else 1 for part in parts)
    in_turn = _in_turn(parts)
    nothing: Columns = in_turn([()] * (1 + codes.count("*")))
    last = _plan(parts, (1,) * codes.count("*"), 1)

    def read(data: bytes, pos: int, size: int) -> tuple[Columns, int, int]:
        nonlocal last
        plan = last
        if plan.size != size:
            if (size - 1) * least_bytes > len(data) - pos:
                return nothing, size, pos
            plan = _plan_for(parts, plan.sizes, size)
        rows = data[pos : pos + plan.span_bytes]
        if plan.lengths(rows) != plan.expected:
            sizes = _sizes_at(data, pos, parts)
            if sizes is None or sizes == plan.sizes:
                return nothing, size, pos
            plan = _plan_for(parts, sizes, size)
            rows = data[pos : pos + plan.span_bytes]
            if plan.lengths(rows) != plan.expected:
                return nothing, size, pos
        if size <= MOST_AT_ONCE:
            last = plan
        columns = in_turn([iter(plan.fixed(rows)), *[column(rows) for column in plan.arrays]])
        return columns, 1, pos + plan.span_bytes

    return read


def _in_turn(parts: tuple[str, ...]) -> Callable[[list[Iterable[Any]]], Columns]:
    """Put what holds the fixed fields, and then each array, in the order of the fields."""
    arrays = count(1)
    order = [next(arrays) if part.endswith("*") else 0 for part in parts]
    return itemgetter(*order) if len(order) > 1 else lambda columns: (columns[order[0]],)


def _sizes_at(data: bytes, pos: int, parts: tuple[str, ...]) -> tuple[int, ...] | None:
    """The sizes of the arrays of the element at ``pos``, unless one is unusual, or beyond the data."""
    sizes = []
    for part in parts:
        if part.endswith("*"):
            if pos >= len(data) or not 0 < data[pos] < 128:
                return None
            sizes.append(data[pos])
            pos += 1 + (data[pos] - 1) * struct.calcsize(">" + part[:-1])
        else:
            pos += struct.calcsize(">" + part)
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
    """The format of an element of which only some parts are taken; arrays have their size before them."""
    codes = ""
    for layout, array, wanted in zip(formats, is_array, taken, strict=True):
        codes += "x" * array + (layout if wanted else f"{struct.calcsize('>' + layout)}x")
    return codes + "x"
