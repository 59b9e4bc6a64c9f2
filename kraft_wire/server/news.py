"""What an operator wants to read in the log: what became of brokers, and what was refused, by whom it was
asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from traceback import format_exception
from typing import Any, Final

from kraft_wire.controller.context import VersionedRecord
from kraft_wire.controller.node import NodeEffect
from kraft_wire.controller.requests import HandlerFailed, Refused
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.registry import api_name
from kraft_wire.raft import effects as raft_effects
from kraft_wire.server.logging import get_logger

log = get_logger(__name__)

BROKER_REGISTRATION: Final = 62
QUIET_REFUSALS: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH)
"""What brokers run into as a matter of course, when a controller or they themselves have restarted."""


def tell_decisions(records: Sequence[VersionedRecord]) -> None:
    """Log the changes of brokers, topics and features among records that were just written."""
    for record, _ in records:
        tell = _TELLERS.get(type(record))
        if tell is not None:
            tell(record)


def tell_refusal(refused: Refused) -> None:
    """Log a request that failed as a whole: a broker that can't register matters most."""
    fields = {
        "api": api_name(refused.api_key),
        "error": refused.code.name,
        "reason": refused.reason,
        "peer": refused.peer.address,
        "client_id": refused.peer.client_id,
    }
    if refused.code in QUIET_REFUSALS:
        log.debug("request refused", **fields)
    elif refused.api_key == BROKER_REGISTRATION:
        log.warning("broker registration refused", **fields)
    else:
        log.info("request refused", **fields)


def tell_trouble(effect: NodeEffect) -> None:
    """Log what should not be."""
    match effect:
        case raft_effects.BadFetch(leader_id, offset, reason):
            log.error(
                "the leader sent what cannot be its log", leader_id=leader_id, offset=offset, reason=reason
            )
        case raft_effects.LeaderLacksCommitted(leader_id, epoch, end_offset, committed_offset):
            log.error(
                "the leader lacks what is committed, and is not followed: stop it, so that a controller leads"
                " that has it; to give it up instead, format this node anew",
                leader_id=leader_id,
                epoch=epoch,
                its_end_offset=end_offset,
                committed_offset=committed_offset,
            )
        case raft_effects.EpochsUsedUp(epoch):
            log.error(
                "no epoch is left to stand for election in: only other controllers can lead, if any",
                epoch=epoch,
            )
        case HandlerFailed(api_key, version, error):
            log.error(
                "a request failed by a defect",
                api=api_name(api_key),
                version=version,
                error=repr(error),
                traceback="".join(format_exception(error)),
            )


def _registered(record: RegisterBrokerRecord) -> None:
    log.info(
        "broker registered",
        broker_id=record.broker_id,
        broker_epoch=record.broker_epoch,
        incarnation_id=str(record.incarnation_id),
        rack=record.rack,
        endpoints=[f"{point.name}://{point.host}:{point.port}" for point in record.end_points],
    )


def _unregistered(record: UnregisterBrokerRecord) -> None:
    log.info("broker unregistered", broker_id=record.broker_id, broker_epoch=record.broker_epoch)


def _changed(record: BrokerRegistrationChangeRecord) -> None:
    fields = {"broker_id": record.broker_id, "broker_epoch": record.broker_epoch}
    if record.fenced:
        log.info("broker fenced" if record.fenced > 0 else "broker unfenced", **fields)
    if record.in_controlled_shutdown:
        log.info("broker shuts down", **fields)
    if record.log_dirs:
        log.warning("broker lost log directories", online=[str(id) for id in record.log_dirs], **fields)


def _feature(record: FeatureLevelRecord) -> None:
    log.info("feature finalized", feature=record.name, feature_level=record.feature_level)


def _topic(record: TopicRecord) -> None:
    log.debug("topic created", topic=record.name, topic_id=str(record.topic_id))


def _topic_removed(record: RemoveTopicRecord) -> None:
    log.debug("topic deleted", topic_id=str(record.topic_id))


_TELLERS: Final[dict[type[Message], Callable[[Any], None]]] = {
    RegisterBrokerRecord: _registered,
    UnregisterBrokerRecord: _unregistered,
    BrokerRegistrationChangeRecord: _changed,
    FeatureLevelRecord: _feature,
    TopicRecord: _topic,
    RemoveTopicRecord: _topic_removed,
}
