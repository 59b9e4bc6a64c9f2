"""What was asked, and what a controller has done then."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from compat.judges.behaviour.forms import Form, codes_in
from compat.judges.behaviour.steps import AnyStep

CLOSED: Final = "the connection was closed"
"""The answer of a controller that gives none."""


class Outcome(msgspec.Struct, frozen=True):
    """What a step has done on one side: the answer, and the records that were written for it."""

    answer: Form
    records: tuple[Form, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether the answer is an error and nothing else, or there is none."""
        codes = codes_in(self.answer)
        return self.answer == CLOSED or (bool(codes) and all(codes))


class Asked(NamedTuple):
    """A step, and what was so before it: which brokers were fenced or ``stopping``, and whether topics may be
    deleted."""

    step: AnyStep
    fenced: frozenset[int] = frozenset()
    stopping: frozenset[int] = frozenset()
    deletes_topics: bool = True
