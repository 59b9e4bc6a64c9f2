"""Emit docstrings: the facts in the first line, then the schema's notes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from codegen.emit.code import INDENT
from codegen.emit.fold import LIMIT
from codegen.schema.model import ErrorNote, Notes

_WIDTH = LIMIT - len(INDENT)


def docstring(facts: str, notes: Notes) -> list[str]:
    """Return the lines of a docstring within a class, not indented; one line if there are no notes."""
    if not notes.text and not notes.errors:
        return [f'"""{facts}"""']
    lines = [facts]
    for paragraph in notes.text:
        lines += ["", *textwrap.wrap(paragraph, _WIDTH)]
    if notes.errors:
        lines += ["", "Errors:", *(line for note in notes.errors for line in _error_lines(note))]
    # Notes may hold any text, and must not end the docstring.
    lines = [line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') for line in lines]
    return [f'"""{lines[0]}', *lines[1:], '"""']


def _error_lines(note: ErrorNote) -> Iterator[str]:
    text = f"{note.name}: {note.when}" if note.when else note.name
    yield from textwrap.wrap(text, _WIDTH, initial_indent=INDENT, subsequent_indent=INDENT * 2)
