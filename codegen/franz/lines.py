"""Split a file in franz-go's definition language into lines, with the lines indented below them and the notes
above."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codegen.schema.errors import SchemaError

STEP = 2
"""The number of spaces by which the fields of a struct are indented."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line, with the comment lines directly above it and the lines indented below it."""

    file: str
    number: int
    text: str
    notes: tuple[str, ...] = ()
    below: tuple[Line, ...] = ()

    def error(self, problem: str) -> SchemaError:
        """Return the error to raise if the line is wrong."""
        return SchemaError(f"{self.file}:{self.number}", problem)


@dataclass(frozen=True, slots=True)
class _Raw:
    line: Line
    depth: int

    @property
    def is_note(self) -> bool:
        return self.line.text.startswith("//")


def read_lines(text: str, file: str) -> list[Line]:
    """Return the lines that aren't indented, each with the lines below it. ``file`` names the text in errors.

    A blank line ends a definition. Notes directly above a blank line belong to nothing and are left out.
    Raises SchemaError for wrong indentation.
    """
    found: list[Line] = []
    for block in _blocks(text, file):
        found.extend(_Block(block).read())
    return found


def _blocks(text: str, file: str) -> Iterator[list[_Raw]]:
    block: list[_Raw] = []
    for number, content in enumerate(text.split("\n"), 1):
        if content:
            block.append(_raw(content, file, number))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _raw(content: str, file: str, number: int) -> _Raw:
    line = Line(file, number, content.lstrip(" "))
    if content != content.rstrip() or "\t" in content:
        raise line.error("there is a tab, or a space at the end")
    depth, rest = divmod(len(content) - len(line.text), STEP)
    if rest:
        raise line.error(f"indented by {depth * STEP + rest} spaces; each level has {STEP}")
    return _Raw(line, depth)


class _Block:
    """The lines between two blank ones."""

    def __init__(self, raws: list[_Raw]) -> None:
        self.raws = raws
        self.next = 0

    def read(self) -> list[Line]:
        if all(raw.is_note for raw in self.raws):
            return []
        first, *others = self._level(0)
        for line in others:
            # Only an enum's closing bracket may directly follow a definition.
            if line.text != ")":
                raise line.error("a blank line is missing above this definition")
        return [first, *others]

    def _level(self, depth: int) -> list[Line]:
        """Return the lines of one level, until a line that is indented less."""
        found: list[Line] = []
        notes: list[str] = []
        while self.next < len(self.raws) and self.raws[self.next].depth >= depth:
            raw = self.raws[self.next]
            if raw.depth > depth:
                raise raw.line.error(
                    f"indented deeper than the fields around it, which have {depth * STEP} spaces"
                )
            self.next += 1
            if raw.is_note:
                notes.append(raw.line.text[2:].strip())
                continue
            found.append(
                Line(raw.line.file, raw.line.number, raw.line.text, tuple(notes), self._below(depth))
            )
            notes = []
        if notes:
            raise self.raws[self.next - 1].line.error(
                "a note stands above what it is about, and below this is nothing"
            )
        return found

    def _below(self, depth: int) -> tuple[Line, ...]:
        if self.next == len(self.raws) or self.raws[self.next].depth <= depth:
            return ()
        return tuple(self._level(depth + 1))
