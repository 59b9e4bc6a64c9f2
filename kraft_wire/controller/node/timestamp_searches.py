"""Keep the ListOffsets requests that ask for timestamps, which are looked up in the log."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import msgspec

from kraft_wire.protocol.messages.list_offsets_request import ListOffsetsRequest

MOST_PARTITIONS: Final = 5_000
"""Requests are looked up together while they ask for no more: they are answered in one step."""


class TimestampRequest(msgspec.Struct, frozen=True):
    """A request for timestamps. Its client may not see ``refused_topics``."""

    token: Hashable
    request: ListOffsetsRequest
    version: int
    refused_topics: frozenset[str]
    timestamps: tuple[int, ...]

    @property
    def partitions(self) -> int:
        """The number of partitions that it asks for."""
        return sum(len(topic.partitions) for topic in self.request.topics)


class TimestampSearches:
    """The requests that wait, and those whose timestamps are being looked up.

    A search passes over the whole log. There is one at a time, for as many requests as wait: a client can't
    make others wait for many searches.
    """

    def __init__(self) -> None:
        self._waiting: dict[Hashable, TimestampRequest] = {}
        self._searched: dict[Hashable, TimestampRequest] = {}
        self._is_searching = False

    def add(self, request: TimestampRequest) -> None:
        """Let a request wait for the next search."""
        self._waiting[request.token] = request

    def abandon(self, token: Hashable) -> None:
        """Drop the request of a client that has gone. A search that has begun is completed."""
        self._waiting.pop(token, None)
        self._searched.pop(token, None)

    def begin(self) -> tuple[int, ...]:
        """Return the timestamps to look up now; none if nobody waits, or a search is in progress."""
        if self._is_searching:
            return ()
        partitions = 0
        while self._waiting and partitions < MOST_PARTITIONS:
            token, request = next(iter(self._waiting.items()))
            self._searched[token] = self._waiting.pop(token)
            partitions += request.partitions
        self._is_searching = bool(self._searched)
        return tuple(sorted({each for request in self._searched.values() for each in request.timestamps}))

    def end(self) -> list[TimestampRequest]:
        """Return the requests that the search was for, of clients that are still there."""
        requests = list(self._searched.values())
        self._searched.clear()
        self._is_searching = False
        return requests
