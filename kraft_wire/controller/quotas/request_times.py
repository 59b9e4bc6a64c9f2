"""Limit how much of its time the controller works for a client (KIP-124).

``request_percentage`` is a part of one second a second: at 50 a client may have half of the event loop. What
it has used is known after each step, so it has to wait after the next response (Kafka's
ClientRequestQuotaManager).
"""

from __future__ import annotations

from kraft_wire.controller.quotas.applicable import Quotas, Sharers, applicable_quota
from kraft_wire.controller.quotas.rates import SAMPLE_S, SAMPLES, Rates
from kraft_wire.metadata.quotas import REQUEST_PERCENTAGE


class RequestTimes:
    """The time that the controller has worked for each client with a quota."""

    def __init__(self, samples: int = SAMPLES, sample_s: int = SAMPLE_S) -> None:
        self._percentages: Rates[Sharers] = Rates(samples, sample_s)

    def note(self, quotas: Quotas, user: str, client_id: str, used_ms: float, now_ms: int) -> None:
        """Take note of a time that the controller worked for a client."""
        quota = applicable_quota(quotas, REQUEST_PERCENTAGE, user, client_id)
        if quota is not None:
            self._percentages.add(quota.sharers, used_ms / 1000 * 100, now_ms)

    def throttle_time_ms(self, quotas: Quotas, user: str, client_id: str, now_ms: int) -> int:
        """Return how long a client has to wait before its next request: a sample at most."""
        quota = applicable_quota(quotas, REQUEST_PERCENTAGE, user, client_id)
        return 0 if quota is None else self._percentages.excess_ms(quota.sharers, quota.limit, now_ms)
