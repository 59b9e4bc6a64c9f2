"""What an exporter does next."""

from __future__ import annotations

from random import Random

import pytest

from kraft_wire.configs.exporter_orders import Start
from kraft_wire.exporters.cursor import (
    PACE_MS,
    Cursor,
    LogView,
    Look,
    Open,
    ReadLog,
    ReadSnapshot,
    Restart,
    Send,
    Wait,
)
from kraft_wire.exporters.retries import FIRST_PAUSE_MS
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.own_messages.resync import Resync

NOW_MS = 1_000_000
SNAPSHOT = SnapshotId(40, 2)


def _looked(cursor: Cursor, view: LogView) -> Restart | None:
    assert cursor.next_step(NOW_MS) == Look()
    return cursor.looked(view)


@pytest.mark.parametrize(
    ("start", "position", "view", "restart", "step", "known"),
    [
        # Without a position the key says where.
        ("snapshot+tail", None, LogView(0, None), None, ReadLog(0, 100), None),
        ("snapshot+tail", None, LogView(0, SNAPSHOT), None, ReadSnapshot(SNAPSHOT), None),
        ("tail", None, LogView(0, SNAPSHOT), None, Wait(None), 100),
        (70, None, LogView(0, SNAPSHOT), None, ReadLog(70, 100), None),
        (0, None, LogView(0, SNAPSHOT), None, ReadLog(0, 100), None),
        (200, None, LogView(0, SNAPSHOT), None, Wait(None), None),
        (
            7,
            None,
            LogView(40, SNAPSHOT),
            Restart(7, "the log begins at offset 40", 40),
            ReadSnapshot(SNAPSHOT),
            None,
        ),
        # A position counts more than the key.
        ("tail", 50, LogView(0, SNAPSHOT), None, ReadLog(50, 100), 50),
        ("snapshot+tail", 100, LogView(0, SNAPSHOT), None, Wait(None), 100),
        (7, 40, LogView(40, SNAPSHOT), None, ReadLog(40, 100), 40),
        (
            "tail",
            39,
            LogView(40, SNAPSHOT),
            Restart(39, "the log begins at offset 40", 40),
            ReadSnapshot(SNAPSHOT),
            None,
        ),
        (
            "tail",
            101,
            LogView(0, None),
            Restart(101, "only offsets below 100 are committed: the log has lost records", None),
            ReadLog(0, 100),
            None,
        ),
    ],
)
def test_where_an_exporter_begins(
    start: Start,
    position: int | None,
    view: LogView,
    restart: Restart | None,
    step: object,
    known: int | None,
) -> None:
    cursor = Cursor(start, position, 100)
    assert _looked(cursor, view) == restart
    assert cursor.next_step(NOW_MS) == step
    assert cursor.position == known


def _at_end() -> Cursor:
    """Return a cursor that has exported everything below 100, with its sink open."""
    cursor = Cursor("tail", 90, 100)
    _looked(cursor, LogView(0, None))
    cursor.has_read(100, NOW_MS, has_records=True, is_backlog=False)
    assert cursor.next_step(NOW_MS) == Open()
    cursor.opened()
    assert cursor.next_step(NOW_MS) == Send()
    cursor.sent()
    return cursor


def test_a_position_is_what_the_sink_has() -> None:
    cursor = Cursor("tail", 90, 100)
    _looked(cursor, LogView(0, None))
    cursor.has_read(100, NOW_MS, has_records=True, is_backlog=False)
    assert cursor.position == 90
    cursor.opened()
    assert cursor.position == 90
    cursor.sent()
    assert cursor.position == 100
    assert cursor.next_step(NOW_MS) == Wait(None)


def test_new_records_are_read_together_at_a_pace() -> None:
    cursor = _at_end()
    cursor.advanced(101)
    cursor.advanced(102)
    assert cursor.next_step(NOW_MS + 10) == Wait(NOW_MS + PACE_MS)
    assert cursor.next_step(NOW_MS + PACE_MS) == ReadLog(100, 102)
    cursor.has_read(102, NOW_MS + PACE_MS, has_records=False, is_backlog=False)
    assert cursor.next_step(NOW_MS + PACE_MS) == Wait(None)


def test_a_record_after_a_quiet_time_does_not_wait() -> None:
    cursor = _at_end()
    cursor.advanced(101)
    assert cursor.next_step(NOW_MS + PACE_MS + 1) == ReadLog(100, 101)


