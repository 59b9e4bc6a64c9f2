"""Check topic names by Kafka's rules."""

from __future__ import annotations

import re
from typing import Final

MAX_NAME_LENGTH: Final = 249

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def why_invalid(name: str) -> str | None:
    """Return the problem of a topic's name, or None (org.apache.kafka.common.internals.Topic)."""
    if not name:
        return "a topic's name must not be empty"
    if name in (".", ".."):
        return f"{name!r} is not a topic's name, because it would name a folder"
    if len(name) > MAX_NAME_LENGTH:
        return f"the topic's name has {len(name)} characters; the limit is {MAX_NAME_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return f"{name!r} is not a topic's name: use only ASCII letters, digits, '.', '_' and '-'"
    return None
