"""Read the comments of a definition: text, and the errors that a response's field may hold."""

from __future__ import annotations

import re
from collections.abc import Iterable

from codegen.schema.model import ErrorNote, Notes

_ERROR = "[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
_ERROR_FIRST = re.compile(rf"(?:- )?(?P<name>{_ERROR})\b[:,]?(?: is returned\b)?\s*(?P<when>.*)")
_ANY_ERROR = re.compile(rf"\b{_ERROR}\b")


def plain_notes(lines: Iterable[str]) -> Notes:
    """Return text only, with each paragraph on one line."""
    return Notes(tuple(_paragraphs(lines)))


def error_notes(lines: Iterable[str]) -> Notes:
    """Return the notes of a field for an error code.

    A paragraph that starts with an error's name says when it is returned; other paragraphs may name some.
    """
    text: list[str] = []
    errors: dict[str, str] = {}
    for paragraph in _paragraphs(lines):
        match = _ERROR_FIRST.fullmatch(paragraph)
        if match:
            errors.setdefault(match["name"], match["when"])
        else:
            text.append(paragraph)
            for name in _ANY_ERROR.findall(paragraph):
                errors.setdefault(name, "")
    return Notes(tuple(text), tuple(ErrorNote(name, when) for name, when in errors.items()))


def listed_error_notes(lines: Iterable[str]) -> Notes:
    """Return the notes of a whole response: the names in a list (``- NAME``) are errors."""
    paragraphs = list(_paragraphs(lines))
    listed = [each for each in paragraphs if each.startswith("- ") and _ERROR_FIRST.fullmatch(each)]
    rest = tuple(each for each in paragraphs if each not in listed)
    return Notes(rest, error_notes(listed).errors)


def _paragraphs(lines: Iterable[str]) -> list[str]:
    """Join lines until an empty one, or one that starts an entry of a list."""
    found: list[list[str]] = [[]]
    for line in lines:
        if not line or line.startswith("- "):
            found.append([])
        if line:
            found[-1].append(line)
    return [" ".join(each) for each in found if each]
