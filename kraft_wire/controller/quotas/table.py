"""A table by client whose size is bounded: anybody can make up client ids."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

FEW: Final = 1_000
"""With so many entries, those that are as good as new are forgotten now and then."""
MOST: Final = 10_000
"""The most clients that have an entry of their own. All others share one."""
SWEEP_MS: Final = 1_000
"""The least time between two searches for entries that are as good as new: Kafka's sample, by default."""

Client = TypeVar("Client", bound=Hashable)
Entry = TypeVar("Entry")


class BoundedTable(Generic[Client, Entry]):
    """Entries by client. An entry that ``is_new`` says the same as one that isn't there."""

    def __init__(self, is_new: Callable[[Entry, int], bool]) -> None:
        self._is_new = is_new
        self._own: dict[Client, Entry] = {}
        self._shared: Entry | None = None
        self._sweep_at_ms = 0

    def find(self, client: Client) -> Entry | None:
        """Return a client's entry, which others may share; None if there is none."""
        entry = self._own.get(client)
        return self._shared if entry is None and self._is_full() else entry

    def find_or_add(self, client: Client, make: Callable[[], Entry], now_ms: int) -> Entry:
        """Return a client's entry, a new one if there was none."""
        entry = self._own.get(client)
        if entry is None:
            self._make_room(now_ms)
            entry = self._find_or_share(client, make)
        return entry

    def __len__(self) -> int:
        return len(self._own) + (self._shared is not None)

    def _find_or_share(self, client: Client, make: Callable[[], Entry]) -> Entry:
        if not self._is_full():
            return self._own.setdefault(client, make())
        if self._shared is None:
            self._shared = make()
        return self._shared

    def _is_full(self) -> bool:
        return len(self._own) >= MOST

    def _make_room(self, now_ms: int) -> None:
        """Forget the entries that are as good as new, if it is time."""
        if len(self._own) < FEW or now_ms < self._sweep_at_ms:
            return
        self._sweep_at_ms = now_ms + SWEEP_MS
        self._own = {client: entry for client, entry in self._own.items() if not self._is_new(entry, now_ms)}
        if self._shared is not None and self._is_new(self._shared, now_ms):
            self._shared = None
