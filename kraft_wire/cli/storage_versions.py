"""``kraft-wire storage version-mapping`` and ``feature-dependencies``: what goes with which release."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

from cyclopts import Parameter

from kraft_wire.cli.errors import EXIT_OK, CommandError
from kraft_wire.metadata import version
from kraft_wire.metadata.features import FEATURES, METADATA_VERSION

_LEVEL = re.compile(r"[+-]?[0-9]{1,5}")
MAX_LEVEL = 2**15 - 1


def version_mapping(*, release_version: Annotated[str | None, Parameter(alias="-r")] = None) -> int:
    """Print the levels that all features of a new cluster start with.

    Parameters
    ----------
    release_version
        The release, such as 4.0 or 4.0-IV3. The default is the newest stable one.
    """
    text = release_version or version.name_of(version.LATEST_PRODUCTION)
    level = version.parse_release_version(text, unstable=True)
    print(f"{METADATA_VERSION}={level} ({text})")
    for feature in FEATURES.values():
        print(f"{feature.name}={feature.default_level(level)}")
    return EXIT_OK


def feature_dependencies(*, feature: Annotated[Sequence[str], Parameter(alias="-f")]) -> int:
    """Print which levels of other features a feature's level needs.

    Parameters
    ----------
    feature
        FEATURE=LEVEL. May be given again and again.
    """
    for text in feature:
        name, level = parse_feature_level(text)
        if name == METADATA_VERSION:
            print(f"{name}={level} ({version.name_of(level)}) has no dependencies.")
        else:
            _print_needs(name, level, _needs(name, level))
    return EXIT_OK


def parse_feature_level(text: str) -> tuple[str, int]:
    """``name=level``; raises CommandError. Which names and levels there are is not looked at."""
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals or not name or not _LEVEL.fullmatch(level) or abs(int(level)) > MAX_LEVEL:
        raise CommandError(f"--feature {text!r} is not FEATURE=LEVEL, as in group.version=1")
    return name, int(level)


def _needs(name: str, level: int) -> Mapping[str, int]:
    if name not in FEATURES:
        raise CommandError(f"feature {name} is unknown; there are {', '.join([METADATA_VERSION, *FEATURES])}")
    return FEATURES[name].at(level, unstable=True).needs


def _print_needs(name: str, level: int, needs: Mapping[str, int]) -> None:
    if not needs:
        print(f"{name}={level} has no dependencies.")
        return
    print(f"{name}={level} requires:")
    for other, least in needs.items():
        release = f" ({version.name_of(least)})" if other == METADATA_VERSION else ""
        print(f"    {other}={least}{release}")
