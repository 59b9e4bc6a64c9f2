"""DeleteTopics (20), versions 1-6.

Kafka requires DELETE on the CLUSTER, or on each TOPIC; DESCRIBE on a topic decides whether an error may tell
that it exists. Versions up to 5 name topics, version 6 names them or gives their ids.

Kafka shuffles the results, because their order would tell absent topics from those that the client may not
see. Here everything is permitted so far, and results keep the order in which they were found.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

from kraft_wire.controller.context import Context, ControllerState, Result
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest
from kraft_wire.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.uuid import Uuid

K = TypeVar("K", str, Uuid)

_FIRST_VERSION_WITH_DISABLED_ERROR = 3
_FIRST_VERSION_WITH_IDS = 6


def handle(state: ControllerState, request: DeleteTopicsRequest, version: int, context: Context) -> Result:
    """Delete what can be deleted.

    Raises ApiError(TOPIC_DELETION_DISABLED; INVALID_REQUEST up to version 2) where delete.topic.enable is
    false.
    """
    if not state.settings.delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED
        if version < _FIRST_VERSION_WITH_DISABLED_ERROR:
            code = ErrorCode.INVALID_REQUEST
        raise ApiError(
            code, "topics are not deleted here: the controller runs with delete.topic.enable=false"
        )
    wanted = _Wanted()
    for name in request.topic_names:
        wanted.names[name] += 1
    for topic in request.topics:
        wanted.add(topic.name, topic.topic_id)
    doomed = wanted.resolve(state)
    results = wanted.failures + [DeletableTopicResult(name=name, topic_id=id) for id, name in doomed.items()]
    records = [(RemoveTopicRecord(topic_id=topic_id), 0) for topic_id in doomed]
    return Result(DeleteTopicsResponse(responses=results), records)


def error_response(
    request: DeleteTopicsRequest, version: int, code: ErrorCode, message: str
) -> DeleteTopicsResponse:
    """Every topic fails with ``code``."""
    if version >= _FIRST_VERSION_WITH_IDS:
        return DeleteTopicsResponse(
            responses=[_failure(topic.name, topic.topic_id, code, message) for topic in request.topics]
        )
    return DeleteTopicsResponse(
        responses=[_failure(name, Uuid.ZERO, code, message) for name in request.topic_names]
    )


def _failure(name: str | None, topic_id: Uuid, code: ErrorCode, message: str) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=message)


def _given_once(counts: Counter[K]) -> list[K]:
    return [key for key, count in counts.items() if count == 1]


class _Wanted:
    """The topics that a request names in either way, and what is wrong with some of them."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()
        self.failures: list[DeletableTopicResult] = []
        self._ids: Counter[Uuid] = Counter()

    def add(self, name: str | None, topic_id: Uuid) -> None:
        if name is not None and topic_id:
            self._fail(name, topic_id, "a topic is named or given by its id, not both")
        elif name is not None:
            self.names[name] += 1
        elif topic_id:
            self._ids[topic_id] += 1
        else:
            self._fail(None, topic_id, "neither the topic's name nor its id is given")

    def resolve(self, state: ControllerState) -> dict[Uuid, str]:
        """The names of the topics to delete, by id; everything else becomes a failure."""
        for name, count in self.names.items():
            if count > 1:
                self._fail(name, Uuid.ZERO, "the topic is named more than once")
        for topic_id, count in self._ids.items():
            if count > 1:
                self._fail(None, topic_id, "the topic's id is given more than once")
        doomed = self._resolve_ids(state)
        self._resolve_names(state, doomed)
        return doomed

    def _resolve_ids(self, state: ControllerState) -> dict[Uuid, str]:
        doomed = {}
        for topic_id in _given_once(self._ids):
            topic = state.metadata.topics.by_id(topic_id)
            if topic is None:
                self._fail(None, topic_id, f"there is no topic {topic_id}", ErrorCode.UNKNOWN_TOPIC_ID)
            else:
                doomed[topic_id] = topic.name
        return doomed

    def _resolve_names(self, state: ControllerState, doomed: dict[Uuid, str]) -> None:
        for name in _given_once(self.names):
            topic = state.metadata.topics.by_name(name)
            if topic is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                self._fail(name, Uuid.ZERO, f"there is no topic {name}", code)
            elif topic.id in self._ids:
                # Deleted in neither way: the client must say what it means.
                doomed.pop(topic.id, None)
                self._fail(name, topic.id, "the topic is given by its name and by its id")
            else:
                doomed[topic.id] = name

    def _fail(
        self, name: str | None, topic_id: Uuid, message: str, code: ErrorCode = ErrorCode.INVALID_REQUEST
    ) -> None:
        self.failures.append(_failure(name, topic_id, code, message))
