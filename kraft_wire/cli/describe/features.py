"""The screen ``features``: finalized levels, and the levels that all registered nodes support."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kraft_wire.log.control import KRAFT_VERSION
from kraft_wire.logs.metadata_at import MetadataThen
from kraft_wire.metadata.features.metadata_version import name_of
from kraft_wire.metadata.features.supported import METADATA_VERSION
from kraft_wire.metadata.registration import VersionRange

NOT_SUPPORTED: Final = (0, 0)


class FeatureRow(msgspec.Struct):
    """A feature. ``finalized`` is 0 if it isn't in use. Every registered broker and controller supports the
    levels from ``lowest`` to ``highest``; null if no node is registered, or no level suits all."""

    feature: str
    finalized: int
    version: str | None
    lowest: int | None
    highest: int | None


def feature_rows(then: MetadataThen) -> list[FeatureRow]:
    """Return the features by name."""
    levels = {**then.state.features.levels, KRAFT_VERSION: then.quorum.kraft_version}
    nodes = [broker.features for broker in then.state.brokers.values()]
    nodes += [controller.features for controller in then.state.controllers.values()]
    names = sorted({*levels, *(name for features in nodes for name in features)})
    return [_row(name, levels.get(name, 0), list(_ranges(nodes, name))) for name in names]


def _ranges(nodes: list[Mapping[str, VersionRange]], name: str) -> Iterator[VersionRange]:
    """Yield the levels that each node supports. Releases before a feature don't name it."""
    return (features.get(name, NOT_SUPPORTED) for features in nodes)


def _row(name: str, level: int, ranges: list[VersionRange]) -> FeatureRow:
    version = name_of(level) if name == METADATA_VERSION and level else None
    lowest = max((low for low, _ in ranges), default=0)
    highest = min((high for _, high in ranges), default=-1)
    if lowest > highest:
        return FeatureRow(name, level, version, None, None)
    return FeatureRow(name, level, version, lowest, highest)
