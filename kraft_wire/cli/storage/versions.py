"""``kraft-wire storage random-uuid``, ``version-mapping`` and ``feature-dependencies``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

from cyclopts import Parameter

from kraft_wire.cli.errors import EXIT_OK, UsageError
from kraft_wire.configs.nearest import nearest
from kraft_wire.metadata.features import metadata_version
from kraft_wire.metadata.features.supported import FEATURES, METADATA_VERSION
from kraft_wire.server.entropy import SystemEntropy

_LEVEL = re.compile(r"[+-]?[0-9]{1,5}")
MAX_LEVEL = 2**15 - 1


def random_uuid() -> int:
    """Print a random id for a new cluster."""
    print(SystemEntropy().uuid())
    return EXIT_OK


def version_mapping(
    *,
    release_version: Annotated[
        str | None,
        Parameter(alias="-r", show_default=metadata_version.name_of(metadata_version.LATEST_PRODUCTION)),
    ] = None,
) -> int:
    """Print the levels that all features of a new cluster start with.

    For example:

        kraft-wire storage version-mapping -r 4.0

    Parameters
    ----------
    release_version
        The release, such as 4.0 or 4.0-IV3.
    """
    text = release_version or metadata_version.name_of(metadata_version.LATEST_PRODUCTION)
    level = metadata_version.parse_release_version(text, unstable=True)
    print(f"{METADATA_VERSION}={level} ({text})")
    for feature in FEATURES.values():
        print(f"{feature.name}={feature.default_level(level)}")
    return EXIT_OK


def feature_dependencies(*, feature: Annotated[Sequence[str], Parameter(alias="-f")]) -> int:
    """Print the levels of other features that a feature's level needs.

    For example:

        kraft-wire storage feature-dependencies -f transaction.version=2 -f group.version=1

    Parameters
    ----------
    feature
        A FEATURE=LEVEL. Can be given several times.
    """
    for text in feature:
        name, level = parse_feature_level(text)
        if name == METADATA_VERSION:
            print(f"{name}={level} ({metadata_version.name_of(level)}) has no dependencies.")
        else:
            _print_needs(name, level, _needs(name, level))
    return EXIT_OK


def parse_feature_level(text: str) -> tuple[str, int]:
    """Split ``name=level``, without checking that they exist. Raises UsageError."""
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals or not name or not _LEVEL.fullmatch(level) or abs(int(level)) > MAX_LEVEL:
        raise UsageError(f"--feature {text!r} is not FEATURE=LEVEL, as in group.version=1")
    return name, int(level)


def _needs(name: str, level: int) -> Mapping[str, int]:
    if name not in FEATURES:
        known = (METADATA_VERSION, *FEATURES)
        raise UsageError(f"feature {name} is unknown{nearest(name, known)}; known are {', '.join(known)}")
    return FEATURES[name].at(level, unstable=True).needs


def _print_needs(name: str, level: int, needs: Mapping[str, int]) -> None:
    if not needs:
        print(f"{name}={level} has no dependencies.")
        return
    print(f"{name}={level} requires:")
    for other, least in needs.items():
        release = f" ({metadata_version.name_of(least)})" if other == METADATA_VERSION else ""
        print(f"    {other}={least}{release}")
