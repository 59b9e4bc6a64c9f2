"""Rates and latencies of the recent past."""

from __future__ import annotations

from kraft_wire.metrics.windows import (
    LATENCY_SLOTS,
    RATE_SLOTS,
    SLOT_MS,
    Histogram,
    Latency,
    RecentCount,
    RecentGrowth,
    quantile,
)


def test_a_rate_is_that_of_the_last_whole_slots() -> None:
    count = RecentCount()
    for slot in range(RATE_SLOTS):
        count.add(2, slot * SLOT_MS)
        count.add(3, slot * SLOT_MS + 1)
    count.add(1_000, RATE_SLOTS * SLOT_MS)  # in the slot that isn't over
    assert count.per_second(RATE_SLOTS * SLOT_MS + 10) == 5 * 1000 / SLOT_MS
    assert count.total == 5 * RATE_SLOTS + 1_000


def test_a_rate_is_zero_after_a_rest() -> None:
    count = RecentCount()
    assert count.per_second(0) == 0
    count.add(7, 0)
    assert count.per_second(SLOT_MS) > 0
    assert count.per_second((RATE_SLOTS + 1) * SLOT_MS) == 0


def test_latencies_of_the_last_minute_count() -> None:
    latency = Latency()
    latency.add(100, 0)
    latency.add(10, SLOT_MS)
    latency.add(20, SLOT_MS)
    assert latency.recent_max_ms(SLOT_MS) == 100
    later_ms = LATENCY_SLOTS * SLOT_MS
    assert latency.recent_max_ms(later_ms) == 20
    assert latency.recent_mean_ms(later_ms) == 15
    assert latency.recent_mean_ms(10 * later_ms) == latency.recent_max_ms(10 * later_ms) == 0
    assert sum(latency.histogram.counts) == 3
    assert latency.histogram.sum == 130


def test_a_value_at_a_bound_is_below_it() -> None:
    histogram = Histogram((1, 10))
    for value in (0, 1, 1.5, 10, 11):
        histogram.add(value)
    assert histogram.counts == [2, 2, 1]


MINUTE_MS = LATENCY_SLOTS * SLOT_MS


def test_growth_is_that_of_the_last_minute() -> None:
    growth = RecentGrowth()
    assert growth.since(0, [10, 1]) == [10, 1], "since the start"
    assert growth.since(MINUTE_MS, [30, 1]) == [20, 0]
    assert growth.since(MINUTE_MS + 10, [31, 1]) == [21, 0]
    assert growth.since(2 * MINUTE_MS, [35, 2]) == [5, 1]


def test_growth_is_the_same_for_whoever_asks_often() -> None:
    growth = RecentGrowth()
    for now_ms in range(0, 3 * MINUTE_MS, 100):
        last = growth.since(now_ms, [now_ms])
    assert MINUTE_MS <= last[0] <= MINUTE_MS + SLOT_MS


def test_growth_since_the_scrape_before() -> None:
    growth = RecentGrowth()
    growth.since(0, [1])
    assert growth.since(10 * MINUTE_MS, [5]) == [4]
    assert growth.since(20 * MINUTE_MS, [6]) == [1]


def test_a_quantile_is_the_bound_of_its_class() -> None:
    bounds, counts = (1, 10, 100), [50, 49, 0, 1]
    assert quantile(bounds, counts, 0.5) == 1
    assert quantile(bounds, counts, 0.99) == 10
    assert quantile(bounds, counts, 0.999) == 100, "the last class has no bound"
    assert quantile(bounds, [0, 0, 0, 0], 0.5) == 0
