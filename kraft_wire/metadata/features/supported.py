"""Features: the supported ones, the levels of a new cluster, and the dependencies between levels.

Facts from Kafka 4.4.0: org.apache.kafka.server.common.Feature and its FeatureVersions, the rules of
kafka-storage format (org.apache.kafka.metadata.storage.Formatter), KIP-1022.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

import msgspec

from kraft_wire.log.control import KRAFT_VERSION as KRAFT_VERSION
from kraft_wire.metadata.errors import FeatureError
from kraft_wire.metadata.features import metadata_version
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord

METADATA_VERSION: Final = metadata_version.FEATURE_NAME
TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"


class FeatureLevel(msgspec.Struct, frozen=True):
    """A level of a feature.

    ``from_metadata_version``: new clusters at this metadata.version or above start with this level.
    ``needs``: the minimum levels of other features.
    """

    level: int
    from_metadata_version: int
    needs: Mapping[str, int] = {}


class Feature(msgspec.Struct, frozen=True):
    """A feature other than metadata.version: its levels, the lowest first, and the last stable one."""

    name: str
    levels: tuple[FeatureLevel, ...]
    latest_production: int

    def at(self, level: int, *, unstable: bool = False) -> FeatureLevel:
        """Return a level. Raises FeatureError if the feature doesn't have it."""
        found = next((known for known in self.levels if known.level == level), None)
        if found is None or (level > self.latest_production and not unstable):
            highest = self.levels[-1].level if unstable else self.latest_production
            raise FeatureError(f"{self.name} has no level {level}; use {self.levels[0].level} to {highest}")
        return found

    def default_level(self, metadata_version: int) -> int:
        """Return the level that a new cluster of this metadata.version starts with."""
        levels = [known.level for known in self.levels if known.from_metadata_version <= metadata_version]
        return levels[-1] if levels else self.levels[0].level


def _feature(name: str, *levels: tuple[int, Mapping[str, int]]) -> Feature:
    """Return a feature whose levels count up from 0, each given by its first metadata.version and its
    needs."""
    known = [FeatureLevel(0, metadata_version.MINIMUM)]
    known += [FeatureLevel(level, since, needs) for level, (since, needs) in enumerate(levels, 1)]
    return Feature(name, tuple(known), known[-1].level)


FEATURES: Final[Mapping[str, Feature]] = {
    feature.name: feature
    for feature in (
        _feature(KRAFT_VERSION, (21, {})),
        _feature(TRANSACTION_VERSION, (24, {}), (24, {})),
        _feature(GROUP_VERSION, (22, {})),
        _feature(ELIGIBLE_LEADER_REPLICAS_VERSION, (26, {METADATA_VERSION: 23})),
        _feature(SHARE_VERSION, (28, {}), (31, {})),
        _feature(STREAMS_VERSION, (29, {})),
    )
}


@cache
def supported_ranges(*, unstable: bool = False) -> Mapping[str, tuple[int, int]]:
    """Return the lowest and highest supported level of every feature, as a controller advertises and
    registers them."""
    highest = metadata_version.LATEST_TESTING if unstable else metadata_version.LATEST_PRODUCTION
    ranges = {METADATA_VERSION: (metadata_version.MINIMUM, highest)}
    for feature in FEATURES.values():
        last = feature.levels[-1].level if unstable else feature.latest_production
        ranges[feature.name] = (feature.levels[0].level, last)
    return ranges


def check_level(name: str, level: int, levels: Mapping[str, int], *, unstable: bool = False) -> None:
    """Check that a feature has this level and that ``levels``, the future levels of all features, allow it.

    Raises FeatureError, which names the feature and its needs. Not for metadata.version.
    """
    feature = FEATURES.get(name)
    if feature is None:
        raise FeatureError(f"feature {name} is unknown; supported are {', '.join(sorted(FEATURES))}")
    needs = dict(feature.at(level, unstable=unstable).needs)
    if level > 0:
        needs.setdefault(METADATA_VERSION, metadata_version.MINIMUM)
    for other, least in needs.items():
        if levels.get(other, 0) < least:
            text = f"{least} ({metadata_version.name_of(least)})" if other == METADATA_VERSION else str(least)
            raise FeatureError(f"{name} {level} needs {other} {text} or higher")


def initial_levels(
    release_version: int | None = None,
    overrides: Mapping[str, int] | None = None,
    *,
    dynamic_quorum: bool = True,
    unstable: bool = False,
) -> dict[str, int]:
    """Return the levels of all features that a new cluster starts with, including metadata.version and
    kraft.version.

    ``release_version`` is a metadata.version (``metadata_version.parse_release_version``), None for the
    latest. ``overrides`` are those of ``--feature NAME=LEVEL``. Raises FeatureError for an impossible
    combination.
    """
    chosen = dict(overrides or {})
    levels = {METADATA_VERSION: _release(release_version, chosen.pop(METADATA_VERSION, None), unstable)}
    unknown = sorted(set(chosen) - set(FEATURES))
    if unknown:
        raise FeatureError(f"feature {unknown[0]} is unknown; supported are {', '.join(sorted(FEATURES))}")
    for feature in FEATURES.values():
        if feature.name == KRAFT_VERSION:
            levels[KRAFT_VERSION] = _kraft_version(chosen.get(KRAFT_VERSION), dynamic_quorum)
        else:
            levels[feature.name] = chosen.get(feature.name, feature.default_level(levels[METADATA_VERSION]))
    for name, level in levels.items():
        if name != METADATA_VERSION:
            check_level(name, level, levels, unstable=unstable)
    return levels


def level_records(levels: Mapping[str, int]) -> list[tuple[FeatureLevelRecord, int]]:
    """Return the records that finalize these levels: metadata.version first, then by name, without
    kraft.version."""
    names = sorted(name for name, level in levels.items() if level > 0 and name != KRAFT_VERSION)
    names.sort(key=lambda name: name != METADATA_VERSION)
    return [(FeatureLevelRecord(name, levels[name]), 0) for name in names]


def bootstrap_records(
    release_version: int | None = None,
    overrides: Mapping[str, int] | None = None,
    *,
    dynamic_quorum: bool = True,
    unstable: bool = False,
) -> list[tuple[FeatureLevelRecord, int]]:
    """Return the records, with versions, that a new cluster's log starts with. The arguments are those of
    ``initial_levels``."""
    levels = initial_levels(release_version, overrides, dynamic_quorum=dynamic_quorum, unstable=unstable)
    return level_records(levels)


def _release(release_version: int | None, override: int | None, unstable: bool) -> int:
    if release_version is not None and override is not None:
        raise FeatureError(f"give either --release-version or --feature {METADATA_VERSION}=LEVEL, not both")
    highest = metadata_version.LATEST_TESTING if unstable else metadata_version.LATEST_PRODUCTION
    level = override if release_version is None else release_version
    if level is None:
        return highest
    if level > highest:
        raise FeatureError(f"{METADATA_VERSION} {metadata_version.name_of(level)} is not stable yet")
    metadata_version.name_of(level)
    return level


def _kraft_version(chosen: int | None, dynamic_quorum: bool) -> int:
    if chosen is None:
        return int(dynamic_quorum)
    if bool(chosen) != dynamic_quorum:
        raise FeatureError(
            f"{KRAFT_VERSION} {chosen} does not go with this quorum: --standalone, --initial-controllers and "
            "--no-initial-controllers make it dynamic (level 1), controller.quorum.voters static (level 0)"
        )
    return chosen
