"""Replace quotations, ``\\Q…\\E``, by escaped characters."""

from __future__ import annotations


def without_quotes(text: str) -> str:
    """Return the same expression without quotations. One without an end goes on to the end.

    Letters stay as they are, as in Java, where a quotation inside of ``\\p{…}`` is part of the name. A digit
    at the beginning is escaped, so that it can't go on a number before it.
    """
    parts: list[str] = []
    at = 0
    while at < len(text):
        if text.startswith("\\Q", at):
            end = text.find("\\E", at + 2)
            end = len(text) if end < 0 else end
            parts.append(_escaped(text[at + 2 : end]))
            at = end + 2
        else:
            size = 2 if text[at] == "\\" else 1
            parts.append(text[at : at + size])
            at += size
    return "".join(parts)


def _escaped(quoted: str) -> str:
    first = f"\\x3{quoted[0]}" if _is_digit(quoted[:1]) else ""
    rest = quoted[1:] if first else quoted
    return first + "".join(char if _is_plain(char) else f"\\{char}" for char in rest)


def _is_plain(char: str) -> bool:
    return char.isascii() and char.isalnum()


def _is_digit(char: str) -> bool:
    return char.isascii() and char.isdigit()
