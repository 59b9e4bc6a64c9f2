"""Make text of a log fit for a terminal: names in it may have been made to deceive whoever reads them."""

from __future__ import annotations


def printable(line: str) -> str:
    """Return a line in which characters that aren't printable are shown as Python writes them; tabulators
    stay."""
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() or each == "\t" else _shown(each) for each in line)


def _shown(character: str) -> str:
    return character.encode("unicode_escape").decode()
