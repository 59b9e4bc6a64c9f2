"""Record what happens in a run: one line for each event, as a running hash and, if wanted, as text."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b


class Trace:
    """The trace of one run. Runs with equal hashes are equal."""

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
