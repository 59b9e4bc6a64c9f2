"""Log changes of brokers, topics and features, refused requests, and problems of the quorum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from traceback import format_exception
from typing import Any, Final, NamedTuple, assert_never

from kraft_wire.controller.decision.records import Records, VersionedRecord
from kraft_wire.controller.node.effects import HandlerFailed, RequestRefused, TaskFailed, WorkFailed
from kraft_wire.metadata.topic_removals import TopicRemovals
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.registry import api_name
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft import effects as raft_effects
from kraft_wire.server.logging import get_logger

Problem = (
    raft_effects.LeaderLacksCommitted | raft_effects.EpochsUsedUp | HandlerFailed | WorkFailed | TaskFailed
)

log = get_logger(__name__)

MOST_TOPIC_LINES: Final = 100
"""More topics of one request are one line."""
BROKER_REGISTRATION: Final = "BrokerRegistration"
QUIET_REFUSALS: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH)
"""Errors that brokers get in normal operation, after they or a controller restarted."""


def report_records(
    records: Sequence[VersionedRecord],
    request: Message | None = None,
    response: Message | None = None,
) -> None:
    """Log the changes of brokers, topics and features among records that were just appended.

    ``request`` is the request that they were decided for, None for a decision of the controller itself, and
    ``response`` its response: they have the reason for a fencing and the names of deleted topics.
    """
    cause = Cause(request, _deleted_topics(response))
    features = []
    singles = list(records.singles) if isinstance(records, Records) else records
    _report_removals(records, cause)
    is_summed_up = _sum_up_topics(singles)
    for record, _ in singles:
        if is_summed_up and isinstance(record, TopicRecord | RemoveTopicRecord):
            continue
        if isinstance(record, FeatureLevelRecord):
            features.append(f"{record.name}={record.feature_level}")
        reporter = _REPORTERS.get(type(record))
        if reporter is not None:
            reporter(record, cause)
    if features:
        log.info("features finalized", features=features)


def _sum_up_topics(records: Sequence[VersionedRecord]) -> bool:
    """Log the number of topics instead of each one, if they are many: a line takes time. Returns whether they
    are."""
    if len(records) <= MOST_TOPIC_LINES:
        return False
    for record_class, event in ((TopicRecord, "topics created"), (RemoveTopicRecord, "topics deleted")):
        topics = [record for record, _ in records if isinstance(record, record_class)]
        if len(topics) > MOST_TOPIC_LINES:
            first = getattr(topics[0], "name", None)
            log.info(event, count=len(topics), **({"first": first} if first else {}))
            return True
    return False


def _report_removals(records: Sequence[VersionedRecord], cause: Cause) -> None:
    """Log the deleted topics of records in columns: their number, if they are many."""
    for part in records.parts if isinstance(records, Records) else ():
        if isinstance(part, TopicRemovals) and len(part) > MOST_TOPIC_LINES:
            log.info("topics deleted", count=len(part))
        elif isinstance(part, TopicRemovals):
            for topic_id in part.topic_ids:
                _topic_removed(RemoveTopicRecord(topic_id), cause)


def report_refusal(refused: RequestRefused) -> None:
    """Log a request that failed as a whole; a warning if a broker can't register."""
    fields = {
        "api": api_name(refused.api_key),
        "error": refused.code.name,
        "reason": refused.reason,
        "peer": refused.caller.address,
        "client_id": refused.caller.client_id,
    }
    if refused.code in QUIET_REFUSALS:
        log.debug("request refused", **fields)
    elif api_name(refused.api_key) == BROKER_REGISTRATION:
        log.warning("broker registration refused", **fields)
    else:
        log.info("request refused", **fields)


