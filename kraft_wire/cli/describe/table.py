"""Print rows as a table: the fields of their class are the columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

NOTHING = "-"


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
    """Return the text of a value."""
    if value is None or value == []:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _heading(field: str) -> str:
    return field.replace("_", " ").capitalize()
