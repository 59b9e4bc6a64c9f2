"""Let the columns of partitions hold few members, so that many partitions are wide."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kraft_wire.metadata.partitions import rare


@contextmanager
def columns_hold(members: int) -> Iterator[None]:
    """Partitions with a longer list than this are wide meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rare, "WIDEST", members)
        yield