def report_problem(effect: Problem) -> None:
    """Log what must never happen in a healthy quorum."""
    match effect:
        case raft_effects.LeaderLacksCommitted(leader_id, epoch, end_offset, committed_offset):
            log.error(
                "leader lacks committed records",
                leader_id=leader_id,
                epoch=epoch,
                its_end_offset=end_offset,
                committed_offset=committed_offset,
                advice="this node doesn't follow it: if a recovery gave these records up, format this node"
                " again; otherwise stop the leader, so that a controller with these records leads",
            )
        case raft_effects.EpochsUsedUp(epoch):
            log.error(
                "epochs exhausted", epoch=epoch, advice="see `kraft-wire fsck`: the epoch can be lowered"
            )
        case HandlerFailed(api_key, version, error):
            log.error(
                "request failed",
                api=api_name(api_key),
                version=version,
                error=repr(error),
                traceback="".join(format_exception(error)),
            )
        case WorkFailed(key, error):
            log.error(
                "work failed",
                work=key.kind.value,
                broker_id=key.broker_id,
                error=repr(error),
                traceback="".join(format_exception(error)),
            )
        case TaskFailed(task, error):
            log.error(
                "periodic task failed",
                task=task,
                error=repr(error),
                traceback="".join(format_exception(error)),
            )
        case _:
            assert_never(effect)


class Cause(NamedTuple):
    """The request that records were decided for, None for the controller's own, and the topics it deleted."""

    request: Message | None
    deleted_topics: Mapping[Uuid, str | None]

    def fencing_reason(self, *, is_fenced: bool) -> str:
        """Return the reason for which a broker was fenced or unfenced."""
        match self.request:
            case None:
                return "session timed out"
            case BrokerHeartbeatRequest() if not is_fenced:
                return "broker caught up"
            case BrokerHeartbeatRequest(want_fence=True, want_shut_down=False):
                return "requested by the broker"
            case BrokerHeartbeatRequest():
                return "broker shuts down"
            case _:
                return api_name(self.request.API_KEY)


def _deleted_topics(response: Message | None) -> Mapping[Uuid, str | None]:
    """Return the names of the topics in a DeleteTopics response, by their ids."""
    if not isinstance(response, DeleteTopicsResponse):
        return {}
    return {each.topic_id: each.name for each in response.responses}


def _registered(record: RegisterBrokerRecord, cause: Cause) -> None:
    log.info(
        "broker registered",
        broker_id=record.broker_id,
        broker_epoch=record.broker_epoch,
        incarnation_id=str(record.incarnation_id),
        rack=record.rack,
        endpoints=[f"{point.name}://{point.host}:{point.port}" for point in record.end_points],
    )


def _unregistered(record: UnregisterBrokerRecord, cause: Cause) -> None:
    log.info("broker unregistered", broker_id=record.broker_id, broker_epoch=record.broker_epoch)


def _changed(record: BrokerRegistrationChangeRecord, cause: Cause) -> None:
    fields = {"broker_id": record.broker_id, "broker_epoch": record.broker_epoch}
    if record.fenced:
        is_fenced = record.fenced > 0
        event = "broker fenced" if is_fenced else "broker unfenced"
        log.info(event, **fields, reason=cause.fencing_reason(is_fenced=is_fenced))
    if record.in_controlled_shutdown:
        log.info("broker controlled shutdown started", **fields)
    if record.log_dirs:
        log.warning("broker lost log directories", online=[str(id) for id in record.log_dirs], **fields)


def _topic(record: TopicRecord, cause: Cause) -> None:
    log.info("topic created", topic=record.name, topic_id=str(record.topic_id))


def _topic_removed(record: RemoveTopicRecord, cause: Cause) -> None:
    log.info("topic deleted", topic=cause.deleted_topics.get(record.topic_id), topic_id=str(record.topic_id))


_REPORTERS: Final[dict[type[Message], Callable[[Any, Cause], None]]] = {
    RegisterBrokerRecord: _registered,
    UnregisterBrokerRecord: _unregistered,
    BrokerRegistrationChangeRecord: _changed,
    TopicRecord: _topic,
    RemoveTopicRecord: _topic_removed,
}
