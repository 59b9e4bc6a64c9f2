"""Fixtures of the tests of the metadata."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kraft_wire.metadata.partitions.rare import WIDEST
from tests.support.narrow_columns import columns_hold


@pytest.fixture(params=[WIDEST, 3], ids=["all fit", "some are wide"], scope="module")
def column_width(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the columns hold lists of so many members; partitions with more replicas are wide."""
    with columns_hold(request.param):
        yield
