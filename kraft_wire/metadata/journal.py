"""The undo journal: every change leaves its inverse, with the offset of the record that made it.

An inverse is a function with its arguments. It restores the old value and returns its own inverse, so that an
undo can itself be undone. Aborting a metadata transaction needs this, because the abort may be speculative
too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, TypeVar

from kraft_wire.metadata.errors import UndoImpossible

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

Inverse = tuple[Callable[..., "Inverse"], tuple[Any, ...]]
Entry = tuple[int, Callable[..., Inverse], tuple[Any, ...]]
"""An inverse and the offset of the record whose change it undoes."""

ABSENT: Final[Any] = object()
"""The value of a key that a table doesn't have."""


class Journal:
    """Inverses in the order of their changes, oldest first.

    ``recording`` is set by the caller while changes are speculative. ``held`` is set by the state while a
    metadata transaction is open: its changes may have to be undone, speculative or not. ``undo_to`` can't
    undo changes of records before ``floor``; an abort of a transaction may undo older ones. Invariant:
    offsets never decrease from the oldest entry to the newest.
    """

    def __init__(self) -> None:
        self.recording = False
        self.held = False
        self.offset = -1
        self.floor = 0
        self._entries: deque[Entry] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def active(self) -> bool:
        """Whether a change must leave its inverse now."""
        return self.recording or self.held

    def add(self, undo: Callable[..., Inverse], *arguments: Any) -> None:
        """Add the inverse of a change by the current record. Only while ``active``."""
        self._entries.append((self.offset, undo, arguments))

    def put(self, table: dict[Key, Value], key: Key, value: Value) -> None:
        """Set one key of a table."""
        if self.active:
            self.add(_swap, table, key, table.get(key, ABSENT))
        table[key] = value

    def drop(self, table: dict[Key, Value], key: Key) -> None:
        """Remove one key of a table; nothing happens if it is absent."""
        if key in table:
            old = table.pop(key)
            if self.active:
                self.add(_swap, table, key, old)

    def put_all(self, table: dict[Key, Value], values: Mapping[Key, Value]) -> None:
        """Set many keys of a table; ABSENT removes one. One inverse is for all."""
        if self.active:
            self.add(_swap_all, table, {key: table.get(key, ABSENT) for key in values})
        _set_all(table, values)

    def undo_to(self, offset: int) -> None:
        """Undo every change by the records at or after ``offset``, newest first. Raises UndoImpossible below
        ``floor``."""
        if offset < self.floor:
            raise UndoImpossible(offset, self.floor)
        while self._entries and self._entries[-1][0] >= offset:
            _, undo, arguments = self._entries.pop()
            undo(*arguments)

    def undo_with_redo(self, offset: int) -> list[Entry]:
        """Undo the same changes as ``undo_to``, and return the entries that redo them, oldest change
        first."""
        redo: list[Entry] = []
        while self._entries and self._entries[-1][0] >= offset:
            at, undo, arguments = self._entries.pop()
            redo.append((at, *undo(*arguments)))
        redo.reverse()
        return redo

    def redo(self, redo: list[Entry]) -> None:
        """Apply the entries of ``undo_with_redo``. Their inverses return to the journal under their old
        offsets."""
        self._entries.extend([(at, *change(*arguments)) for at, change, arguments in redo])

    def forget_below(self, offset: int) -> None:
        """Drop the inverses of records before ``offset``, which won't be undone any more."""
        entries = self._entries
        while entries and entries[0][0] < offset:
            entries.popleft()

    def clear(self) -> None:
        """Drop everything: no earlier change can be undone."""
        self._entries.clear()


def _swap(table: dict[Any, Any], key: Any, value: Any) -> Inverse:
    old = table.get(key, ABSENT)
    if value is ABSENT:
        del table[key]
    else:
        table[key] = value
    return _swap, (table, key, old)


def _swap_all(table: dict[Any, Any], values: Mapping[Any, Any]) -> Inverse:
    old = {key: table.get(key, ABSENT) for key in values}
    _set_all(table, values)
    return _swap_all, (table, old)


def _set_all(table: dict[Any, Any], values: Mapping[Any, Any]) -> None:
    for key, value in values.items():
        if value is ABSENT:
            table.pop(key, None)
        else:
            table[key] = value
