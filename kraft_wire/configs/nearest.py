"""Suggest the right word for a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """Return "; the nearest is …" for the end of an error, or "" if no known word is near.

    Case and leading dashes don't count.
    """
    found = nearest_of(word, known)
    return "" if found is None else f"; the nearest is {found}"


def nearest_of(word: str, known: Iterable[str]) -> str | None:
    """Return the nearest known word; None if none is near."""
    from difflib import get_close_matches  # only needed for an error

    by_key = {_key(each): each for each in known}
    found = get_close_matches(_key(word), by_key, n=1)
    return by_key[found[0]] if found else None


def _key(word: str) -> str:
    return word.lstrip("-").lower()
