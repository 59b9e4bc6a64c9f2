"""Read text as Java does: what it trims, what it takes for a number, for true and for a duration.

Brokers parse the values of topics at their start, so a value that only Python understands keeps them from
starting, and one that only Java understands must not be refused. Rules: String, Integer, Double, Duration.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

WHITE_SPACE: Final = r"[ \t\n\x0b\f\r]"
"""The characters that ``\\s`` matches in Java's regular expressions."""

_TRIMMED: Final = "".join(map(chr, range(0x21)))
_LARGEST_UNIT: Final = 0xFFFF
_DOUBLE: Final = re.compile(
    r"[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
    r"|0[xX]([\da-fA-F]+\.?|[\da-fA-F]*\.[\da-fA-F]+)[pP][+-]?\d+)[fFdD]?)",
    re.ASCII,
)
_DURATION: Final = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?"
    r"(T(?=.)(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_UNITS_S: Final = (86_400, 3600, 60, 1)
_MOST_USUAL_DIGITS: Final = 20
_LONG: Final = 1 << 63
_INT: Final = 1 << 31


def trim(text: str) -> str:
    """Return the text without control characters and blanks at its ends (String.trim)."""
    return text.strip(_TRIMMED)


def equals_ignoring_case(one: str, other: str) -> bool:
    """Compare like String.equalsIgnoreCase, character by character."""
    return len(one) == len(other) and all(map(_are_alike, one, other))


def _are_alike(one: str, other: str) -> bool:
    if one == other or one.upper() == other.upper():
        return True
    return one.upper().lower() == other.upper().lower()


def split(text: str, separator: str = ",") -> list[str]:
    """Split like String.split: empty parts at the end are left out, but "" is one part."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [] if parts == [""] and text else parts


def parse_integer(text: str) -> int:
    """Return a whole number of any size (Integer.parseInt). Raises ValueError.

    Digits are those of any script, but only such as take one UTF-16 unit.
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if len(digits) <= _MOST_USUAL_DIGITS and digits.isascii() and digits.isdigit():
        return int(text)
    if not digits or any(ord(digit) > _LARGEST_UNIT for digit in digits):
        raise ValueError(f"{text!r} is not a whole number")
    number = 0
    for digit in digits:
        number = number * 10 + unicodedata.decimal(digit)
    return -number if text[0] == "-" else number


def parse_int32(text: str) -> int | None:
    """Return a whole number of 32 bits, or None if the text isn't one."""
    try:
        number = parse_integer(text)
    except ValueError:
        return None
    return number if -_INT <= number < _INT else None


def parse_double(text: str) -> float:
    """Return a number (Double.parseDouble). Raises ValueError."""
    text = trim(text)
    if not _DOUBLE.fullmatch(text):
        raise ValueError(f"{text!r} is not a number")
    if "x" in text or "X" in text:
        return _hexadecimal(text.rstrip("fFdD") if "p" in text.lower() else text)
    return float(text if text.endswith(("NaN", "Infinity")) else text.rstrip("fFdD"))


def _hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return float("-inf" if text.startswith("-") else "inf")


def is_duration_from_zero(text: str) -> bool:
    """Whether a text is a duration that isn't negative (Duration.parse, Duration.isNegative)."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.group(2, 4, 5, 6)):
        return False
    sign, days, _, hours, minutes, seconds, fraction = match.groups()
    parts = [
        int(part or 0) * unit for part, unit in zip((days, hours, minutes, seconds), _UNITS_S, strict=True)
    ]
    if any(not -_LONG <= part < _LONG for part in (*parts, sum(parts))):
        return False
    nanoseconds = int((fraction or "").ljust(9, "0") or 0)
    if (seconds or "").startswith("-"):
        nanoseconds = -nanoseconds
    total = sum(parts) * 10**9 + nanoseconds
    return (-total if sign == "-" else total) >= 0
