"""What became of a script that was played."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from compat.judges.behaviour.forms import codes_in, differences, text_of_form
from compat.judges.behaviour.outcome import Outcome
from compat.judges.behaviour.steps import AnyStep


class Answered(msgspec.Struct, frozen=True):
    """A step of one side: the API and the version, its outcome, and the codes of its answer.

    Whether it ``was_forwarded`` says if it was sent in an Envelope.
    """

    api: str
    version: int
    was_forwarded: bool
    outcome: Outcome
    codes: tuple[int, ...]


class Difference(msgspec.Struct, frozen=True):
    """A step whose outcomes differ after all rules."""

    number: int
    step: AnyStep
    ours: Outcome
    java: Outcome

    @property
    def kind(self) -> str:
        """What differs, without values: differences of one kind probably have one cause."""
        parts = [type(self.step).__name__]
        if self.ours.answer != self.java.answer:
            parts.append(f"answers {_codes(self.ours)} and {_codes(self.java)}")
        if self.ours.records != self.java.records:
            parts.append(f"records {_types(self.ours)} and {_types(self.java)}")
        return ", ".join(parts)

    def __str__(self) -> str:
        lines = [f"step {self.number}: {msgspec.json.encode(self.step).decode()}"]
        if self.ours.answer != self.java.answer:
            lines += [f"  answer{each}" for each in differences(self.ours.answer, self.java.answer)]
        ours, java = (list(map(text_of_form, side.records)) for side in (self.ours, self.java))
        lines += [f"  only ours:   {record}" for record in ours if record not in java]
        lines += [f"  only Java's: {record}" for record in java if record not in ours]
        if ours != java and set(ours) == set(java):
            lines += ["  the records have another order or number; ours:", *ours, "  Java's:", *java]
        return "\n".join(lines)


def _codes(outcome: Outcome) -> str:
    return ",".join(map(str, codes_in(outcome.answer))) or str(outcome.answer)[:40]


def _types(outcome: Outcome) -> str:
    return ",".join(sorted({record["name"] for record in outcome.records})) or "none"


class Played(NamedTuple):
    """A script that was played: the first step that differs, if any, and what was answered until then.

    ``steps`` is its length, ``set_aside`` the reason of each step that wasn't played. ``ended`` is the reason
    for which it ended before its end.
    """

    steps: int
    answered: list[tuple[Answered, Answered]]
    set_aside: list[str]
    difference: Difference | None = None
    ended: str | None = None
