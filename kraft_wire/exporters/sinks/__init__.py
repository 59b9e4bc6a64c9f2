"""Say what a sink is: the place where an exporter's records go. Each module here is one kind of sink.

A module has ``make_sink(settings) -> Sink``, and a row in ``kraft_wire/exporters/kinds.py``.
"""

from __future__ import annotations

from typing import Protocol

from kraft_wire.exporters.records import ExportBatch


class SinkFailed(Exception):
    """A sink can't take records now. The text says why, and what an operator can do."""


class Sink(Protocol):
    """A place for records. Calls come one at a time; each may take as long as it wants. After an error of any
    of them, ``close`` and ``open`` come before the same batch is exported again: that is how records are
    delivered at least once."""

    async def open(self) -> None:
        """Get ready. Raises SinkFailed, OSError."""

    async def export(self, batch: ExportBatch) -> None:
        """Store the records, and return when they stay stored, also after a power cut. Raises SinkFailed,
        OSError."""

    async def close(self) -> None:
        """Let go of files and connections, after ``open`` failed as well. Raises OSError."""
