"""Provide the intervals that were open before the given records, which are none unless the records are a part
of the log."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

OpenRows = Callable[[str], DataFrame | None]
"""A function that returns the open rows of a derived table, by its name; None if nothing came before."""


def nothing_before(table: str) -> DataFrame | None:
    """Return None: the records begin where their logs do."""
    return None
