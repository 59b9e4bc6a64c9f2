"""Rates and latencies of the recent past."""

from __future__ import annotations

from kraft_wire.metrics.windows import LATENCY_SLOTS, RATE_SLOTS, SLOT_MS, Histogram, Latency, RecentCount


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
