"""Read an expression character by character, as Java does with and without comments."""

from __future__ import annotations

from typing import Final, NoReturn

WHITE_SPACE: Final = " \t\n\x0b\f\r"
_LINE_ENDS: Final = "\n\r\x85\u2028\u2029"


class InvalidRegex(Exception):
    """The expression isn't one of Java's. The text says why."""


class Cursor:
    """A position in an expression.

    With ``has_comments``, the flag x, white space and comments from # to the end of a line don't count. With
    ``has_unix_lines``, the flag d, only a line feed ends a line.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.has_comments = False
        self.has_unix_lines = False

    def peek(self) -> str:
        """Return the next character that counts, "" at the end."""
        if self.has_comments:
            self._skip_comments()
        return self.raw()

    def take(self) -> str:
        """Take the next character that counts, "" at the end."""
        char = self.peek()
        self.at += 1
        return char

    def raw(self, ahead: int = 0) -> str:
        """Return the character at a distance, whether or not it counts, "" after the end."""
        at = self.at + ahead
        return self.text[at : at + 1]

    def take_raw(self) -> str:
        """Take the next character, whether or not it counts, "" at the end."""
        char = self.raw()
        self.at += 1
        return char

    def fail(self, reason: str) -> NoReturn:
        """Raise InvalidRegex with the reason and the place."""
        raise InvalidRegex(f"{reason}, at character {min(self.at, len(self.text))}")

    def _skip_comments(self) -> None:
        while (char := self.raw()) and (char in WHITE_SPACE or char == "#"):
            self.at += 1
            if char == "#":
                self._skip_line()

    def _skip_line(self) -> None:
        ends = "\n" if self.has_unix_lines else _LINE_ENDS
        while (char := self.raw()) and char not in ends:
            self.at += 1
