"""Plant bugs: each breaks one rule during a run, and some invariant has to find it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import pytest

from kraft_wire.sim.options import Options
from kraft_wire.sim.simulation import simulate


class Patch:
    """Replaced attributes and table entries, which ``undo`` restores."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def attribute(self, owner: Any, name: str, value: object) -> None:
        old = owner.__dict__[name]
        self._undo.append(lambda: setattr(owner, name, old))
        setattr(owner, name, value)

    def entry(self, table: MutableMapping[Any, Any], key: object, value: object) -> None:
        old = table[key]
        self._undo.append(lambda: table.__setitem__(key, old))
        table[key] = value

    def undo(self) -> None:
        for undo in reversed(self._undo):
            undo()


Bug = Callable[[Patch], None]


class Bugs:
    """Bugs by name."""

    def __init__(self) -> None:
        self.found_by: dict[str, tuple[str, ...]] = {}
        self._plants: dict[str, Bug] = {}

    @property
    def names(self) -> list[str]:
        return list(self._plants)

    def bug(self, *found_by: str) -> Callable[[Bug], Bug]:
        """Register a bug. One of the ``found_by`` invariants has to find it. NoDefect means that something
        crashes; a comment has to give the reason."""

        def note(plant: Bug) -> Bug:
            self._plants[plant.__name__] = plant
            self.found_by[plant.__name__] = found_by
            return plant

        return note

    @contextmanager
    def planted(self, name: str) -> Iterator[None]:
        patch = Patch()
        try:
            self._plants[name](patch)
            yield
        finally:
            patch.undo()

    def find(self, name: str, options_of: Callable[[int], Options], seeds: int, first: int = 0) -> None:
        """Fail unless one of so many seeds from ``first`` on finds the bug and holds without it."""
        for seed in range(first, first + seeds):
            with self.planted(name):
                result = simulate(options_of(seed))
            if result.invariant in self.found_by[name]:
                assert simulate(options_of(seed)).violation is None, "without the bug nothing is wrong"
                return
        pytest.fail(f"{name} was not found in {seeds} seeds by {self.found_by[name]}")
