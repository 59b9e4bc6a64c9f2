"""Ordinary consumers' fetches of the metadata log, parked until there is something committed to read."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from kraft_wire.controller.requests import ApiRequest


class ParkedFetch(msgspec.Struct, frozen=True):
    """A consumer at the high watermark; answered when the log commits past ``offset`` or at
    ``deadline_ms``.
    """

    request: ApiRequest
    offset: int
    deadline_ms: int


class ConsumerFetches:
    """The fetches that wait. Few: every one is a tool or a person looking at the metadata log."""

    def __init__(self) -> None:
        self._parked: dict[Hashable, ParkedFetch] = {}

    def park(self, fetch: ParkedFetch) -> None:
        """Keep a fetch until it can be answered."""
        self._parked[fetch.request.token] = fetch

    def abandon(self, token: Hashable) -> None:
        """The consumer is gone."""
        self._parked.pop(token, None)

    def next_deadline_ms(self) -> int | None:
        """When the first of the parked fetches has waited for long enough."""
        return min((fetch.deadline_ms for fetch in self._parked.values()), default=None)

    def take_ready(self, high_watermark: int, now_ms: int) -> list[ParkedFetch]:
        """The fetches that have something to read now, or have waited for long enough."""
        ready = [
            fetch
            for fetch in self._parked.values()
            if fetch.offset < high_watermark or fetch.deadline_ms <= now_ms
        ]
        for fetch in ready:
            del self._parked[fetch.request.token]
        return ready
