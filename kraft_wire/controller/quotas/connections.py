"""Limit how many connections come from an address in a second (KIP-612; Kafka's ConnectionQuotas)."""

from __future__ import annotations

import math
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

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
    limit = _own_limit(quotas, address)
    if limit is None:
        limit = quotas.get(quota_entity({IP: None}), {}).get(CONNECTION_CREATION_RATE)
    return limit if limit is not None and 0 <= limit < math.inf else None


def _own_limit(quotas: Quotas, address: str) -> float | None:
    """Return the limit of an address, however the quota spells it."""
    wanted = _plain(address)
    for entity, values in quotas.items():
        ((kind, name), *others) = entity
        if kind == IP and name is not None and not others and _plain(name) == wanted:
            return values.get(CONNECTION_CREATION_RATE)
    return None


@lru_cache(maxsize=10_000)
def _plain(address: str) -> str:
    """Return an address in its usual spelling; any other name as it is."""
    try:
        found = ip_address(address.removeprefix("[").removesuffix("]"))
    except ValueError:
        return address
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)
