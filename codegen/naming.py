"""Python's names for Kafka's."""

from __future__ import annotations

import builtins
import keyword
import re

_ACRONYM_THEN_WORD = re.compile(r"([A-Z]+)([A-Z][a-z])")
_WORD_THEN_CAPITAL = re.compile(r"([a-z0-9])([A-Z])")
RESERVED_CLASS_NAMES = frozenset(dir(builtins)) | {"Message", "Structure", "Uuid"}
"""Names that generated modules use themselves."""


def snake_case(name: str) -> str:
    """``ClusterId`` -> ``cluster_id``, ``ISRList`` -> ``isr_list``, ``KRaftVersion`` -> ``kraft_version``."""
    name = name.replace("KRaft", "Kraft")
    name = _ACRONYM_THEN_WORD.sub(r"\1_\2", name)
    snake = _WORD_THEN_CAPITAL.sub(r"\1_\2", name).lower()
    return snake + "_" if keyword.iskeyword(snake) else snake


def json_name(name: str) -> str:
    """The key in Kafka's JSON form: the first letter in lower case."""
    return name[0].lower() + name[1:]