def test_a_backlog_does_not_wait() -> None:
    cursor = Cursor("tail", 0, 100)
    _looked(cursor, LogView(0, None))
    cursor.has_read(50, NOW_MS, has_records=False, is_backlog=True)
    assert cursor.next_step(NOW_MS) == ReadLog(50, 100)


def test_an_older_high_watermark_changes_nothing() -> None:
    cursor = _at_end()
    cursor.advanced(100)
    cursor.advanced(7)
    assert cursor.next_step(NOW_MS) == Wait(None)


def test_unwanted_records_move_the_position_without_the_sink() -> None:
    cursor = Cursor("tail", 90, 100)
    _looked(cursor, LogView(0, None))
    cursor.has_read(100, NOW_MS, has_records=False, is_backlog=False)
    assert cursor.position == 100


def test_a_failed_batch_is_sent_again_after_a_pause() -> None:
    cursor = Cursor("tail", 90, 100)
    _looked(cursor, LogView(0, None))
    cursor.has_read(100, NOW_MS, has_records=True, is_backlog=False)
    cursor.opened()
    assert cursor.failed(NOW_MS, 1.0) == FIRST_PAUSE_MS
    assert cursor.next_step(NOW_MS) == Wait(NOW_MS + FIRST_PAUSE_MS)
    assert cursor.next_step(NOW_MS + FIRST_PAUSE_MS) == Open()
    assert cursor.failed(NOW_MS, 1.0) == 2 * FIRST_PAUSE_MS
    cursor.opened()
    assert cursor.next_step(NOW_MS + 2 * FIRST_PAUSE_MS) == Send()
    assert (cursor.position, cursor.failures) == (90, 2)
    cursor.sent()
    assert (cursor.position, cursor.failures) == (100, 0)


def test_a_snapshot_counts_when_all_of_it_is_exported() -> None:
    cursor = Cursor("snapshot+tail", None, 100)
    _looked(cursor, LogView(0, SNAPSHOT))
    cursor.has_read(None, NOW_MS, has_records=True, is_backlog=True)
    cursor.opened()
    cursor.sent()
    positions = [cursor.position]
    assert cursor.next_step(NOW_MS) == ReadSnapshot(SNAPSHOT)
    cursor.has_read(40, NOW_MS, has_records=False, is_backlog=True)
    positions.append(cursor.position)
    assert positions == [None, 40]
    assert cursor.next_step(NOW_MS) == ReadLog(40, 100)


def test_a_snapshot_that_is_gone_is_replaced_by_a_newer_one() -> None:
    cursor = Cursor("snapshot+tail", None, 100)
    _looked(cursor, LogView(0, SNAPSHOT))
    cursor.must_look()
    newer = SnapshotId(80, 2)
    assert _looked(cursor, LogView(80, newer)) is None
    assert cursor.next_step(NOW_MS) == ReadSnapshot(newer)


def test_a_log_that_is_trimmed_under_a_slow_exporter_restarts_it() -> None:
    cursor = Cursor("tail", 30, 100)
    _looked(cursor, LogView(0, None))
    cursor.must_look()
    assert _looked(cursor, LogView(40, SNAPSHOT)) == Restart(30, "the log begins at offset 40", 40)
    assert cursor.next_step(NOW_MS) == ReadSnapshot(SNAPSHOT)


def test_missed_records_are_told_before_the_state_that_stands_for_them() -> None:
    cursor = Cursor("tail", 30, 100)
    _looked(cursor, LogView(40, SNAPSHOT))
    assert cursor.resync == Resync(30, 40)
    cursor.has_read(None, NOW_MS, has_records=True, is_backlog=True)
    cursor.opened()
    cursor.failed(NOW_MS, 0.0)
    assert cursor.resync == Resync(30, 40)
    cursor.opened()
    cursor.sent()
    assert cursor.resync is None


def test_missed_records_are_told_again_if_the_state_is_another() -> None:
    cursor = Cursor("tail", 30, 100)
    _looked(cursor, LogView(40, SNAPSHOT))
    cursor.has_read(None, NOW_MS, has_records=True, is_backlog=True)
    cursor.opened()
    cursor.sent()
    cursor.must_look()
    assert _looked(cursor, LogView(80, SnapshotId(80, 2))) is None
    assert cursor.resync == Resync(30, 80)
    cursor.has_read(80, NOW_MS, has_records=True, is_backlog=True)
    cursor.sent()
    cursor.must_look()
    _looked(cursor, LogView(80, SnapshotId(80, 2)))
    assert cursor.resync is None


