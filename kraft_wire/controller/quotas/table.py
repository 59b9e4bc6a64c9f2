"""A table by client whose size is bounded: anybody can make up client ids."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

FEW: Final = 1_000
"""With more entries than that, those that are as good as new are forgotten."""
MOST: Final = 10_000
"""Further clients share one entry."""

Client = TypeVar("Client", bound=Hashable)
Entry = TypeVar("Entry")


class BoundedTable(Generic[Client, Entry]):
    """Entries by client. An entry that ``is_new`` says the same as one that isn't there."""

    def __init__(self, is_new: Callable[[Entry, int], bool]) -> None:
        self._is_new = is_new
        self._entries: dict[Client | None, Entry] = {}
        self._look_at = FEW

    def find(self, client: Client) -> Entry | None:
        """Return a client's entry, which others may share; None if there is none."""
        entry = self._entries.get(client)
        if entry is None and len(self._entries) > MOST:
            return self._entries.get(None)
        return entry

    def find_or_add(self, client: Client, make: Callable[[], Entry], now_ms: int) -> Entry:
        """Return a client's entry, a new one if there was none."""
        entry = self.find(client)
        if entry is not None:
            return entry
        self._make_room(now_ms)
        entry = make()
        self._entries[client if len(self._entries) < MOST else None] = entry
        return entry

    def __len__(self) -> int:
        return len(self._entries)

    def _make_room(self, now_ms: int) -> None:
        if len(self._entries) < self._look_at:
            return
        self._entries = {
            client: entry for client, entry in self._entries.items() if not self._is_new(entry, now_ms)
        }
        self._look_at = max(FEW, 2 * len(self._entries))
