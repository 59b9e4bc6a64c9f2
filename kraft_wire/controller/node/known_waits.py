"""Hold answers to changes back until all live brokers know the changes, or for a limited time.

Kafka answers when a change is committed. If the client asks a broker at once, the broker may not have fetched
the change yet: UNKNOWN_TOPIC_OR_PARTITION. With ``kraft.wire.answer.when.known.ms`` brokers know it first.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import Final, NamedTuple

from kraft_wire.controller.node.speculative_writes import Released
from kraft_wire.controller.partitions.cluster_view import is_active
from kraft_wire.metadata.brokers import BrokerRegistration

ANSWERS_PER_STEP: Final = 100
"""So many answers are sent in one step; very many may wait for one broker."""


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
        self._left_ms: int | None = None
        """When as many answers were returned as are sent in one step, and others were left."""

    def must_hold(self, released: Released) -> bool:
        """Whether an answer waits: there is a limit, and the answer is to a change."""
        return self._most_ms > 0 and released.changes

    def hold(self, released: Released, now_ms: int) -> None:
        """Let an answer wait."""
        self._held.append(_Held(now_ms + self._most_ms, released))

    def take_known(
        self, brokers: Mapping[int, BrokerRegistration], known_ends: Mapping[int, int], now_ms: int
    ) -> list[Released]:
        """Return answers whose changes all active brokers know, or that waited long enough: as many as are
        sent in one step.

        ``known_ends`` says up to where a broker has the log and knows that it is committed.
        """
        taken: list[Released] = []
        known_end = -1
        for deadline_ms, released in islice(self._held, ANSWERS_PER_STEP):
            if now_ms < deadline_ms and released.end_offset > known_end:
                if known_end >= 0 or self._is_unknown(released.end_offset, brokers, known_ends):
                    break
                known_end = _known_end(brokers, known_ends)
            taken.append(released)
        for _ in taken:
            self._held.popleft()
        self._left_ms = now_ms if self._held and len(taken) == ANSWERS_PER_STEP else None
        return taken

    def let_go(self, now_ms: int) -> None:
        """Let no answer wait any longer."""
        self._held = deque(held._replace(deadline_ms=now_ms) for held in self._held)

    def next_deadline_ms(self) -> int | None:
        """Return the time at which the first answer has waited long enough, or that of the last step if it
        left answers for the next one."""
        if self._left_ms is not None:
            return self._left_ms
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


def _known_end(brokers: Mapping[int, BrokerRegistration], known_ends: Mapping[int, int]) -> int:
    """Return up to where all active brokers know the log."""
    ends = (known_ends.get(broker_id, -1) for broker_id, broker in brokers.items() if is_active(broker))
    return min(ends, default=sys.maxsize)
