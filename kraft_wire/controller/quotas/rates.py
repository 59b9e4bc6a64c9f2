"""Keep the rates of many clients."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from kraft_wire.controller.quotas.samples import Samples
from kraft_wire.controller.quotas.table import BoundedTable

SAMPLES: Final = 11
"""Kafka's quota.window.num, by default."""
SAMPLE_S: Final = 1
"""Kafka's quota.window.size.seconds, by default."""

Client = TypeVar("Client", bound=Hashable)


class Rates(Generic[Client]):
    """The rate of each client over the last ``samples`` of ``sample_s`` seconds."""

    def __init__(self, samples: int = SAMPLES, sample_s: int = SAMPLE_S) -> None:
        self._samples = samples
        self._sample_ms = sample_s * 1000
        self._by_client: BoundedTable[Client, Samples] = BoundedTable(Samples.is_empty)

    def add(self, client: Client, amount: float, now_ms: int) -> None:
        """Add what came of a client just now."""
        self._by_client.find_or_add(client, self._new, now_ms).add(amount, now_ms)

    def excess_ms(self, client: Client, limit: float, now_ms: int) -> int:
        """Return how long a client has to wait: a sample at most, 0 if its rate is not above the limit."""
        rate = self._by_client.find(client)
        return 0 if rate is None else rate.excess_ms(limit, now_ms)

    def __len__(self) -> int:
        return len(self._by_client)

    def _new(self) -> Samples:
        return Samples(self._samples, self._sample_ms)
