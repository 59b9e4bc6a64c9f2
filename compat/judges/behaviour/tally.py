"""Count what was asked and answered: API by API, version by version, error by error, on both sides.

And what wasn't asked: the steps that were set aside, and the scripts that ended early, by reason.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

from compat.judges.behaviour.outcome import CLOSED
from compat.judges.behaviour.played import Answered, Played
from compat.judges.behaviour.rules import ONLY_OURS
from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.protocol.errors import ErrorCode

TABLE: Final = Path(__file__).parents[3] / "docs" / "behaviour.md"
FIRST_FETCH: Final = 13
"""Older versions name topics: replicas don't use them, and for ours they are a consumer's."""
_NO_ERROR: Final = "no error"


class Row(NamedTuple):
    """How often we and Java's controller answered an API with an error."""

    api: str
    error: str
    ours: int
    java: int


class Tally:
    """How often each version of each API was asked, and each API gave each error."""

    def __init__(self) -> None:
        self._asked: Counter[tuple[str, int]] = Counter()
        self._ours: Counter[tuple[str, str]] = Counter()
        self._java: Counter[tuple[str, str]] = Counter()
        self.steps = 0
        self.played = 0
        self.set_aside: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()

    def add(self, script: Played) -> None:
        """Count the steps of a script."""
        self.steps += script.steps
        self.played += len(script.answered)
        self.set_aside.update(script.set_aside)
        if script.ended is not None:
            self.ended[script.ended] += 1
        for ours, java in script.answered:
            self._asked[ours.api, ours.version] += 1
            if ours.was_forwarded:
                self._asked["Envelope", 0] += 1
            for counts, answer in ((self._ours, ours), (self._java, java)):
                counts.update((answer.api, name) for name in _names(answer))

    def rows(self) -> list[Row]:
        """Return all that was answered, by API and error."""
        keys = sorted(self._ours.keys() | self._java.keys())
        return [Row(api, error, self._ours[api, error], self._java[api, error]) for api, error in keys]

    def versions(self, api: str) -> list[int]:
        """Return the versions of an API that were asked."""
        return sorted(version for name, version in self._asked if name == api)

    def not_asked(self) -> list[str]:
        """Return the versions that both controllers serve and that nobody asked for."""
        missing = []
        for api in CONTROLLER_APIS:
            oldest = FIRST_FETCH if api.name == "Fetch" else api.min_version
            served = set() if api.key in ONLY_OURS else set(range(oldest, api.max_version + 1))
            missing += [f"{api.name} {version}" for version in sorted(served - set(self.versions(api.name)))]
        return missing


def _names(answer: Answered) -> set[str]:
    if answer.outcome.answer == CLOSED:
        return {CLOSED}
    return {_NO_ERROR if code == 0 else ErrorCode(code).name for code in answer.codes or (0,)}


def table_of(tally: Tally) -> str:
    """Return the rows as a table in Markdown."""
    lines = ["| API | versions | answer | ours | Java's |", "|---|---|---|---|---|"]
    for row in tally.rows():
        versions = ", ".join(map(str, tally.versions(row.api)))
        lines.append(f"| {row.api} | {versions} | {row.error} | {row.ours:,} | {row.java:,} |")
    return "\n".join(lines) + "\n"
