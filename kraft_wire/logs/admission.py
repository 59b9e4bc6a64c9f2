"""Limit how much one trigger of a stream reads, and share the limit between clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Limit(NamedTuple):
    """The most offsets or bytes to read; None for no limit."""

    offsets: int | None = None
    size_bytes: int | None = None


UNLIMITED: Final = Limit()


def shares(lags: Mapping[str, int], count: int) -> dict[str, int]:
    """Divide ``count`` in proportion to the lags, so that all clusters catch up at the same time."""
    total = sum(lags.values())
    if not total:
        return dict.fromkeys(lags, 0)
    parts = {name: lag * count // total for name, lag in lags.items()}
    by_rest = sorted(lags, key=lambda name: (-(lags[name] * count % total), name))
    for name in by_rest[: count - sum(parts.values())]:
        parts[name] += 1
    return parts
