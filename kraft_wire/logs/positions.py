"""Hold positions in clusters' logs, and convert them to JSON: ``{"CLUSTER": {"epoch": 3, "offset": 107}}``.

Positions are the same for logs on disk and for a quorum over the wire, in options and in a stream's
checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

_NotNegative = Annotated[int, msgspec.Meta(ge=0)]


class LogPosition(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The position after the last record that was read: ``offset`` is the next one, ``epoch`` that of the
    last record.

    No two records of a log have the same offset and the same epoch. So both together show whether a log still
    holds the records that were read. ``snapshot``: the records before ``offset`` haven't been read yet; the
    snapshot with this end holds their outcome.
    """

    epoch: _NotNegative
    offset: _NotNegative
    snapshot: bool = False

    def __str__(self) -> str:
        return f"offset {self.offset} of epoch {self.epoch}"


BEGINNING = LogPosition(0, 0)

Positions = dict[str, LogPosition]
"""Positions by cluster. As a start, clusters that aren't named begin at their beginning; as an end, clusters
that aren't named aren't read."""


def parse_positions(text: str) -> Positions:
    """Parse JSON text. Raises ValueError."""
    return msgspec.json.decode(text, type=Positions)


def positions_from(tree: Mapping[str, Any]) -> Positions:
    """Convert decoded JSON, which Spark passes. Raises ValueError."""
    return msgspec.convert(dict(tree), Positions)


def positions_tree(positions: Mapping[str, LogPosition]) -> dict[str, Any]:
    """Return decoded JSON, for ``positions_from``."""
    tree: dict[str, Any] = msgspec.to_builtins({name: positions[name] for name in sorted(positions)})
    return tree


def positions_json(positions: Mapping[str, LogPosition]) -> str:
    """Return JSON text, for ``parse_positions``."""
    return msgspec.json.encode(positions_tree(positions)).decode()
