"""Keep the lists of partitions that columns don't hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kraft_wire.metadata.freeing import Table
from kraft_wire.metadata.partitions.lazy_numpy import np
from kraft_wire.metadata.partitions.rare import COMMON, Lists, Rare
from kraft_wire.metadata.partitions.regions import Regions
from kraft_wire.metadata.topics import TopicRows

if TYPE_CHECKING:
    from kraft_wire.metadata.partitions.cells import Rows

RareKey = tuple[int, int]
"""A topic's ordinal and a partition's index. It stays valid when the topic's region moves."""


class RareLists:
    """The rare lists of all partitions that have any. Invariant: the column ``rare`` is true for these."""

    def __init__(self, regions: Regions) -> None:
        self._regions = regions
        self._lists: dict[RareKey, Rare] = {}
        self._wide = 0

    @property
    def table(self) -> Table:
        """The table of all lists."""
        return self._lists

    def get(self, topic: TopicRows, index: int) -> Rare:
        """Return the lists of a partition."""
        return self._lists.get((topic.ordinal, index), COMMON)

    def put(self, topic: TopicRows, index: int, rare: Rare) -> None:
        """Write the lists of a partition that exists."""
        key = topic.ordinal, index
        if rare != COMMON:
            self._take(key)
            self._keep(key, rare)
            self._regions.columns.set_rare(topic.start + index, is_rare=True)
        elif key in self._lists:
            self._take(key)
            self._regions.columns.set_rare(topic.start + index, is_rare=False)

    def drop(self, topic: TopicRows, index: int) -> None:
        """Forget the lists of a partition whose row is cleared."""
        self._take((topic.ordinal, index))

    def keys(self) -> list[RareKey]:
        """Return the partitions that have rare lists."""
        return list(self._lists)

    def find(self, wanted: Callable[[Rare], bool], among: Iterable[RareKey]) -> list[tuple[TopicRows, int]]:
        """Return those of the partitions whose lists are wanted, by topic and index."""
        owners = self._regions.owners
        return [(owners[key[0]], key[1]) for key in among if wanted(self._lists.get(key, COMMON))]

    def wide(self, rows: slice | Rows) -> dict[int, Lists]:
        """Return the lists of the wide partitions among these rows, by row."""
        if not self._wide:
            return {}
        rare_rows = _rows_at(rows, np.flatnonzero(self._regions.columns.rare[rows]))
        found = zip(rare_rows.tolist(), self._keys(rare_rows), strict=True)
        return {row: lists for row, key in found if (lists := self._lists[key].wide) is not None}

    def take(self, rows: slice | Rows) -> dict[int, Rare]:
        """Take out the lists of the partitions in these rows, by their places among the rows."""
        if not self._lists:
            return {}
        places = np.flatnonzero(self._regions.columns.rare[rows])
        keys = self._keys(_rows_at(rows, places))
        return {place: self._take(key) for place, key in zip(places.tolist(), keys, strict=True)}

    def put_back(self, rows: slice | Rows, taken: dict[int, Rare]) -> None:
        """Write what ``take`` returned, for the same partitions, which may be in other rows now."""
        if taken:
            rare_rows = _rows_at(rows, np.array(list(taken), np.intp))
            for key, rare in zip(self._keys(rare_rows), taken.values(), strict=True):
                self._keep(key, rare)
            self._regions.columns.rare[rare_rows] = True

    def _keep(self, key: RareKey, rare: Rare) -> None:
        self._lists[key] = rare
        self._wide += rare.wide is not None

    def _take(self, key: RareKey) -> Rare:
        rare = self._lists.pop(key, COMMON)
        self._wide -= rare.wide is not None
        return rare

    def _keys(self, rows: Rows) -> list[RareKey]:
        owners = self._regions.columns.owner[rows].tolist()
        starts = [self._regions.owners[owner].start for owner in owners]
        return [(owner, row - start) for owner, row, start in zip(owners, rows.tolist(), starts, strict=True)]


def _rows_at(rows: slice | Rows, places: Rows) -> Rows:
    found: Rows = places + (rows.start or 0) if isinstance(rows, slice) else rows[places]
    return found
