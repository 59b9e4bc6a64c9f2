"""Keep what waits, each up to a time or an offset of its own."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")

FEW_GONE: Final = 100


def earlier(one: int | None, other: int | None) -> int | None:
    """Return the earlier of two deadlines; None is no deadline."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


class Waiting(Generic[Item]):
    """Items by token, in the order in which they came. Each is due at a number: a time or an offset.

    ``_due`` has the items in the order of these numbers. It also has entries of items that don't wait any
    more. The first entry is always of an item that waits, and most of many entries are.
    """

    __slots__ = ("_due", "_items", "_numbers")

    def __init__(self) -> None:
        self._items: dict[Hashable, tuple[int, Item]] = {}
        self._due: list[tuple[int, int, Hashable]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter([item for _, item in self._items.values()])

    def add(self, token: Hashable, item: Item, due: int) -> None:
        """Let an item wait until ``due``."""
        number = next(self._numbers)
        self._items[token] = number, item
        heappush(self._due, (due, number, token))
        self._drop_gone()

    def drop(self, token: Hashable) -> None:
        """Drop an item, if it waits."""
        if self._items.pop(token, None) is not None:
            self._drop_gone()

    def take_all(self) -> list[Item]:
        """Remove and return all items, in the order in which they came."""
        items = [item for _, item in self._items.values()]
        self._items.clear()
        self._due.clear()
        return items

    def take_due(self, limit: int, most: int | None = None) -> list[Item]:
        """Remove and return the items that are due at ``limit`` or before, the first due first: so many at
        most, or all."""
        items: list[Item] = []
        while len(items) != most and self._due and self._due[0][0] <= limit:
            items.append(self._items.pop(heappop(self._due)[2])[1])
            self._drop_gone()
        return items

    def next_due(self) -> int | None:
        """Return the number at which the first item is due, None if nothing waits."""
        return self._due[0][0] if self._due else None

    def _drop_gone(self) -> None:
        """Drop the entries before the first item that waits. If most entries are gone, drop all of these."""
        while self._due and not self._waits(self._due[0]):
            heappop(self._due)
        if len(self._due) > 2 * len(self._items) + FEW_GONE:
            self._due = [entry for entry in self._due if self._waits(entry)]
            heapify(self._due)

    def _waits(self, entry: tuple[int, int, Hashable]) -> bool:
        """Whether this entry's item still waits. Its token may be that of a later item."""
        _, number, token = entry
        waiting = self._items.get(token)
        return waiting is not None and waiting[0] == number
