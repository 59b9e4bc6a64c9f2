"""Count what was asked and answered: API by API and error by error, on both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from compat.judges.behaviour.player import CLOSED, Answered
from kraft_wire.protocol.errors import ErrorCode

TABLE: Final = Path(__file__).parents[3] / "docs" / "behaviour.md"
_NO_ERROR: Final = "no error"


class Tally:
    """How often each API gave each error."""

    def __init__(self) -> None:
        self._ours: Counter[tuple[str, str]] = Counter()
        self._java: Counter[tuple[str, str]] = Counter()

    def add(self, answered: Iterable[tuple[Answered, Answered]]) -> None:
        """Count the answers of some steps."""
        for ours, java in answered:
            for counts, answer in ((self._ours, ours), (self._java, java)):
                counts.update((answer.api, name) for name in _names(answer))

    def rows(self) -> list[tuple[str, str, int, int]]:
        """Return the API, the error, and how often we and Java's controller answered so."""
        keys = sorted(self._ours.keys() | self._java.keys())
        return [(api, error, self._ours[api, error], self._java[api, error]) for api, error in keys]


def _names(answer: Answered) -> set[str]:
    if answer.outcome.answer == CLOSED:
        return {CLOSED}
    return {_NO_ERROR if code == 0 else ErrorCode(code).name for code in answer.codes or (0,)}


def table_of(tally: Tally) -> str:
    """Return the rows as a table in Markdown."""
    lines = ["| API | answer | ours | Java's |", "|---|---|---|---|"]
    lines += [f"| {api} | {error} | {ours:,} | {java:,} |" for api, error, ours, java in tally.rows()]
    return "\n".join(lines) + "\n"
