"""BrokerHeartbeat (63): a broker reports, and is told whether it is fenced and may stop. KIP-500, KIP-631,
KIP-858.

A broker is fenced, unfenced, or shutting down under control; each heartbeat says what it wants, and this
decides what it gets. Versions: 1 adds offline log directories, 2 adds cordoned ones. Kafka requires
CLUSTER_ACTION on the cluster. Rules: BrokerHeartbeatManager.calculateNextBrokerState,
ReplicationControlManager.processBrokerHeartbeat.

Ours beyond Java: once a shutdown is granted the session ends at once (``BrokerSessions.shutdown_granted``),
so a restarted broker registers without waiting for the session timeout. And a broker that is fenced after it
began to stop stays fenced: only a heartbeat that was sent before, and comes late, could ask for more.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from kraft_wire.controller import broker_changes
from kraft_wire.controller.cluster_view import check_broker_epoch
from kraft_wire.controller.context import Context, ControllerState, Result, VersionedRecord
from kraft_wire.metadata import version as metadata_version
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse

if TYPE_CHECKING:
    from kraft_wire.metadata.brokers import BrokerRegistration


class Standing(Enum):
    """How a broker stands with the controller (Kafka's BrokerControlState)."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


def handle(state: ControllerState, request: BrokerHeartbeatRequest, version: int, context: Context) -> Result:
    """Decide on one heartbeat. Raises ApiError(STALE_BROKER_EPOCH) for any but the registered incarnation."""
    broker = check_broker_epoch(state, request.broker_id, request.broker_epoch)
    state.sessions.heard(broker.id, broker.epoch, request.current_metadata_offset, context.monotonic_ms)
    current = current_standing(state, broker)
    granted = next_standing(state, broker, current, request)
    records = _transition(state, broker, current, granted)
    records += _directory_changes(state, broker, request)
    if granted is Standing.CONTROLLED_SHUTDOWN:
        state.sessions.enter_controlled_shutdown(broker.id, state.next_offset + len(records) - 1)
    elif granted is Standing.SHUTDOWN_NOW:
        state.sessions.shutdown_granted(broker.id)
    response = BrokerHeartbeatResponse(
        is_caught_up=is_caught_up(broker, request),
        is_fenced=granted in (Standing.FENCED, Standing.SHUTDOWN_NOW),
        should_shut_down=granted is Standing.SHUTDOWN_NOW,
    )
    return Result(response, records, atomic=False)


def error_response(
    request: BrokerHeartbeatRequest, version: int, code: ErrorCode, message: str
) -> BrokerHeartbeatResponse:
    """Only the code has a place in the response."""
    return BrokerHeartbeatResponse(error_code=int(code))


def current_standing(state: ControllerState, broker: BrokerRegistration) -> Standing:
    """How the broker stands before this heartbeat.

    A shutdown that an earlier controller began counts as not begun: the broker asks again, and gets its mark.
    """
    if broker.fenced:
        return Standing.FENCED
    if state.sessions.is_shutting_down(broker.id):
        return Standing.CONTROLLED_SHUTDOWN
    return Standing.UNFENCED


def next_standing(
    state: ControllerState, broker: BrokerRegistration, current: Standing, request: BrokerHeartbeatRequest
) -> Standing:
    """What the broker gets for what it asks."""
    if current is Standing.FENCED:
        return _from_fenced(broker, request)
    if current is Standing.UNFENCED:
        return _from_unfenced(state, broker, request)
    return _from_controlled_shutdown(state, broker)


def is_caught_up(broker: BrokerRegistration, request: BrokerHeartbeatRequest) -> bool:
    """Whether the broker has applied its own registration. The log's end is no measure: it never stands
    still."""
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
    """The broker may stop when it leads nothing and every active broker knows that."""
    if _leads_partitions(state, broker):
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
    state: ControllerState, broker: BrokerRegistration, current: Standing, granted: Standing
) -> list[VersionedRecord]:
    if granted is current:
        return []
    if granted is Standing.UNFENCED:
        return broker_changes.unfence(state, broker)
    if granted is Standing.CONTROLLED_SHUTDOWN:
        return broker_changes.shut_down_gradually(state, broker)
    return broker_changes.fence(state, broker)


def _directory_changes(
    state: ControllerState, broker: BrokerRegistration, request: BrokerHeartbeatRequest
) -> list[VersionedRecord]:
    level = state.metadata.features.metadata_version
    records: list[VersionedRecord] = []
    if metadata_version.directory_assignment_supported(level):
        records += broker_changes.take_directories_offline(state, broker, request.offline_log_dirs)
    if metadata_version.cordoned_dirs_supported(level):
        records += broker_changes.cordon_directories(broker, request.cordoned_log_dirs)
    return records
