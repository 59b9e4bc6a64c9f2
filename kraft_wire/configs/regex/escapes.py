"""Parse what follows a backslash, inside and outside of character classes."""

from __future__ import annotations

import unicodedata
from typing import Final

from kraft_wire.configs.regex.cursor import Cursor
from kraft_wire.configs.regex.properties import is_property

_CLASSES: Final = "DHSVWdhsvw"
_CONTROLS: Final = {"a": "\x07", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_OCTAL: Final = "01234567"
_HEXADECIMAL: Final = "0123456789abcdefABCDEF"
_LAST_CODE_POINT: Final = 0x10FFFF


def is_letter_or_digit(char: str) -> bool:
    """Whether a character is an ASCII letter or digit."""
    return char.isascii() and char.isalnum()


def parse_property(cursor: Cursor, *, is_unicode: bool) -> None:
    """Parse a property: one letter, or a name in braces. The cursor is after the p or P."""
    if cursor.peek() == "{":
        cursor.take_raw()
        name = _until_brace(cursor, "the property has no }")
    else:
        name = cursor.take()
    if not is_property(name, is_unicode=is_unicode):
        cursor.fail(f"there is no property {name!r}")


def parse_member(cursor: Cursor) -> str | None:
    """Parse an escape that may be in a character class. The cursor is after the backslash.

    Returns the character, or None for a predefined class, such as ``\\d``.
    """
    char = cursor.take_raw()
    if char in _CLASSES and char:
        return None
    if char in _CONTROLS:
        return _CONTROLS[char]
    match char:
        case "0":
            return _octal(cursor)
        case "x":
            return _hexadecimal(cursor)
        case "u":
            return _utf16(cursor)
        case "c":
            return _control(cursor)
        case "N":
            return _named(cursor)
    if not char or is_letter_or_digit(char):
        cursor.fail(f"there is no escape \\{char}")
    return char


def _until_brace(cursor: Cursor, fault: str) -> str:
    end = cursor.text.find("}", cursor.at)
    if end < 0:
        cursor.fail(fault)
    name = cursor.text[cursor.at : end]
    cursor.at = end + 1
    return name


def _octal(cursor: Cursor) -> str:
    """Up to three digits, and at most 0377."""
    digits = ""
    while (char := cursor.peek()) and char in _OCTAL and len(digits) < (3 if digits[:1] < "4" else 2):
        digits += cursor.take()
    if not digits:
        cursor.fail("\\0 needs an octal digit")
    return chr(int(digits, 8))


def _hexadecimal(cursor: Cursor) -> str:
    """Two digits, or any number of them in braces."""
    if cursor.peek() != "{":
        return _digits(cursor, 2)
    cursor.take()
    digits = ""
    while (char := cursor.peek()) and char in _HEXADECIMAL:
        digits += cursor.take()
    if not digits or int(digits, 16) > _LAST_CODE_POINT or cursor.take() != "}":
        cursor.fail("\\x{ needs the number of a character and a }")
    return chr(int(digits, 16))


def _utf16(cursor: Cursor) -> str:
    """Four digits. Two surrogates after each other are one character."""
    char = _digits(cursor, 4)
    if "\ud800" <= char <= "\udbff" and cursor.raw() == "\\" and cursor.raw(1) == "u":
        start = cursor.at
        cursor.at += 2
        low = _digits(cursor, 4)
        if "\udc00" <= low <= "\udfff":
            return (char + low).encode("utf-16", "surrogatepass").decode("utf-16")
        cursor.at = start
    return char


def _digits(cursor: Cursor, count: int) -> str:
    digits = ""
    for _ in range(count):
        char = cursor.take()
        if not char or char not in _HEXADECIMAL:
            cursor.fail(f"{count} hexadecimal digits are missing")
        digits += char
    return chr(int(digits, 16))


def _control(cursor: Cursor) -> str:
    char = cursor.take()
    if not char:
        cursor.fail("\\c needs a character")
    return chr(ord(char) ^ 64)


def _named(cursor: Cursor) -> str:
    if cursor.take() != "{":
        cursor.fail("\\N needs a name in braces")
    name = _until_brace(cursor, "the name has no }")
    try:
        found = unicodedata.lookup(name.strip())
    except KeyError:
        cursor.fail(f"there is no character {name!r}")
    return found[0]
