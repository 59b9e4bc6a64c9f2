"""Parse a regular expression of Java: alternatives, groups, quantifiers, assertions, back references."""

from __future__ import annotations

from typing import Final, NamedTuple

from kraft_wire.configs.regex.character_class import MOST_LEVELS, parse_class
from kraft_wire.configs.regex.cursor import Cursor
from kraft_wire.configs.regex.cursor import InvalidRegex as InvalidRegex
from kraft_wire.configs.regex.escapes import is_letter_or_digit, parse_member, parse_property
from kraft_wire.configs.regex.quotes import without_quotes

_ASSERTIONS: Final = "ABGZbz"
_FLAGS: Final = "imsducxU"
_MOST_REPETITIONS: Final = (1 << 31) - 1
_MANY_DIGITS: Final = 12


def check_regex(text: str) -> None:
    """Raise InvalidRegex if Java doesn't accept the expression.

    Stricter than Java: a look-behind has no ``*``, no ``+`` and no count without a maximum, of which Java
    accepts some, where the sum of its lengths overflows; and at most 100 groups are in each other.
    """
    _Parser(without_quotes(text)).parse()


class _Shape(NamedTuple):
    """What a look-behind needs to know of a part: is its length bounded, and is there no choice in it."""

    is_bounded: bool
    is_fixed: bool

    def then(self, other: _Shape) -> _Shape:
        """Return the shape of two parts after each other."""
        return _Shape(self.is_bounded and other.is_bounded, self.is_fixed and other.is_fixed)


_PLAIN: Final = _Shape(is_bounded=True, is_fixed=True)
_CHOICE: Final = _Shape(is_bounded=True, is_fixed=False)
_UNBOUNDED: Final = _Shape(is_bounded=False, is_fixed=False)


