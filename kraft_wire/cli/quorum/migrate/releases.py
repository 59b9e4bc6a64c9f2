"""Which release of Kafka a node runs, judged by the features that it supports. No I/O.

Every release has a highest metadata.version of its own.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.cli.quorum.migrate.facts import Ranges
from kraft_wire.metadata.errors import FeatureError
from kraft_wire.metadata.features.metadata_version import FEATURE_NAME, name_of

FIRST_TO_UPGRADE_KRAFT_VERSION: Final = 26
"""metadata.version 4.1-IV0. Voters of Kafka 4.0 and older don't tell the leader their directory ids while
kraft.version is 0, and leaders of these releases accept an upgrade of kraft.version and don't carry it out
(KAFKA-16538, KAFKA-18979)."""
FIRST_BESIDE_KRAFT_WIRE: Final = 22
"""metadata.version 4.0-IV0."""
FIRST_TESTED: Final = 31
"""metadata.version 4.4-IV0: Kafka 4.4 is the release whose controllers and ours take turns in the tests."""


def highest_metadata_version(features: Ranges) -> int | None:
    """Return the highest metadata.version that a node supports; None if its features aren't known."""
    return features[FEATURE_NAME][1] if FEATURE_NAME in features else None


def supports(features: Ranges, name: str, level: int) -> bool:
    """Whether a node supports a level. A feature that it doesn't name is at level 0 only."""
    lowest, highest = features.get(name, (0, 0))
    return lowest <= level <= highest


def release_of(level: int) -> str:
    """Return the release that introduced a metadata.version, such as "4.4"; "" for one that is unknown."""
    try:
        return name_of(level).partition("-")[0]
    except FeatureError:
        return ""


def release_text(features: Ranges) -> str:
    """Return the release of a Java node, such as "Kafka 4.4"."""
    highest = highest_metadata_version(features)
    release = "" if highest is None else release_of(highest)
    return f"Kafka {release}" if release else "an unknown release of Kafka"
