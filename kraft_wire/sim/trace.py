"""What happened, a line an event, in a running hash; printed on demand."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b


class Trace:
    """Equal hashes mean equal runs."""

    __slots__ = ("_hash", "_print")

    def __init__(self, printer: Callable[[str], object] | None = None) -> None:
        self._hash = blake2b(digest_size=16)
        self._print = printer

    def add(self, line: str) -> None:
        self._hash.update(line.encode())
        self._hash.update(b"\n")
        if self._print is not None:
            self._print(line)

    @property
    def hexdigest(self) -> str:
        return self._hash.hexdigest()
