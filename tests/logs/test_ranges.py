"""The range of a log that is read, by what was asked for and what there is."""

from __future__ import annotations

import pytest

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.logs.positions import BEGINNING, LogPosition
from kraft_wire.logs.ranges import DataLoss, beginning, newest_state, range_between
from kraft_wire.logs.store import LogBounds, LogRange

SNAPSHOTS = (SnapshotId(40, 1), SnapshotId(60, 1), SnapshotId(80, 2))
WHOLE = LogBounds("one", 0, LogPosition(3, 100), 80, SNAPSHOTS)
TRIMMED = LogBounds("one", 50, LogPosition(3, 100), 80, SNAPSHOTS)
HOPELESS = LogBounds("one", 50, LogPosition(3, 100), None, SNAPSHOTS[:1])
STARTS = {1: 0, 2: 70, 3: 90}


def holds(cluster: str, position: LogPosition) -> bool:
    """A log whose epochs begin at STARTS, without snapshots beside those in its bounds."""
    assert cluster == "one"
    if position.snapshot:
        return False
    return position.epoch in {
        max(epoch for epoch, start in STARTS.items() if start <= max(offset, 0))
        for offset in (position.offset - 1, position.offset)
    }


def between(bounds: LogBounds, start: LogPosition | None, end: LogPosition | None) -> LogRange:
    return range_between(bounds, start, end, holds)


def test_a_whole_log_begins_at_offset_0_and_a_trimmed_one_with_the_oldest_snapshot_that_reaches_it() -> None:
    assert beginning(WHOLE) == BEGINNING
    assert beginning(TRIMMED) == LogPosition(1, 60, snapshot=True)
    assert between(WHOLE, None, None) == LogRange("one", 0, None, None, 80)
    assert between(TRIMMED, None, None) == LogRange("one", 60, None, SnapshotId(60, 1), 80)
    assert between(TRIMMED, None, LogPosition(1, 60)) == LogRange("one", 60, 60, SnapshotId(60, 1), 80)


def test_the_newest_state_is_the_last_snapshot_that_lies_before_the_end() -> None:
    assert newest_state(WHOLE) == LogPosition(2, 80, snapshot=True)
    assert newest_state(WHOLE, 79) == LogPosition(1, 60, snapshot=True)
    assert newest_state(WHOLE, 39) == BEGINNING


@pytest.mark.parametrize("find", [beginning, newest_state])
def test_a_log_whose_beginning_nothing_holds_is_an_error(find: type) -> None:
    with pytest.raises(DataLoss, match=r"the log begins above offset 0, and no snapshot .* offsets 50 to"):
        find(HOPELESS)
    with pytest.raises(DataLoss, match="the state up to offset 55 was asked for"):
        find(TRIMMED, 55)


def test_a_range_that_is_there_is_read_as_it_was_asked_for() -> None:
    assert between(TRIMMED, LogPosition(1, 50), LogPosition(2, 80)) == LogRange("one", 50, 80, None, 80)
    assert between(WHOLE, LogPosition(1, 40, snapshot=True), LogPosition(3, 100)) == LogRange(
        "one", 40, 100, SnapshotId(40, 1), 80
    )


BEGIN = LogPosition(1, 60)
END = LogPosition(3, 100)
LOST = [
    pytest.param(LogPosition(1, 49), END, "start of the range is offset 49 .*deleted", id="trimmed"),
    pytest.param(BEGINNING, END, "start of the range is offset 0 .*deleted", id="trimmed from 0"),
    pytest.param(LogPosition(3, 101), END, "start of the range is offset 101 .*truncated", id="cut below"),
    pytest.param(LogPosition(2, 60), END, "offset 60 of epoch 2: the log was truncated", id="another epoch"),
    pytest.param(BEGIN, LogPosition(3, 101), "the end of the range is offset 101 ", id="beyond the end"),
    pytest.param(BEGIN, LogPosition(1, 80), "offset 80 of epoch 1: .*another epoch", id="end's epoch"),
    pytest.param(LogPosition(1, 61), BEGIN, "its end is before it, offset 60", id="backwards"),
    pytest.param(LogPosition(1, 41, snapshot=True), END, "no such snapshot", id="snapshot gone"),
]


@pytest.mark.parametrize(("start", "end", "what"), LOST)
def test_a_range_that_is_not_there_is_an_error_that_says_what_there_is(
    start: LogPosition, end: LogPosition, what: str
) -> None:
    with pytest.raises(DataLoss, match=f"cluster one: .*{what}.*failOnDataLoss=false") as caught:
        between(TRIMMED, start, end)
    assert caught.value.cluster == "one"


@pytest.mark.parametrize(("start", "end", "what"), LOST)
def test_where_that_is_wanted_it_starts_over_from_the_snapshot(
    start: LogPosition, end: LogPosition, what: str
) -> None:
    found = range_between(TRIMMED, start, end, holds, fail_on_data_loss=False)
    snapshot_id = SnapshotId(60, 1) if end.offset < 80 else SnapshotId(80, 2)
    last = min(end.offset, 100)
    assert found == LogRange("one", snapshot_id.end_offset, last, snapshot_id, 80), what
