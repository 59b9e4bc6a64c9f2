"""What was open before the records at hand: nothing, unless they are a part of the log."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

OpenRows = Callable[[str], DataFrame | None]
"""The open rows of a derived table, by its name; None where there is nothing before."""


def nothing_before(table: str) -> DataFrame | None:
    """The records at hand begin where their logs do."""
    return None
