"""Remember what each exporter has exported, as offsets: the text of ``exporters.json``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Final

import msgspec

from kraft_wire.exporters.settings import Start
from kraft_wire.log.errors import MalformedFile

POSITIONS_FILE: Final = "exporters.json"
"""Lies beside ``quorum-state``. Java's controllers ignore it."""

_VERSION: Final = 1

Positions = dict[str, int]
"""By exporter, the offset after the last record that its sink has acknowledged. An exporter without a
position begins where its key ``start`` says."""


class _Text(msgspec.Struct):
    version: int
    cluster: str
    positions: dict[str, Annotated[int, msgspec.Meta(ge=0)]]


def positions_text(cluster: str, positions: Mapping[str, int]) -> str:
    """Return the text of the file."""
    known = {name: positions[name] for name in sorted(positions)}
    return msgspec.json.encode(_Text(_VERSION, cluster, known)).decode() + "\n"


def parse_positions(text: str, cluster: str) -> Positions:
    """Read the file's text. Raises MalformedFile, also for the positions of another cluster."""
    try:
        read = msgspec.json.decode(text, type=_Text)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise MalformedFile(POSITIONS_FILE, str(error)) from None
    if read.version != _VERSION:
        raise MalformedFile(POSITIONS_FILE, f"version {read.version} is unknown, expected {_VERSION}")
    if read.cluster != cluster:
        raise MalformedFile(POSITIONS_FILE, f"holds positions of cluster {read.cluster}, not of {cluster}")
    return read.positions


def kept(positions: Mapping[str, int], exporters: Collection[str]) -> Positions:
    """Return the positions of these exporters only: one that was removed must not come back, nor hold
    anything up."""
    return {name: position for name, position in positions.items() if name in exporters}


def wanted_from(positions: Mapping[str, int], starts: Mapping[str, Start]) -> int | None:
    """Return the lowest offset that an exporter still needs; None if none of them needs any.

    ``starts`` has all configured exporters. One without a position needs what comes from the offset on that
    its key ``start`` names. If that isn't an offset, it begins with what there is.
    """
    needed = (positions.get(name, start) for name, start in starts.items())
    return min((offset for offset in needed if isinstance(offset, int)), default=None)