def test_records_that_the_log_has_lost_are_told_without_a_snapshot_too() -> None:
    cursor = Cursor("tail", 101, 100)
    _looked(cursor, LogView(20, None))
    assert cursor.resync == Resync(101, 20)


@pytest.mark.parametrize("start", ["tail", 90, "snapshot+tail"])
def test_nothing_is_missed_at_a_first_start(start: Start) -> None:
    cursor = Cursor(start, None, 100)
    _looked(cursor, LogView(40, SNAPSHOT))
    assert cursor.resync is None


@pytest.mark.parametrize("start", ["tail", 90, "snapshot+tail"])
def test_a_restart_begins_with_the_state_even_if_its_snapshot_is_gone(start: Start) -> None:
    cursor = Cursor(start, 30, 100)
    assert _looked(cursor, LogView(40, SNAPSHOT)) is not None
    cursor.must_look()
    newer = SnapshotId(80, 2)
    assert _looked(cursor, LogView(80, newer)) is None
    assert cursor.next_step(NOW_MS) == ReadSnapshot(newer)


class _World:
    """A log that grows and is trimmed, files that fail, a sink that fails, and a process that is killed."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now_ms = 0
        self.view = LogView(0, None)
        self.high_watermark = 0
        self.remembered: int | None = None
        self.delivered: list[int] = []
        self.covered: set[int] = set()
        """The offsets whose outcome a snapshot delivered."""
        self.begin()

    def begin(self) -> None:
        self.cursor = Cursor("snapshot+tail", self.remembered, self.high_watermark)
        self.batch: list[int] = []
        self.snapshot_left = 2

    def happen(self) -> None:
        chance = self.random.random()
        if chance < 0.4:
            self.high_watermark += self.random.randint(1, 5)
            self.cursor.advanced(self.high_watermark)
        elif chance < 0.43 and self.high_watermark:
            end = self.random.randint(self.view.start_offset, self.high_watermark)
            if end:
                self.view = LogView(max(self.view.start_offset, end - 3), SnapshotId(end, 1))
        elif chance < 0.45:
            self.begin()
        self.now_ms += self.random.choice((1, 30, 500))

    def step(self) -> bool:
        """Take a step; returns whether it was one."""
        cursor = self.cursor
        step = cursor.next_step(self.now_ms)
        match step:
            case Wait():
                return False
            case Look():
                cursor.looked(self.view)
            case ReadLog(offset, end_offset):
                self._read_log(offset, end_offset)
            case ReadSnapshot(snapshot_id):
                self._read_snapshot(snapshot_id)
            case Open():
                cursor.opened()
            case Send():
                self._send()
        return True

    def _read_log(self, offset: int, end_offset: int) -> None:
        assert end_offset <= self.high_watermark, "nothing is exported that may still be lost"
        if offset < self.view.start_offset:
            self.cursor.must_look()
            return
        end = self.random.randint(offset + 1, end_offset)
        self.batch = [each for each in range(offset, end) if each % 5]
        has_records, is_backlog = bool(self.batch), end < end_offset
        self.cursor.has_read(end, self.now_ms, has_records=has_records, is_backlog=is_backlog)

    def _read_snapshot(self, snapshot_id: SnapshotId) -> None:
        if snapshot_id != self.view.snapshot:
            self.snapshot_left = 2
            self.cursor.must_look()
            return
        self.snapshot_left -= 1
        if self.snapshot_left:
            self.cursor.has_read(None, self.now_ms, has_records=False, is_backlog=True)
            return
        self.snapshot_left = 2
        self.covered |= set(range(snapshot_id.end_offset))
        self.cursor.has_read(snapshot_id.end_offset, self.now_ms, has_records=False, is_backlog=True)

    def _send(self) -> None:
        chance = self.random.random()
        if chance < 0.2:  # the sink may have it nevertheless
            self.delivered += self.batch * (chance < 0.1)
            self.cursor.failed(self.now_ms, self.random.random())
            return
        self.delivered += self.batch
        self.cursor.sent()

    def check(self) -> None:
        """Everything below the position was delivered, or a snapshot covers it."""
        position = self.cursor.position
        if position is None:
            return
        assert position <= self.high_watermark
        wanted = {offset for offset in range(position) if offset % 5}
        assert wanted <= set(self.delivered) | self.covered


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_missing_whatever_happens(seed: int) -> None:
    world = _World(Random(seed))
    for _ in range(400):
        world.happen()
        world.step()
        world.check()
        if world.random.random() < 0.7:
            world.remembered = world.cursor.position
    world.now_ms += 10**6
    while world.step():
        world.now_ms += 10**6
    assert world.cursor.position == world.high_watermark
    world.check()


@pytest.mark.parametrize("seed", range(20))
def test_records_come_in_order_while_nothing_fails(seed: int) -> None:
    random = Random(seed)
    world = _World(random)
    for _ in range(200):
        world.high_watermark += random.randint(0, 3)
        world.cursor.advanced(world.high_watermark)
        world.now_ms += 40
        if world.cursor.next_step(world.now_ms) != Send():
            world.step()
        else:
            world.delivered += world.batch
            world.cursor.sent()
    assert world.delivered == [offset for offset in range(world.delivered[-1] + 1) if offset % 5]


# The state that stands for missed records.


@pytest.mark.parametrize(
    ("position", "view", "kept"),
    [
        (None, LogView(0, SNAPSHOT), None),
        (0, LogView(0, SNAPSHOT), None),
        (39, LogView(0, None), None),
        (39, LogView(0, SNAPSHOT), 39),
        (40, LogView(0, SNAPSHOT), None),
        (39, LogView(40, SNAPSHOT, base=39), 39),
        (39, LogView(40, SNAPSHOT, base=20), None),
    ],
)
def test_the_state_below_a_position_is_kept_while_the_log_may_be_deleted(
    position: int | None, view: LogView, kept: int | None
) -> None:
    assert Cursor("tail", position, 100).state_to_keep(view) == kept


def test_the_state_is_kept_as_it_is_when_the_sink_has_the_batch_that_was_read() -> None:
    """It is sent as soon as the sink is back."""
    cursor = Cursor("tail", 7, 100)
    view = LogView(0, SNAPSHOT)
    assert _looked(cursor, view) is None
    cursor.has_read(20, NOW_MS, has_records=True, is_backlog=True)
    cursor.failed(NOW_MS, 0.0)
    assert cursor.state_to_keep(view) == 20
    cursor.opened()
    cursor.sent()
    assert (cursor.position, cursor.state_to_keep(view)) == (20, 20)


def test_with_the_state_of_the_sink_only_the_difference_is_read() -> None:
    cursor = Cursor("tail", 7, 100)
    view = LogView(40, SNAPSHOT, base=7)
    assert _looked(cursor, view) is not None
    assert cursor.next_step(NOW_MS) == ReadSnapshot(SNAPSHOT, base=7)
    assert cursor.resync == Resync(7, 40, is_difference=True)
    assert cursor.state_to_keep(view) == 7, "until the sink has it all"
    cursor.opened()
    cursor.has_read(40, NOW_MS, has_records=True, is_backlog=True)
    cursor.sent()
    assert cursor.state_to_keep(view) is None


def test_another_state_than_the_one_that_the_sink_has_is_of_no_use() -> None:
    cursor = Cursor("tail", 8, 100)
    assert _looked(cursor, LogView(40, SNAPSHOT, base=7)) is not None
    assert cursor.next_step(NOW_MS) == ReadSnapshot(SNAPSHOT)
    assert cursor.resync == Resync(8, 40)


def test_a_difference_that_was_begun_isn_t_followed_by_another_one() -> None:
    """A topic of the first snapshot that the second one doesn't have would stay in the sink."""
    cursor = Cursor("tail", 7, 100)
    assert _looked(cursor, LogView(40, SNAPSHOT, base=7)) is not None
    cursor.opened()
    cursor.has_read(None, NOW_MS, has_records=True, is_backlog=True)
    cursor.sent()
    cursor.must_look()
    later = SnapshotId(60, 2)
    assert _looked(cursor, LogView(60, later, base=7)) is None
    assert cursor.next_step(NOW_MS) == ReadSnapshot(later)
    assert cursor.resync == Resync(7, 60)


def test_an_exporter_of_a_slower_pace_doesn_t_wait_in_a_backlog() -> None:
    cursor = Cursor(0, None, 100, pace_ms=1000)
    assert _looked(cursor, LogView(0, None)) is None
    cursor.opened()
    cursor.has_read(50, NOW_MS, has_records=True, is_backlog=True)
    cursor.sent()
    assert cursor.next_step(NOW_MS) == ReadLog(50, 100)
    cursor.has_read(100, NOW_MS, has_records=True, is_backlog=False)
    cursor.sent()
    cursor.advanced(101)
    assert cursor.next_step(NOW_MS) == Wait(NOW_MS + 1000)
    assert cursor.next_step(NOW_MS + 1000) == ReadLog(100, 101)
