"""Fold long lines of generated Python at commas, ``or`` and ``and``, so that they are readable."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.code import INDENT

LIMIT = 110
_OPEN, _CLOSE = "([{", ")]}"


def fold_lines(lines: list[str]) -> list[str]:
    """Return the same program with every line shortened to LIMIT if it can be."""
    return [folded for line in lines for folded in fold(line)]


def fold(line: str) -> list[str]:
    """Return one logical line as one or more."""
    text = line.lstrip()
    if len(line) <= LIMIT or text.startswith(('"""', "#")):
        return [line]
    indent = line[: len(line) - len(text)]
    if text.startswith("from "):
        module, _, names = text.partition(" import ")
        return [f"{module} import (", *_filled(INDENT, names.split(", ")), ")"]
    if text.startswith(("if ", "elif ")) and text.endswith(":"):
        return _fold_test(indent, text)
    names, separator, rest = text.partition(" = ")
    if separator and _are_targets(names) and len(indent + names) > LIMIT - len(" = ("):
        return [f"{indent}(", *_filled(indent + INDENT, names.split(", ")), f"{indent}) = {rest}"]
    return _fold_bracket(indent, text)


def _are_targets(text: str) -> bool:
    """Whether these are several targets of an unpacking; brackets around one, or an annotation, mean
    something else."""
    return ", " in text and not any(mark in text for mark in "([:")


def _fold_test(indent: str, text: str) -> list[str]:
    word, _, test = text[:-1].partition(" ")
    operator = "or" if len(_split(test, " or ")) > 1 else "and"
    parts = _split(test, f" {operator} ")
    inner = indent + INDENT
    lines = [f"{inner}{f'{operator} ' if number else ''}{part}" for number, part in enumerate(parts)]
    return [f"{indent}{word} (", *lines, f"{indent}):"]


def _fold_bracket(indent: str, text: str) -> list[str]:
    """Fold inside the first bracket that holds several items, a conditional or a loop."""
    for start, end in _brackets(text):
        made, *loop = _split(text[start + 1 : end], " for ")
        if loop:
            body = [*fold(indent + INDENT + made), *_fold_loop(indent + INDENT, loop[0])]
            return [indent + text[: start + 1], *body, indent + text[end:]]
        parts = _split(made, ", ")
        one = len(parts) == 1
        if not one or len(_split(parts[0], " if ")) == 2:
            rows = [indent + INDENT + parts[0]] if one else _filled(indent + INDENT, parts)
            body = [line for row in rows for line in _fold_part(row, always=one)]
            return [indent + text[: start + 1], *body, indent + text[end:]]
    return [indent + text]


def _fold_loop(indent: str, loop: str) -> list[str]:
    """Fold the part after the ``for`` of a comprehension."""
    line = f"{indent}for {loop}"
    names, _, iterated = loop.partition(" in ")
    if len(line) <= LIMIT:
        return [line]
    return [
        f"{indent}for (",
        *_filled(indent + INDENT, names.rstrip(",").split(", ")),
        f"{indent}) in {iterated}",
    ]


def _fold_part(line: str, *, always: bool) -> list[str]:
    """Fold one item inside brackets; a conditional is folded at its test and its alternative."""
    text = line.lstrip()
    indent = line[: len(line) - len(text)]
    chosen, *rest = _split(text, " if ")
    test, *other = _split(rest[0], " else ") if len(rest) == 1 else [""]
    if not other or (len(line) <= LIMIT and not always):
        return fold(line)
    return [*fold(indent + chosen), f"{indent}if {test}", *fold(f"{indent}else {' else '.join(other)}")]


def _filled(indent: str, parts: list[str]) -> list[str]:
    """Return the parts with commas after them, as many on a line as fit."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + 2 <= LIMIT:
            lines[-1] += f" {part},"
        else:
            lines.append(f"{indent}{part},")
    return lines


def _brackets(text: str) -> Iterator[tuple[int, int]]:
    """Return the position of each opening bracket, with that of its closing bracket."""
    stack: list[int] = []
    found = []
    for position, character in enumerate(text):
        if character in _OPEN:
            stack.append(position)
        elif character in _CLOSE:
            found.append((stack.pop(), position))
    yield from sorted(found)


def _split(text: str, separator: str) -> list[str]:
    """Split at each separator that is inside no bracket."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if not depth and text.startswith(separator, position):
            parts.append(text[start:position])
            start = position + len(separator)
    parts.append(text[start:])
    return parts
