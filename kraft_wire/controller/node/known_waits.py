"""Hold answers to changes back until all live brokers know the changes, or for a limited time.

Kafka answers when a change is committed. If the client asks a broker at once, the broker may not have fetched
the change yet: UNKNOWN_TOPIC_OR_PARTITION. With ``kraft.wire.answer.when.known.ms`` brokers know it first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kraft_wire.controller.node.speculative_writes import Released
from kraft_wire.controller.partitions.cluster_view import is_active
from kraft_wire.metadata.brokers import BrokerRegistration


class _Held(NamedTuple):
    deadline_ms: int
    released: Released


class KnownWaits:
    """The answers that wait for brokers, in the order of their changes. Each waits up to ``most_ms``."""

    def __init__(self, most_ms: int) -> None:
        self._most_ms = most_ms
        self._held: deque[_Held] = deque()
        self._slowest = -1
        """A broker that didn't know the first change when it was last looked at."""

    def must_hold(self, released: Released) -> bool:
        """Whether an answer waits: there is a limit, and the answer is to a change."""
        return self._most_ms > 0 and released.changes

    def hold(self, released: Released, now_ms: int) -> None:
        """Let an answer wait."""
        self._held.append(_Held(now_ms + self._most_ms, released))

    def take_known(
        self, brokers: Mapping[int, BrokerRegistration], known_ends: Mapping[int, int], now_ms: int
    ) -> Iterator[Released]:
        """Return the answers whose changes all active brokers know, and those that waited long enough.

        ``known_ends`` says up to where a broker has the log and knows that it is committed.
        """
        while self._held:
            deadline_ms, released = self._held[0]
            if now_ms < deadline_ms and self._is_unknown(released.end_offset, brokers, known_ends):
                return
            self._held.popleft()
            yield released

    def take_all(self) -> Iterator[Released]:
        """Return all answers that wait."""
        while self._held:
            yield self._held.popleft().released

    def next_deadline_ms(self) -> int | None:
        """Return the time at which the first answer has waited long enough."""
        return self._held[0].deadline_ms if self._held else None

    def _is_unknown(
        self, end_offset: int, brokers: Mapping[int, BrokerRegistration], known_ends: Mapping[int, int]
    ) -> bool:
        def lacks(broker_id: int) -> bool:
            return is_active(brokers[broker_id]) and known_ends.get(broker_id, -1) < end_offset

        if self._slowest in brokers and lacks(self._slowest):
            return True
        self._slowest = next(filter(lacks, brokers), -1)
        return self._slowest != -1
