"""The undo journal: every change leaves its inverse, tagged with the offset of the record that made it.

An inverse is a function with its arguments. It puts back what was there and returns its own inverse, so that
undoing can itself be undone: that is what aborting a metadata transaction needs, since the abort may be
speculative too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

from kraft_wire.metadata.errors import UndoImpossible

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

Inverse = tuple[Callable[..., "Inverse"], tuple[Any, ...]]
Entry = tuple[int, Callable[..., Inverse], tuple[Any, ...]]
"""An inverse and the offset of the record whose change it takes back."""

_ABSENT: Final[Any] = object()


class Journal:
    """Inverses in the order of their changes, oldest first.

    ``recording`` is the caller's switch: on while changes are speculative. ``held`` is the state's own: a
    metadata transaction is open, and its changes may have to be taken back whether speculative or not.
    Changes of records before ``floor`` cannot be undone by ``undo_to``; aborting a transaction may reach
    further. Invariant: offsets never decrease from the oldest entry to the newest.
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
        """Remember how to take back a change of the current record. Only while ``active``."""
        self._entries.append((self.offset, undo, arguments))

    def put(self, table: dict[Key, Value], key: Key, value: Value) -> None:
        """Set one key of a table."""
        if self.active:
            self.add(_swap, table, key, table.get(key, _ABSENT))
        table[key] = value

    def drop(self, table: dict[Key, Value], key: Key) -> None:
        """Remove one key of a table; nothing happens where it is absent."""
        if key in table:
            old = table.pop(key)
            if self.active:
                self.add(_swap, table, key, old)

    def undo_to(self, offset: int) -> None:
        """Take back every change of the records at ``offset`` and behind it, newest first."""
        if offset < self.floor:
            raise UndoImpossible(offset, self.floor)
        while self._entries and self._entries[-1][0] >= offset:
            _, undo, arguments = self._entries.pop()
            undo(*arguments)

    def take_back(self, offset: int) -> list[Entry]:
        """As ``undo_to``, but returns the entries that do the changes again, oldest change first."""
        redo: list[Entry] = []
        while self._entries and self._entries[-1][0] >= offset:
            at, undo, arguments = self._entries.pop()
            redo.append((at, *undo(*arguments)))
        redo.reverse()
        return redo

    def do_again(self, redo: list[Entry]) -> None:
        """Apply what ``take_back`` returned; the inverses return to the journal under their old offsets."""
        self._entries.extend([(at, *change(*arguments)) for at, change, arguments in redo])

    def forget_below(self, offset: int) -> None:
        """Drop the inverses of records before ``offset``: those records are there to stay."""
        entries = self._entries
        while entries and entries[0][0] < offset:
            entries.popleft()

    def clear(self) -> None:
        """Drop everything: nothing that happened so far can be taken back."""
        self._entries.clear()


def _swap(table: dict[Any, Any], key: Any, value: Any) -> Inverse:
    old = table.get(key, _ABSENT)
    if value is _ABSENT:
        del table[key]
    else:
        table[key] = value
    return _swap, (table, key, old)
