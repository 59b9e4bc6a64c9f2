"""Free large tables bit by bit: at once it takes 0.2 µs an entry, and no thread can do anything meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

Table = dict[Any, Any] | list[Any]

ENTRIES_PER_PIECE: Final = 5_000


def free_in_pieces(tables: Iterable[Table]) -> Iterator[None]:
    """Empty the tables. Yields after each piece."""
    for table in tables:
        remove_last = table.popitem if isinstance(table, dict) else table.pop
        while table:
            for _ in range(min(len(table), ENTRIES_PER_PIECE)):
                remove_last()
            yield
