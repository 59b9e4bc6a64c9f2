"""Serve the reads of ordinary consumers: fetches that may wait, and list offsets."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final, cast

import msgspec

from kraft_wire.controller.decision.context import Context, ControllerState
from kraft_wire.controller.node.effects import FindTimestamps, ReplyCommitted
from kraft_wire.controller.node.events import ApiRequest, TimestampsFound
from kraft_wire.controller.node.outbox import Outbox
from kraft_wire.controller.node.timestamp_searches import TimestampRequest, TimestampSearches
from kraft_wire.controller.reading import consumer_fetch, consumer_list_offsets
from kraft_wire.controller.reading.consumer_fetch import (
    ConsumerAnswer,
    ConsumerRead,
    ConsumerWait,
    LogView,
    topic_name,
)
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.list_offsets_request import ListOffsetsRequest
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.waiting import Waiting
from kraft_wire.security.authorization import AclOperation, topic_resource

ANSWERS_PER_STEP: Final = 24
"""So many fetches that waited are answered in one step. Each answer has a copy of the records: of megabytes,
if much was committed at once."""


class ParkedFetch(msgspec.Struct, frozen=True):
    """A fetch at the high watermark.

    It is answered when a record at ``offset`` is committed, or at ``deadline_ms``. A client that isn't
    answered may have many: so nothing is kept of its request but ``request``, which is small.
    """

    token: Hashable
    version: int
    request: FetchRequest
    offset: int
    deadline_ms: int


class ParkedConsumers:
    """The fetches of consumers that wait, by the offset that they wait for and by their deadline.

    ``_left_ms`` is when some were taken and others, that were ready too, were left.
    """

    def __init__(self) -> None:
        self._left_ms: int | None = None
        self._by_offset: Waiting[ParkedFetch] = Waiting()
        self._by_deadline: Waiting[ParkedFetch] = Waiting()

    def park(self, fetch: ParkedFetch) -> None:
        """Keep a fetch until it can be answered."""
        self._by_offset.add(fetch.token, fetch, fetch.offset)
        self._by_deadline.add(fetch.token, fetch, fetch.deadline_ms)

    def abandon(self, token: Hashable) -> None:
        """Drop the fetch of a consumer that disconnected."""
        self._by_offset.drop(token)
        self._by_deadline.drop(token)

    def next_deadline_ms(self) -> int | None:
        """Return the earliest deadline of the parked fetches: a time that is over if ready ones were left."""
        return self._by_deadline.next_due() if self._left_ms is None else self._left_ms

    def take_ready(self, high_watermark: int, now_ms: int) -> list[ParkedFetch]:
        """Remove and return fetches that have a record to read, or have reached their deadline: as many as
        are answered in one step."""
        readable = self._by_offset.take_due(high_watermark - 1, ANSWERS_PER_STEP)
        for fetch in readable:
            self._by_deadline.drop(fetch.token)
        expired = self._by_deadline.take_due(now_ms, ANSWERS_PER_STEP - len(readable))
        for fetch in expired:
            self._by_offset.drop(fetch.token)
        self._left_ms = now_ms if self._has_ready(high_watermark, now_ms) else None
        return readable + expired

    def _has_ready(self, high_watermark: int, now_ms: int) -> bool:
        offset, deadline_ms = self._by_offset.next_due(), self._by_deadline.next_due()
        return offset is not None and (
            offset < high_watermark or (deadline_ms is not None and deadline_ms <= now_ms)
        )


def is_consumer_fetch(request: ApiRequest) -> bool:
    """Whether the request is a Fetch of an ordinary consumer."""
    return request.api_key == FetchRequest.API_KEY and consumer_fetch.is_consumer_fetch(
        cast(FetchRequest, request.request)
    )


class ConsumerReads:
    """The consumers of the metadata log on one node."""

    def __init__(self, core: RaftCore, state: ControllerState, outbox: Outbox) -> None:
        self._core = core
        self._state = state
        self._outbox = outbox
        self._parked = ParkedConsumers()
        self._searches = TimestampSearches()

    def next_deadline_ms(self) -> int | None:
        """Return the time by which ``answer_parked`` has to be called."""
        return self._parked.next_deadline_ms()

    def abandon(self, token: Hashable) -> None:
        """Drop the request of a consumer that disconnected."""
        self._parked.abandon(token)
        self._searches.abandon(token)

    def serve_fetch(self, request: ApiRequest, context: Context) -> None:
        """Answer a fetch, or park it."""
        fetch = cast(FetchRequest, request.request)
        names = {topic_name(topic, request.version) for topic in fetch.topics}
        refused = _refused_topics(context, AclOperation.READ, (name for name in names if name is not None))
        decision = consumer_fetch.decide(fetch, request.version, self._log_view(refused))
        if isinstance(decision, ConsumerWait):
            deadline_ms = self._outbox.now.monotonic_ms + decision.max_wait_ms
            self._parked.park(
                ParkedFetch(request.token, request.version, decision.request, decision.offset, deadline_ms)
            )
        else:
            self._answer(request.token, decision)

    def answer_parked(self, high_watermark: int) -> None:
        """Answer parked fetches that are ready. Of very many some are left for the next steps."""
        for parked in self._parked.take_ready(high_watermark, self._outbox.now.monotonic_ms):
            decision = consumer_fetch.decide(parked.request, parked.version, self._log_view())
            assert not isinstance(decision, ConsumerWait), "what is parked doesn't wait again"
            self._answer(parked.token, decision)

    def serve_list_offsets(self, request: ApiRequest, context: Context) -> None:
        """Answer at once, or after timestamps were looked up in the log."""
        asked = cast(ListOffsetsRequest, request.request)
        names = {topic.name for topic in asked.topics}
        view = self._log_view(_refused_topics(context, AclOperation.DESCRIBE, names))
        timestamps = consumer_list_offsets.timestamps_wanted(asked, view)
        if timestamps and view.is_leader:
            self._searches.add(
                TimestampRequest(
                    request.token, asked, request.version, view.refused_topics, tuple(timestamps)
                )
            )
            self._search()
        else:
            response = consumer_list_offsets.respond(asked, request.version, view)
            self._outbox.reply(request.token, response)

    def answer_found(self, event: TimestampsFound) -> None:
        """Answer those whose timestamps were looked up, and begin to look up those of others."""
        for each in self._searches.end():
            view = self._log_view(each.refused_topics)
            response = consumer_list_offsets.respond(each.request, each.version, view, event.found)
            self._outbox.reply(each.token, response)
        self._search()

    def _search(self) -> None:
        if timestamps := self._searches.begin():
            self._outbox.emit(FindTimestamps(timestamps, self._core.read_end_offset or 0))

    def _answer(self, token: Hashable, decision: ConsumerRead | ConsumerAnswer) -> None:
        if isinstance(decision, ConsumerRead):
            self._outbox.emit(ReplyCommitted(token, decision))
        else:
            self._outbox.reply(token, decision.response)

    def _log_view(self, refused_topics: frozenset[str] = frozenset()) -> LogView:
        return LogView(
            node_id=self._state.node_id,
            leader_id=self._state.node_id if self._core.is_observer_only else self._state.leader_id,
            epoch=self._core.read_epoch,
            log_start_offset=self._core.log_start_offset,
            high_watermark=self._core.read_end_offset,
            refused_topics=refused_topics,
        )


def _refused_topics(context: Context, operation: AclOperation, names: Iterable[str]) -> frozenset[str]:
    """Return the names of the topics for which the client has no permission."""
    return frozenset(name for name in names if not context.may(operation, topic_resource(name)))
