"""Keep passwords out of logs and errors."""

from __future__ import annotations

from typing import Final

HIDDEN: Final = "[hidden]"


class Secret:
    """A text that ``repr`` and ``str`` hide."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text."""
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)
