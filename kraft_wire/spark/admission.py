"""How much a stream's trigger may read, and how clusters share it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Limit(NamedTuple):
    """At most so many records or bytes; None for as many as there are."""

    offsets: int | None = None
    size_bytes: int | None = None


UNLIMITED: Final = Limit()


def shares(lags: Mapping[str, int], count: int) -> dict[str, int]:
    """``count`` in parts as large as the lags are to each other, no part larger than ``count``: so all catch
    up at the same time."""
    total = sum(lags.values())
    if not total:
        return dict.fromkeys(lags, 0)
    parts = {name: lag * count // total for name, lag in lags.items()}
    by_rest = sorted(lags, key=lambda name: (-(lags[name] * count % total), name))
    for name in by_rest[: count - sum(parts.values())]:
        parts[name] += 1
    return parts
