"""Write down what a client was told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Transcript:
    """The outcome of each step, a line each."""

    def __init__(self, error: type[Exception], name_of: Callable[[Any], str]) -> None:
        """``error`` is what the client raises for an error of Kafka, ``name_of`` the error's name."""
        self.lines: list[str] = []
        self._error = error
        self._name_of = name_of

    def note(self, step: str, act: Callable[[], object]) -> None:
        """Carry out a step. Write down what it returns, or the name of Kafka's error."""
        try:
            outcome = act()
        except self._error as error:
            outcome = self._name_of(error)
        self.lines.append(f"{step}: {outcome}")