class _Parser:
    """Parses one expression. Each part returns its shape."""

    def __init__(self, text: str) -> None:
        self._cursor = Cursor(text)
        self._names: set[str] = set()
        self._is_unicode = False
        self._level = 0

    def parse(self) -> None:
        self._alternatives()
        if self._cursor.peek():
            self._cursor.fail("a ) without a (")

    def _alternatives(self) -> _Shape:
        shape = self._sequence()
        while self._cursor.peek() == "|":
            self._cursor.take()
            shape = shape.then(self._sequence())._replace(is_fixed=False)
        return shape

    def _sequence(self) -> _Shape:
        shape = _PLAIN
        while (char := self._cursor.peek()) not in ("", "|", ")"):
            shape = shape.then(self._element(char))
        return shape

    def _element(self, char: str) -> _Shape:
        """Parse one element with its quantifier. A count may stand alone, and then repeats nothing."""
        cursor = self._cursor
        shape = _PLAIN
        match char:
            case "(":
                return self._group()
            case "[":
                parse_class(cursor, is_unicode=self._is_unicode, level=self._level)
            case "\\":
                cursor.take_raw()
                shape = self._escape()
            case "?" | "*" | "+":
                cursor.fail(f"nothing before {char}")
            case "{":
                pass
            case _:
                cursor.take()
        return self._quantifier(shape)

    # Escapes.

    def _escape(self) -> _Shape:
        """Parse what follows a backslash. A back reference has no bounded length."""
        cursor = self._cursor
        char = cursor.raw()
        if char in ("p", "P"):
            cursor.take_raw()
            parse_property(cursor, is_unicode=self._is_unicode)
        elif char == "k" or (char in "123456789" and char):
            cursor.take_raw()
            self._reference(char)
            return _UNBOUNDED
        elif char == "X":
            cursor.take_raw()
            return _CHOICE
        elif char in ("R", *_ASSERTIONS):
            cursor.take_raw()
            if char == "b" and cursor.text.startswith("{g}", cursor.at):
                cursor.at += len("{g}")
        else:
            parse_member(cursor)
        return _PLAIN

    def _reference(self, char: str) -> None:
        """Parse the name of a group, which must be before. Numbers of groups that don't exist are fine."""
        if char != "k":
            return
        if self._cursor.take() != "<":
            self._cursor.fail("\\k needs <NAME>")
        name = self._name(self._cursor.take())
        if name not in self._names:
            self._cursor.fail(f"there is no group {name} before")

    def _name(self, first: str) -> str:
        name, char = "", first
        while char and is_letter_or_digit(char) and (name or not char.isdigit()):
            name += char
            char = self._cursor.take()
        if not name or char != ">":
            self._cursor.fail("a name has letters and digits, begins with a letter and ends with >")
        return name

    # Groups.

    def _group(self) -> _Shape:
        cursor = self._cursor
        flags = cursor.has_comments, cursor.has_unix_lines, self._is_unicode
        cursor.take_raw()
        is_behind, is_assertion = False, False
        if cursor.peek() == "?":
            cursor.take_raw()
            kind = self._kind()
            if not kind:
                return _PLAIN  # only flags, which hold up to the end of the group around
            is_behind, is_assertion = kind.startswith("<"), kind != ":"
        shape = self._body()
        if is_behind and not shape.is_bounded:
            cursor.fail("a look-behind without a greatest length")
        cursor.has_comments, cursor.has_unix_lines, self._is_unicode = flags
        return self._quantifier(_PLAIN if is_assertion else shape)

    def _body(self) -> _Shape:
        self._level += 1
        if self._level > MOST_LEVELS:
            self._cursor.fail(f"more than {MOST_LEVELS} levels")
        shape = self._alternatives()
        if self._cursor.take() != ")":
            self._cursor.fail("a ( without a )")
        self._level -= 1
        return shape

    def _kind(self) -> str:
        """Parse what follows ``(?``.

        Returns ":" for a group, "=" or "<" for a look-ahead or look-behind, "" for flags alone.
        """
        char = self._cursor.take_raw()
        match char:
            case ":" | ">":
                return ":"
            case "=" | "!":
                return "="
            case "<":
                return self._named_or_behind()
        self._cursor.at -= 1
        return self._flags()

    def _named_or_behind(self) -> str:
        char = self._cursor.take()
        if char in ("=", "!"):
            return "<"
        name = self._name(char)
        if name in self._names:
            self._cursor.fail(f"a second group {name}")
        self._names.add(name)
        return ":"

    def _flags(self) -> str:
        is_set = True
        while True:
            char = self._cursor.take()
            if char == "-" and is_set:
                is_set = False
            elif char and char in _FLAGS:
                self._set_flag(char, is_set)
            else:
                break
        if char not in (")", ":"):
            self._cursor.fail("an unknown flag or kind of group")
        return char.strip(")")

    def _set_flag(self, flag: str, is_set: bool) -> None:
        match flag:
            case "x":
                self._cursor.has_comments = is_set
            case "d":
                self._cursor.has_unix_lines = is_set
            case "U":
                self._is_unicode = is_set

    # Quantifiers.

    def _quantifier(self, shape: _Shape) -> _Shape:
        """Parse a quantifier, if there is one, greedy, reluctant or possessive.

        Java knows no greatest length of something with a choice in it that is counted, if it may step back.
        """
        cursor = self._cursor
        match cursor.peek():
            case "?":
                cursor.take()
                counted = _CHOICE
            case "*" | "+":
                cursor.take()
                counted = _UNBOUNDED
            case "{":
                counted = self._count()
                if not shape.is_fixed and cursor.peek() != "+":
                    counted = _UNBOUNDED
            case _:
                return shape
        if cursor.peek() in ("?", "+"):
            cursor.take()
        return shape.then(counted)

    def _count(self) -> _Shape:
        """Parse {MINIMUM}, {MINIMUM,} or {MINIMUM,MAXIMUM}."""
        cursor = self._cursor
        cursor.take_raw()
        if not _is_digit(cursor.raw()):
            cursor.fail("{ needs a number")
        least = most = self._number()
        is_bounded = True
        if cursor.peek() == ",":
            cursor.take()
            is_bounded = cursor.peek() != "}"
            most = self._number() if is_bounded else least
        if cursor.take() != "}":
            cursor.fail("a { without a }")
        if not least <= most <= _MOST_REPETITIONS:
            cursor.fail("impossible numbers of repetitions")
        return _Shape(is_bounded, is_fixed=is_bounded and least == most)

    def _number(self) -> int:
        """Parse a number. All that are too large are the same."""
        digits = ""
        while _is_digit(self._cursor.peek()):
            digits += self._cursor.take()
        digits = digits.lstrip("0")
        return int(digits or 0) if len(digits) < _MANY_DIGITS else _MOST_REPETITIONS + 1


def _is_digit(char: str) -> bool:
    return char.isascii() and char.isdigit()
