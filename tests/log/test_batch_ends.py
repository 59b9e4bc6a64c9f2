"""Where the batches of the log end, as far as it is known."""

from __future__ import annotations

import pytest

from kraft_wire.log.batch_ends import BatchEnds


def ends() -> BatchEnds:
    """The log began before offset 10; since then it got batches up to 13, 14 and 20."""
    made = BatchEnds(10)
    for end in (13, 14, 20):
        made.append(end)
    return made


@pytest.mark.parametrize(
    ("offset", "end"), [(3, 3), (10, 10), (12, 10), (13, 13), (14, 14), (19, 14), (20, 20), (25, 20)]
)
def test_nothing_ends_in_the_middle_of_a_batch(offset: int, end: int) -> None:
    assert ends().at_or_below(offset) == end


def test_a_truncation_forgets_what_it_takes() -> None:
    made = ends()
    made.truncate(14)
    made.append(17)
    assert [made.at_or_below(offset) for offset in (13, 16, 17)] == [13, 14, 17]
    made.truncate(4)
    assert [made.at_or_below(offset) for offset in (3, 4, 9)] == [3, 4, 4]


def test_what_is_committed_is_forgotten() -> None:
    made = ends()
    made.forget_below(14)
    assert [made.at_or_below(offset) for offset in (11, 14, 19, 20)] == [11, 14, 14, 20]
    made.forget_below(13)
    assert made.at_or_below(13) == 13
