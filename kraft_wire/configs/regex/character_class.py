"""Parse character classes: ``[a-z&&[^aeiou]]``."""

from __future__ import annotations

from typing import Final

from kraft_wire.configs.regex.cursor import Cursor
from kraft_wire.configs.regex.escapes import parse_member, parse_property

MOST_LEVELS: Final = 100
"""The limit for groups and classes in each other. Java's depends on the size of its stack."""


def parse_class(cursor: Cursor, *, is_unicode: bool, level: int) -> None:
    """Parse a class with its brackets. The cursor is at the first."""
    if level > MOST_LEVELS:
        cursor.fail(f"more than {MOST_LEVELS} levels")
    cursor.take_raw()
    if cursor.peek() == "^" and cursor.text[cursor.at - 1] == "[":
        cursor.take_raw()
    _Members(cursor, is_unicode, level).parse()
    cursor.take_raw()


class _Members:
    """The members of one class."""

    def __init__(self, cursor: Cursor, is_unicode: bool, level: int) -> None:
        self._cursor = cursor
        self._is_unicode = is_unicode
        self._level = level

    def parse(self) -> None:
        """Parse up to the closing bracket. A bracket before the first member is a member."""
        cursor, has_members = self._cursor, False
        while (char := cursor.peek()) != "]" or not has_members:
            if not char:
                cursor.fail("the character class has no ]")
            if char == "&" and cursor.raw(1) == "&":
                self._intersection(has_members)
            elif char == "[":
                self._nested()
            else:
                self._range()
            has_members = True

    def _nested(self) -> None:
        parse_class(self._cursor, is_unicode=self._is_unicode, level=self._level + 1)

    def _intersection(self, has_left: bool) -> None:
        self._cursor.at += 2
        has_right = False
        while self._cursor.peek() not in ("]", "&"):
            if self._cursor.peek() == "[":
                self._nested()
            else:
                self._right_side()
            has_right = True
        if not has_left and not has_right:
            self._cursor.fail("an intersection of nothing")

    def _right_side(self) -> None:
        if self._level >= MOST_LEVELS:
            self._cursor.fail(f"more than {MOST_LEVELS} levels")
        _Members(self._cursor, self._is_unicode, self._level + 1).parse()

    def _range(self) -> None:
        """Parse a character, a range of them, or a predefined class. A minus at the end is a character."""
        cursor = self._cursor
        low = self._member()
        if low is None or cursor.peek() != "-" or cursor.raw(1) in ("[", "]"):
            return
        cursor.take()
        high = self._end_of_range()
        if high is None or high < low:
            cursor.fail(f"the range from {low!r} to {high!r} is empty")

    def _member(self) -> str | None:
        cursor = self._cursor
        if cursor.peek() != "\\":
            return cursor.take()
        cursor.take_raw()
        if cursor.raw() in ("p", "P"):
            cursor.take_raw()
            parse_property(cursor, is_unicode=self._is_unicode)
            return None
        if cursor.raw() == "v" and cursor.raw(1) == "-":
            cursor.take_raw()
            return "\x0b"  # in a range it is the one character, elsewhere all vertical white space
        return parse_member(cursor)

    def _end_of_range(self) -> str | None:
        cursor = self._cursor
        if cursor.peek() != "\\":
            return cursor.take() or None
        cursor.take_raw()
        if cursor.raw() == "v":
            cursor.take_raw()
            return "\x0b"
        return parse_member(cursor)
