"""The events that the server logs, as its code has them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SERVER: Final = Path(__file__).parents[2] / "kraft_wire" / "server"
LOGGING: Final = frozenset({"info", "warning", "error", "report", "LogEvent"})


def _strings_of_calls(tree: ast.AST) -> Iterator[str]:
    """Yield the strings that calls of loggers, and findings to be logged, have among their arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in LOGGING:
                constants = [each.value for each in node.args if isinstance(each, ast.Constant)]
                yield from (value for value in constants if isinstance(value, str))


def logged_events() -> set[str]:
    """Return the events that aren't chosen by a condition."""
    return {text for path in SERVER.rglob("*.py") for text in _strings_of_calls(ast.parse(path.read_text()))}
