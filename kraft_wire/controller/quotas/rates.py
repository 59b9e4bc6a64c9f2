"""Keep the rates of many clients. Memory doesn't grow with clients that are silent."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from kraft_wire.controller.quotas.samples import Samples

SAMPLES: Final = 11
"""Kafka's quota.window.num, by default."""
SAMPLE_S: Final = 1
"""Kafka's quota.window.size.seconds, by default."""
MOST_CLIENTS: Final = 1_000
"""When so many are known, those that were silent in the last samples are forgotten."""

Client = TypeVar("Client", bound=Hashable)


class Rates(Generic[Client]):
    """The rate of each client over the last ``samples`` of ``sample_s`` seconds."""

    def __init__(self, samples: int = SAMPLES, sample_s: int = SAMPLE_S) -> None:
        self._samples = samples
        self._sample_ms = sample_s * 1000
        self._by_client: dict[Client, Samples] = {}
        self._most = MOST_CLIENTS

    def add(self, client: Client, amount: float, now_ms: int) -> None:
        """Add what came of a client just now."""
        rate = self._by_client.get(client)
        if rate is None:
            self._make_room(now_ms)
            rate = self._by_client[client] = Samples(self._samples, self._sample_ms)
        rate.add(amount, now_ms)

    def excess_ms(self, client: Client, limit: float, now_ms: int) -> int:
        """Return how long a client has to wait: a sample at most, 0 if its rate is not above the limit."""
        rate = self._by_client.get(client)
        return 0 if rate is None else rate.excess_ms(limit, now_ms)

    def __len__(self) -> int:
        return len(self._by_client)

    def _make_room(self, now_ms: int) -> None:
        if len(self._by_client) < self._most:
            return
        self._by_client = {
            client: rate for client, rate in self._by_client.items() if not rate.is_empty(now_ms)
        }
        self._most = max(MOST_CLIENTS, 2 * len(self._by_client))
