"""Rates, latencies and quantiles of the recent past, in constant memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import Final

SLOT_MS: Final = 5_000
RATE_SLOTS: Final = 6
LATENCY_SLOTS: Final = 12
LATENCY_BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)


class RecentCount:
    """A count of all time, and its rate over the last RATE_SLOTS slots of time."""

    def __init__(self) -> None:
        self.total = 0
        self._slots: deque[tuple[int, int]] = deque(maxlen=RATE_SLOTS + 1)

    def add(self, count: int, now_ms: int) -> None:
        """Count so many events."""
        slot = now_ms // SLOT_MS
        if self._slots and self._slots[-1][0] == slot:
            count_before = self._slots.pop()[1]
        else:
            count_before = 0
        self._slots.append((slot, count_before + count))
        self.total += count

    def per_second(self, now_ms: int) -> float:
        """Return the rate over the last whole slots. That of ``now_ms`` isn't over, so it isn't counted."""
        slot = now_ms // SLOT_MS
        counted = sum(count for each, count in self._slots if slot - RATE_SLOTS <= each < slot)
        return counted * 1000 / (RATE_SLOTS * SLOT_MS)


class Histogram:
    """Counts of values by upper bounds; the last class has none. ``sum`` is that of the values."""

    def __init__(self, bounds: Sequence[int]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class Latency:
    """A histogram of milliseconds of all time; mean and maximum of the last minute."""

    def __init__(self) -> None:
        self.histogram = Histogram(LATENCY_BOUNDS_MS)
        self._slots: deque[tuple[int, int, int, int]] = deque(maxlen=LATENCY_SLOTS + 1)

    def add(self, took_ms: int, now_ms: int) -> None:
        """Note one duration."""
        self.histogram.add(took_ms)
        slot = now_ms // SLOT_MS
        count, total_ms, longest_ms = 0, 0, 0
        if self._slots and self._slots[-1][0] == slot:
            _, count, total_ms, longest_ms = self._slots.pop()
        self._slots.append((slot, count + 1, total_ms + took_ms, max(longest_ms, took_ms)))

    def recent_mean_ms(self, now_ms: int) -> float:
        """Return the mean of the last minute, 0 without values."""
        recent = self._recent(now_ms)
        count = sum(each[1] for each in recent)
        return sum(each[2] for each in recent) / count if count else 0.0

    def recent_max_ms(self, now_ms: int) -> int:
        """Return the maximum of the last minute, 0 without values."""
        return max((each[3] for each in self._recent(now_ms)), default=0)

    def _recent(self, now_ms: int) -> list[tuple[int, int, int, int]]:
        slot = now_ms // SLOT_MS
        return [each for each in self._slots if each[0] > slot - LATENCY_SLOTS]


class RecentGrowth:
    """The growth of numbers that only grow, over the last minute. Whoever asks leaves a copy for those who
    ask later: what is measured costs nothing."""

    def __init__(self) -> None:
        self._copies: deque[tuple[int, Sequence[float]]] = deque()

    def since(self, now_ms: int, numbers: Sequence[float]) -> list[float]:
        """Return by how much ``numbers`` have grown since the newest copy that is a minute old; if there is
        none, since the oldest copy; without any, since they were 0. There are always equally many of them."""
        while len(self._copies) > 1 and self._copies[1][0] <= now_ms - SLOT_MS * LATENCY_SLOTS:
            self._copies.popleft()
        before = self._copies[0][1] if self._copies else [0.0] * len(numbers)
        growth = [now - then for now, then in zip(numbers, before, strict=True)]
        if not self._copies or now_ms - self._copies[-1][0] >= SLOT_MS:
            self._copies.append((now_ms, list(numbers)))
        return growth


def quantile(bounds: Sequence[float], counts: Sequence[float], share: float) -> float:
    """Return the upper bound of the class in which ``share`` of the values is reached, 0 without values. That
    of the last class, which has none, is the highest bound, as in Prometheus' histogram_quantile."""
    wanted = share * sum(counts)
    if not wanted:
        return 0.0
    reached = 0.0
    for bound, count in zip(bounds, counts, strict=False):
        reached += count
        if reached >= wanted:
            return bound
    return bounds[-1]
