"""Measure the rate of something over the last seconds (Kafka's Rate)."""

from __future__ import annotations

from collections import deque


class Samples:
    """The amounts in each of the last ``samples`` of ``sample_ms``. The rate is an amount a second.

    One sample counts as two: it has only begun.
    """

    def __init__(self, samples: int, sample_ms: int) -> None:
        self._samples = max(2, samples)
        self._sample_ms = sample_ms
        self._amounts: deque[tuple[int, float]] = deque()
        """The beginning of each sample, and the amount in it; the last one's last."""

    def add(self, amount: float, now_ms: int) -> None:
        """Add an amount that came just now."""
        self._forget_old(now_ms)
        if self._amounts and now_ms - self._amounts[-1][0] < self._sample_ms:
            began_ms, before = self._amounts.pop()
            self._amounts.append((began_ms, before + amount))
        else:
            self._amounts.append((now_ms, amount))

    def is_empty(self, now_ms: int) -> bool:
        """Whether nothing came in the last samples."""
        self._forget_old(now_ms)
        return not self._amounts

    def excess_ms(self, limit: float, now_ms: int) -> int:
        """Return how long nothing must come until the rate is down to the limit, but no longer than a sample;
        0 if it is not above."""
        self._forget_old(now_ms)
        if not self._amounts:
            return 0
        window_ms = self._window_ms(now_ms)
        excess = 1000 * sum(amount for _, amount in self._amounts) / window_ms - limit
        if excess <= 0:
            return 0
        return round(min(excess * window_ms, limit * self._sample_ms) / limit) if limit else self._sample_ms

    def _window_ms(self, now_ms: int) -> int:
        """Return the age of the first sample, which counts with all whole samples but one at least."""
        elapsed_ms = now_ms - self._amounts[0][0]
        missing = self._samples - 1 - elapsed_ms // self._sample_ms
        return elapsed_ms + max(0, missing) * self._sample_ms

    def _forget_old(self, now_ms: int) -> None:
        while self._amounts and now_ms - self._amounts[0][0] >= self._samples * self._sample_ms:
            self._amounts.popleft()
