"""Measure the time from a request to its response.

Nearly every request is answered in its own step: that costs a look-up and a count. The others wait, by their
token, for a commit, for the end of a work, or as a Fetch for records.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from kraft_wire.controller.node.effects import NodeEffect
from kraft_wire.controller.node.events import ApiRequest
from kraft_wire.metrics.windows import LATENCY_BOUNDS_MS, Histogram
from kraft_wire.raft.effects import Reply


class RequestTimes:
    """Histograms of milliseconds by API key, of the requests that were answered."""

    def __init__(self) -> None:
        self.by_api: dict[int, Histogram] = {}
        self._waiting: dict[Hashable, tuple[Histogram, int]] = {}

    @property
    def waiting(self) -> int:
        """The number of requests without a response."""
        return len(self._waiting)

    def began(self, request: ApiRequest, effects: Sequence[NodeEffect], now_ms: int) -> bool:
        """Note a request and the effects of its step. Returns whether its answer is their only one."""
        histogram = self.by_api.get(request.api_key)
        if histogram is None:
            histogram = self.by_api[request.api_key] = Histogram(LATENCY_BOUNDS_MS)
        if len(effects) == 1:
            (only,) = effects
            if type(only) is Reply and only.token is request.token:
                histogram.counts[0] += 1  # the clock stands still during a step
                return True
        self._waiting[request.token] = histogram, now_ms
        return False

    def answered(self, tokens: Iterable[Hashable], now_ms: int) -> None:
        """Note responses. Those of other requests than ``began`` noted don't count."""
        for token in tokens:
            waiting = self._waiting.pop(token, None)
            if waiting is not None:
                histogram, began_ms = waiting
                histogram.add(now_ms - began_ms)

    def abandoned(self, token: Hashable) -> None:
        """Forget a request: its connection is closed."""
        self._waiting.pop(token, None)
