"""Limit how many connections come from an address in a second (KIP-612; Kafka's ConnectionQuotas)."""

from __future__ import annotations

import math
from typing import Final

from kraft_wire.controller.quotas.rates import SAMPLE_S, SAMPLES, Rates
from kraft_wire.metadata.quotas import CONNECTION_CREATION_RATE, IP, ClientQuotas, quota_entity

ANY_ADDRESS: Final = quota_entity({IP: None})


class ConnectionRates:
    """The connections that came from each address with a quota."""

    def __init__(self, samples: int = SAMPLES, sample_s: int = SAMPLE_S) -> None:
        self._rates: Rates[str] = Rates(samples, sample_s)

    def accept(self, quotas: ClientQuotas, address: str, now_ms: int) -> int:
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


def _limit(quotas: ClientQuotas, address: str) -> float | None:
    limit = quotas.of_address(address).get(CONNECTION_CREATION_RATE)
    if limit is None:
        limit = quotas.by_entity.get(ANY_ADDRESS, {}).get(CONNECTION_CREATION_RATE)
    return limit if limit is not None and 0 <= limit < math.inf else None
