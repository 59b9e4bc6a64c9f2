"""Serve DeleteTopics (20), versions 1-6: delete topics.

Versions up to 5 have the names of topics, version 6 has names or ids. From 5 on the client's quota of changed
partitions is strict (KIP-599). Kafka requires DELETE on the cluster or
on each topic. Without DESCRIBE on a topic the client does not learn whether a topic of that name exists, or
what the name of an id is.

Kafka shuffles the results, because their order would reveal which topics exist. Here the order reveals
nothing: a topic that the client may not see has the same place in the response whether it exists or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Final, TypeVar

from kraft_wire.controller.decision.context import Context, ControllerState, Result, refused
from kraft_wire.controller.decision.item_work import LimitedWork, pieces_of
from kraft_wire.controller.decision.records import Records
from kraft_wire.controller.decision.work import WorkKind
from kraft_wire.controller.quotas.mutations import MutationQuota
from kraft_wire.metadata.topic_removals import TopicRemovals
from kraft_wire.protocol.errors import ApiError, ErrorCode, cut_message
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest
from kraft_wire.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.security.authorization import CLUSTER, AclOperation, topic_resource

K = TypeVar("K", str, Uuid)
_Deletable = tuple[Uuid, str]
"""The id and the name of a topic."""

TOPICS_PER_PIECE: Final = 2_000
"""The topics that are deleted in one step."""
PARTITIONS_PER_PIECE: Final = 50_000
"""Their partitions. A topic that has more is deleted in one step nevertheless."""

_FEWEST_IN_COLUMNS = 16
"""Fewer topics are deleted one by one."""
_FIRST_VERSION_WITH_DISABLED_ERROR = 3
_FIRST_VERSION_WITH_STRICT_QUOTA = 5


def handle(state: ControllerState, request: DeleteTopicsRequest, version: int, context: Context) -> Result:
    """Delete the topics that can be deleted.

    Raises ApiError(TOPIC_DELETION_DISABLED; INVALID_REQUEST up to version 2) if delete.topic.enable is false.
    """
    if not state.settings.delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED
        if version < _FIRST_VERSION_WITH_DISABLED_ERROR:
            code = ErrorCode.INVALID_REQUEST
        raise ApiError(
            code, "topic deletion is disabled: the controller is configured with delete.topic.enable=false"
        )
    wanted = _Wanted(state, context)
    for name in request.topic_names:
        wanted.names[name] += 1
    for topic in request.topics:
        wanted.add(topic.name, topic.topic_id)
    deletable = wanted.resolve()
    pieces = pieces_of(
        deletable.items(),
        TOPICS_PER_PIECE,
        lambda item: _partition_count(state, item[0]),
        PARTITIONS_PER_PIECE,
    )
    quota = state.mutation_quota(context, is_strict=version >= _FIRST_VERSION_WITH_STRICT_QUOTA)

    def delete(
        state: ControllerState, topics: Sequence[_Deletable]
    ) -> tuple[list[DeletableTopicResult], Records]:
        return _delete(state, topics, wanted.ids, quota)

    def respond(results: list[DeletableTopicResult]) -> DeleteTopicsResponse:
        return DeleteTopicsResponse(quota.throttle_time_ms, wanted.failures + results)

    work = LimitedWork(WorkKind.DELETE_TOPICS, pieces, delete, respond, quota=quota)
    return work.begin(state, context)


def _delete(
    state: ControllerState, topics: Iterable[_Deletable], given_by_id: Container[Uuid], quota: MutationQuota
) -> tuple[list[DeletableTopicResult], Records]:
    """Return the results and the records. A topic may be gone since it was resolved, in an earlier step."""
    results: list[DeletableTopicResult] = []
    present: list[Uuid] = []
    for topic_id, name in topics:
        result = DeletableTopicResult(name=name, topic_id=topic_id)
        try:
            _check_present(state, topic_id, name, given_by_id)
            quota.spend(_partition_count(state, topic_id))
            present.append(topic_id)
        except ApiError as error:
            result.error_code = int(error.code)
            result.error_message = cut_message(error.message)
        results.append(result)
    removals = TopicRemovals(tuple(present))
    return results, Records([removals if len(removals) >= _FEWEST_IN_COLUMNS else removals.records()])


def _check_present(state: ControllerState, topic_id: Uuid, name: str, given_by_id: Container[Uuid]) -> None:
    if state.metadata.topics.find_rows(topic_id) is None:
        by_id, by_name = ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise ApiError(by_id if topic_id in given_by_id else by_name, f"there is no topic {name}")


def _partition_count(state: ControllerState, topic_id: Uuid) -> int:
    topic = state.metadata.topics.by_id(topic_id)
    return 0 if topic is None else topic.partition_count


def _given_once(counts: Counter[K]) -> list[K]:
    return [key for key, count in counts.items() if count == 1]


class _Wanted:
    """The topics that a request names in either way, and the failures of some of them."""

    def __init__(self, state: ControllerState, context: Context) -> None:
        self.names: Counter[str] = Counter()
        self.failures: list[DeletableTopicResult] = []
        self.ids: Counter[Uuid] = Counter()
        self._topics = state.metadata.topics
        self._context = context
        self._may_delete_all = context.may(AclOperation.DELETE, CLUSTER)

    def add(self, name: str | None, topic_id: Uuid) -> None:
        if name is not None and topic_id:
            self._fail(name, topic_id, "a topic is given by its name or by its id, not by both")
        elif name is not None:
            self.names[name] += 1
        elif topic_id:
            self.ids[topic_id] += 1
        else:
            self._fail(None, topic_id, "neither the topic's name nor its id is given")

    def resolve(self) -> dict[Uuid, str]:
        """Return the names of the topics to delete, by id. All others become failures."""
        for name, count in self.names.items():
            if count > 1:
                self._fail(name, Uuid.ZERO, "the topic is named more than once")
        for topic_id, count in self.ids.items():
            if count > 1:
                self._fail(None, topic_id, "the topic's id is given more than once")
        deletable = self._resolve_ids()
        self._resolve_names(deletable)
        return deletable

    def _resolve_ids(self) -> dict[Uuid, str]:
        deletable = {}
        for topic_id in _given_once(self.ids):
            topic = self._topics.by_id(topic_id)
            if topic is None:
                self._fail(None, topic_id, f"there is no topic {topic_id}", ErrorCode.UNKNOWN_TOPIC_ID)
            elif self._may(AclOperation.DELETE, topic.name):
                deletable[topic_id] = topic.name
            else:
                name = topic.name if self._may(AclOperation.DESCRIBE, topic.name) else None
                self._refuse(name, topic_id)
        return deletable

    def _resolve_names(self, deletable: dict[Uuid, str]) -> None:
        for name in _given_once(self.names):
            topic = self._topics.by_name(name)
            if not self._may(AclOperation.DESCRIBE, name):
                self._refuse(name, Uuid.ZERO)
            elif topic is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                self._fail(name, Uuid.ZERO, f"there is no topic {name}", code)
            elif not self._may(AclOperation.DELETE, name):
                self._refuse(name, Uuid.ZERO)
            elif topic.id in self.ids:
                # Ambiguous, so the topic is not deleted at all.
                deletable.pop(topic.id, None)
                self._fail(name, topic.id, "the topic is given by its name and by its id")
            else:
                deletable[topic.id] = name

    def _may(self, operation: AclOperation, name: str) -> bool:
        """Whether the client may do this to a topic. DELETE on the cluster includes it."""
        return self._may_delete_all or self._context.may(operation, topic_resource(name))

    def _refuse(self, name: str | None, topic_id: Uuid) -> None:
        error = refused(AclOperation.DELETE, topic_resource(name or str(topic_id)))
        self._fail(name, topic_id, error.message, error.code)

    def _fail(
        self, name: str | None, topic_id: Uuid, message: str, code: ErrorCode = ErrorCode.INVALID_REQUEST
    ) -> None:
        self.failures.append(
            DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=code, error_message=cut_message(message)
            )
        )
