"""A change between two states of a message, and the versions by which it is judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from codegen.schema.model import Field, Message


@dataclass(frozen=True, slots=True)
class Change:
    """A change: the rule's name, the field's path ("" for the message itself) and a description.

    ``versions`` are those at which it breaks the old state; empty if it breaks none, or if the rule is not
    about single versions.
    """

    rule: str
    path: str
    text: str
    compatible: bool
    versions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """Two states of one message. ``released`` are the old one's versions that others may rely on."""

    old: Message
    new: Message
    released: frozenset[int]

    @property
    def common(self) -> tuple[int, ...]:
        """The versions that both states have."""
        return tuple(self.old.versions.intersect(self.new.versions))

    def change(self, rule: str, path: str, text: str, broken: Sequence[int] = ()) -> Change:
        """Return a change that is compatible unless it breaks a released version."""
        compatible = self.released.isdisjoint(broken)
        if broken:
            text += f"; breaks {say(broken)}" if not compatible else f"; {say(broken)} was not released"
        return Change(rule, path, text, compatible, tuple(broken))


def say(versions: Iterable[int]) -> str:
    """Return ``version 3``, ``versions 0-2, 5``."""
    ordered = sorted(versions)
    starts = [ordered[0], *(after for before, after in pairwise(ordered) if after != before + 1)]
    ends = [*(before for before, after in pairwise(ordered) if after != before + 1), ordered[-1]]
    ranges = [str(low) if low == high else f"{low}-{high}" for low, high in zip(starts, ends, strict=True)]
    return f"version{'s' if len(ordered) > 1 else ''} {', '.join(ranges)}"


def describe(field: Field) -> str:
    """Return a short description of a field."""
    parts = [str(field.type), f"versions {field.versions}"]
    if field.tag is not None:
        parts.append(f"tag {field.tag}" + ("" if field.tagged == field.versions else f" at {field.tagged}"))
    if not field.nullable.empty:
        parts.append(f"nullable at {field.nullable}")
    if field.default is not None:
        parts.append(f"default {field.default!r}")
    return ", ".join(parts)
