"""Remember what each exporter has exported, as offsets, and which reset that was after: the text of
``exporters.json``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Final

import msgspec

from kraft_wire.configs.exporter_orders import Start
from kraft_wire.log.errors import MalformedFile

POSITIONS_FILE: Final = "exporters.json"
"""Lies beside ``quorum-state``. Java's controllers ignore it."""

_WITHOUT_RESETS: Final = 1
_WITH_RESETS: Final = 2

Positions = dict[str, int]
"""By exporter, the offset after the last record that its sink has acknowledged. An exporter without a
position begins where its key ``start`` says."""


Resets = dict[str, str]
"""By exporter, the text of its last reset. Its position, if it has one, is from after that."""


class Kept(msgspec.Struct, frozen=True):
    """The contents of the file."""

    positions: Positions = {}
    resets: Resets = {}

    def of(self, exporters: Collection[str]) -> Kept:
        """Return those of these exporters only: one that was removed must not come back, nor hold anything
        up."""
        return Kept(
            {name: offset for name, offset in self.positions.items() if name in exporters},
            {name: reset for name, reset in self.resets.items() if name in exporters},
        )


class _Text(msgspec.Struct, omit_defaults=True):
    version: int
    cluster: str
    positions: dict[str, Annotated[int, msgspec.Meta(ge=0)]]
    resets: dict[str, str] = {}


def positions_text(cluster: str, kept: Kept) -> str:
    """Return the text of the file. Before the first reset it is one that older releases can read."""
    positions, resets = dict(sorted(kept.positions.items())), dict(sorted(kept.resets.items()))
    version = _WITH_RESETS if resets else _WITHOUT_RESETS
    return msgspec.json.encode(_Text(version, cluster, positions, resets)).decode() + "\n"


def parse_positions(text: str, cluster: str) -> Kept:
    """Read the file's text. Raises MalformedFile, also for the positions of another cluster."""
    try:
        read = msgspec.json.decode(text, type=_Text)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise MalformedFile(POSITIONS_FILE, str(error)) from None
    if read.version not in (_WITHOUT_RESETS, _WITH_RESETS):
        text = f"version {read.version} is unknown, expected {_WITHOUT_RESETS} or {_WITH_RESETS}"
        raise MalformedFile(POSITIONS_FILE, text)
    if read.cluster != cluster:
        raise MalformedFile(POSITIONS_FILE, f"holds positions of cluster {read.cluster}, not of {cluster}")
    return Kept(read.positions, read.resets)


def wanted_from(positions: Mapping[str, int], starts: Mapping[str, Start]) -> int | None:
    """Return the lowest offset that an exporter still needs; None if none of them needs any.

    ``starts`` has all configured exporters. One without a position needs what comes from the offset on that
    its key ``start`` names. If that isn't an offset, it begins with what there is.
    """
    needed = (positions.get(name, start) for name, start in starts.items())
    return min((offset for offset in needed if isinstance(offset, int)), default=None)
