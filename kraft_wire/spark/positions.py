"""Positions in clusters' logs, and their JSON: ``{"CLUSTER": {"epoch": 3, "offset": 107}}``.

They are the same for logs on disk and for a quorum over the wire, in options and in a stream's checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

_NotNegative = Annotated[int, msgspec.Meta(ge=0)]


class LogPosition(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Everything below ``offset`` has been read; ``epoch`` is that of the last record below.

    As in a log no two records have the same offset and the same epoch, the two tell whether a log still holds
    what was read. ``snapshot``: what is below hasn't been read yet, but is in the snapshot with this end.
    """

    epoch: _NotNegative
    offset: _NotNegative
    snapshot: bool = False

    def __str__(self) -> str:
        return f"offset {self.offset} of epoch {self.epoch}"


BEGINNING = LogPosition(0, 0)

Positions = dict[str, LogPosition]
"""By cluster. Whoever reads on from these begins a cluster that isn't there at its beginning; whoever reads
up to these reads no other clusters."""


def parse_positions(text: str) -> Positions:
    """From JSON. Raises ValueError."""
    return msgspec.json.decode(text, type=Positions)


def positions_from(tree: Mapping[str, Any]) -> Positions:
    """From what JSON's text stands for, which is what Spark hands over. Raises ValueError."""
    return msgspec.convert(dict(tree), Positions)


def positions_tree(positions: Mapping[str, LogPosition]) -> dict[str, Any]:
    """What ``positions_from`` takes."""
    tree: dict[str, Any] = msgspec.to_builtins({name: positions[name] for name in sorted(positions)})
    return tree


def positions_json(positions: Mapping[str, LogPosition]) -> str:
    """What ``parse_positions`` takes."""
    return msgspec.json.encode(positions_tree(positions)).decode()
