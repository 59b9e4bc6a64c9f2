"""Serve BrokerHeartbeat (63): decide whether a broker is fenced and may stop. KIP-500, KIP-631, KIP-858.

A broker is fenced, unfenced or in controlled shutdown. Each heartbeat says which of these the broker wants,
and the answer says which it gets. Versions: 1 adds offline log directories, 2 adds cordoned ones. Rules:
BrokerHeartbeatManager.calculateNextBrokerState, ReplicationControlManager.processBrokerHeartbeat.

There are two differences from Java. When a shutdown is granted, the session ends at once (``SessionEnded``),
so a restarted broker can register without waiting for the session timeout. And a broker that was fenced
after it began to stop stays fenced: only a delayed heartbeat, sent before, could ask for something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING

from kraft_wire.controller.brokers import broker_changes
from kraft_wire.controller.brokers.broker_changes import BrokerChange
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.records import joined
from kraft_wire.controller.decision.sessions import BrokerHeard, SessionChange, SessionEnded
from kraft_wire.controller.decision.work import WorkKind
from kraft_wire.controller.partitions.cluster_view import check_broker_epoch
from kraft_wire.metadata.features import metadata_version
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse

if TYPE_CHECKING:
    from kraft_wire.metadata.brokers import BrokerRegistration


class Standing(Enum):
    """The state of a broker as the controller sees it (Kafka's BrokerControlState)."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


def handle(state: ControllerState, request: BrokerHeartbeatRequest, version: int, context: Context) -> Result:
    """Decide on one heartbeat. Raises ApiError(STALE_BROKER_EPOCH) unless it is of the registered broker."""
    broker = check_broker_epoch(state, request.broker_id, request.broker_epoch)
    current = current_standing(state, broker)
    granted = next_standing(state, broker, current, request)
    changes = [
        _transition(state, broker, current, granted, context),
        *_directory_changes(state, broker, request, context),
    ]
    session_changes: list[SessionChange] = [
        BrokerHeard(broker.id, broker.epoch, request.current_metadata_offset, context.monotonic_ms)
    ]
    for change in changes:
        session_changes += change.session_changes
    if granted is Standing.SHUTDOWN_NOW:
        session_changes.append(SessionEnded(broker.id))
    response = BrokerHeartbeatResponse(
        is_caught_up=is_caught_up(broker, request),
        is_fenced=granted in (Standing.FENCED, Standing.SHUTDOWN_NOW),
        should_shut_down=granted is Standing.SHUTDOWN_NOW,
    )
    records = joined(*[change.records for change in changes])
    return Result(
        response,
        records,
        atomic=False,
        session_changes=session_changes,
        works=[work for change in changes for work in change.works],
        shown_end=None if records else _shown_end(state, granted),
    )


def _shown_end(state: ControllerState, granted: Standing) -> int | None:
    """Return the end of the records that an answer without records of its own shows.

    Most answers show only the broker's registration. Whether a broker may stop depends on partitions too.
    """
    if granted in (Standing.FENCED, Standing.UNFENCED):
        return state.metadata.brokers_changed_end
    return None


def current_standing(state: ControllerState, broker: BrokerRegistration) -> Standing:
    """Return the state of the broker before this heartbeat.

    A controlled shutdown that began with an earlier controller does not count: the broker asks again. While
    a broker is being fenced, it counts as fenced.
    """
    if broker.fenced or state.is_being_fenced(broker.id):
        return Standing.FENCED
    if state.sessions.is_shutting_down(broker.id):
        return Standing.CONTROLLED_SHUTDOWN
    return Standing.UNFENCED


def next_standing(
    state: ControllerState, broker: BrokerRegistration, current: Standing, request: BrokerHeartbeatRequest
) -> Standing:
    """Return the state of the broker after this heartbeat."""
    if state.is_being_fenced(broker.id):
        return Standing.FENCED  # it may stop, or be unfenced, when it is in no ISR any more
    if current is Standing.FENCED:
        return _from_fenced(broker, request)
    if current is Standing.UNFENCED:
        return _from_unfenced(state, broker, request)
    return _from_controlled_shutdown(state, broker)


def is_caught_up(broker: BrokerRegistration, request: BrokerHeartbeatRequest) -> bool:
    """Whether the broker has applied its own registration.

    The end of the log is not used, because it always moves.
    """
    return request.current_metadata_offset >= broker.registration_offset


def _from_fenced(broker: BrokerRegistration, request: BrokerHeartbeatRequest) -> Standing:
    if request.want_shut_down:
        return Standing.SHUTDOWN_NOW
    if not request.want_fence and is_caught_up(broker, request) and not broker.in_controlled_shutdown:
        return Standing.UNFENCED
    return Standing.FENCED


def _from_unfenced(
    state: ControllerState, broker: BrokerRegistration, request: BrokerHeartbeatRequest
) -> Standing:
    if request.want_fence:
        return Standing.SHUTDOWN_NOW if request.want_shut_down else Standing.FENCED
    if not request.want_shut_down:
        return Standing.UNFENCED
    return Standing.CONTROLLED_SHUTDOWN if _leads_partitions(state, broker) else Standing.SHUTDOWN_NOW


def _from_controlled_shutdown(state: ControllerState, broker: BrokerRegistration) -> Standing:
    """Let the broker stop when it leads no partition and every active broker has applied that."""
    if state.is_in_work(WorkKind.SHUT_DOWN, broker.id) or _leads_partitions(state, broker):
        return Standing.CONTROLLED_SHUTDOWN
    others = (
        other.id
        for other in state.metadata.brokers.values()
        if not other.fenced and not state.sessions.is_shutting_down(other.id)
    )
    lowest = state.sessions.lowest_offset(others)
    if lowest is None or state.sessions.controlled_shutdown_offset(broker.id) <= lowest:
        return Standing.SHUTDOWN_NOW
    return Standing.CONTROLLED_SHUTDOWN


def _leads_partitions(state: ControllerState, broker: BrokerRegistration) -> bool:
    return state.metadata.partitions.count_led_by(broker.id) > 0


def _transition(
    state: ControllerState,
    broker: BrokerRegistration,
    current: Standing,
    granted: Standing,
    context: Context,
) -> BrokerChange:
    if granted is current:
        return BrokerChange()
    if granted is Standing.UNFENCED:
        return broker_changes.unfence(state, broker, context)
    if granted is Standing.CONTROLLED_SHUTDOWN:
        return broker_changes.shut_down_gradually(state, broker, context)
    return broker_changes.fence(state, broker, context)


def _directory_changes(
    state: ControllerState, broker: BrokerRegistration, request: BrokerHeartbeatRequest, context: Context
) -> Iterator[BrokerChange]:
    level = state.metadata.features.metadata_version
    if metadata_version.directory_assignment_supported(level):
        yield broker_changes.take_directories_offline(state, broker, request.offline_log_dirs, context)
    if metadata_version.cordoned_dirs_supported(level):
        yield broker_changes.cordon_directories(broker, request.cordoned_log_dirs)
