"""Define what the controller and the process of its exporters tell each other: lines of JSON over pipes."""

from __future__ import annotations

import msgspec

from kraft_wire.exporters.positions import Positions
from kraft_wire.exporters.settings import ExporterSettings

# --- to the exporters


class Begin(msgspec.Struct, frozen=True):
    """The first line: what to export, and from where."""

    cluster: str
    exporters: tuple[ExporterSettings, ...]
    positions: Positions
    high_watermark: int


class Committed(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Everything below ``high_watermark`` is committed."""

    high_watermark: int


class Finish(msgspec.Struct, frozen=True, tag=True):
    """Wait for what the sinks are getting, tell it, and end."""


Line = Committed | Finish
"""Each further line."""


# --- to the controller


class Exported(msgspec.Struct, frozen=True, tag=True):
    """The sink of an exporter has all records below ``position``."""

    exporter: str
    position: int


class Failing(msgspec.Struct, frozen=True, tag=True):
    """An attempt failed, so many in a row; the next one comes after a pause. ``retry_ms`` is None for an
    attempt that hangs. An error that nobody expected has a ``traceback``."""

    exporter: str
    problem: str
    failures: int
    retry_ms: int | None
    traceback: str = ""


class Recovered(msgspec.Struct, frozen=True, tag=True):
    """An exporter has exported records after failures."""

    exporter: str
    failures: int


class Restarted(msgspec.Struct, frozen=True, tag=True):
    """An exporter couldn't go on from its position. It begins again with the snapshot that ends at
    ``snapshot_end``; with the beginning of the log if that is None."""

    exporter: str
    position: int
    reason: str
    snapshot_end: int | None


class NoBase(msgspec.Struct, frozen=True, tag=True):
    """The state that an exporter's sink has couldn't be kept. If the log is deleted before the sink has its
    records, it gets the whole state."""

    exporter: str
    reason: str


Told = Exported | Failing | Recovered | Restarted | NoBase
"""A message of the exporters' process to the controller."""


def line_of(message: Begin | Line | Told) -> bytes:
    """Return a message as a line."""
    return msgspec.json.encode(message) + b"\n"


def told_in(line: bytes) -> Told:
    """Read a line that the exporters wrote. Raises msgspec.DecodeError."""
    told: Told = msgspec.json.decode(line, type=Told)
    return told
