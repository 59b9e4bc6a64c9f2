"""Limit how many connections come from an address in a second (KIP-612; Kafka's ConnectionQuotas)."""

from __future__ import annotations

from kraft_wire.controller.quotas.applicable import Quotas
from kraft_wire.controller.quotas.rates import SAMPLE_S, SAMPLES, Rates
from kraft_wire.metadata.quotas import CONNECTION_CREATION_RATE, IP, quota_entity


class ConnectionRates:
    """The connections that came from each address with a quota."""

    def __init__(self, samples: int = SAMPLES, sample_s: int = SAMPLE_S) -> None:
        self._rates: Rates[str] = Rates(samples, sample_s)

    def accept(self, quotas: Quotas, address: str, now_ms: int) -> int:
        """Count a new connection, and return 0; or return how long to hold it before it is closed, so that
        the client doesn't come again at once. That is a sample at most. It doesn't count then."""
        limit = _limit(quotas, address)
        if limit is None:
            return 0
        self._rates.add(address, 1, now_ms)
        hold_ms = self._rates.excess_ms(address, limit, now_ms)
        if hold_ms:
            self._rates.add(address, -1, now_ms)
        return hold_ms


def _limit(quotas: Quotas, address: str) -> float | None:
    for name in (address, None):
        limit = quotas.get(quota_entity({IP: name}), {}).get(CONNECTION_CREATION_RATE)
        if limit is not None:
            return limit
    return None
