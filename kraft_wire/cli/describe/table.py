"""Print rows as a table: the fields of their class are the columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from kraft_wire.cli.printable import printable

NOTHING: Final = "-"
_ABBREVIATIONS: Final = {"isr": "ISR", "elr": "ELR", "id": "id"}


def table(rows: Sequence[msgspec.Struct]) -> Iterator[str]:
    """Yield the lines of a table; none without rows."""
    if not rows:
        return
    names = [_heading(field) for field in rows[0].__struct_fields__]
    lines = [names, *([cell(value) for value in msgspec.structs.astuple(row)] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)).rstrip()


def cell(value: Any) -> str:
    """Return the text of a value. What isn't printable is shown, so that it doesn't move the columns."""
    if value is None or value == []:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return printable(",".join(map(str, value)) if isinstance(value, list) else str(value))


def _heading(field: str) -> str:
    words = [_ABBREVIATIONS.get(word, word) for word in field.split("_")]
    return " ".join([words[0][0].upper() + words[0][1:], *words[1:]])
