"""Serve BrokerRegistration (62): let a broker process join the cluster. KIP-500, KIP-584, KIP-966.

A new broker is fenced. Its epoch is the offset of the first record of this decision; of its last piece, if it
takes several steps. If the same process (incarnation id) registers again, its registration is replaced, but
epoch and state stay. If a new process registers, the replicas of its predecessor are first removed from the
ISRs. The RegisterBrokerRecord comes last: the records may be split into batches, and if only the first are
committed the broker registers again.

Versions: 1 adds isMigratingZkBroker (always rejected), 2 log directories, 3 the previous epoch, 4 features
with minimum 0. Rules: ClusterControlManager.registerBroker.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from kraft_wire.controller.brokers.leaving import BrokerLeaving
from kraft_wire.controller.brokers.registration_checks import check_feature_count, check_listeners
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.sessions import BrokerRegistered
from kraft_wire.controller.decision.work import Piece, WorkKind
from kraft_wire.metadata.features import metadata_version
from kraft_wire.metadata.partitions.partition import is_reserved_directory
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.broker_registration_request import BrokerRegistrationRequest
from kraft_wire.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kraft_wire.protocol.messages.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)

if TYPE_CHECKING:
    from kraft_wire.metadata.brokers import BrokerRegistration

FIRST_VERSION_WITH_PREVIOUS_EPOCH: Final = 3
MOST_DIRECTORIES: Final = 128
"""Each is compared with those of all brokers. Kafka has no such limit."""


def handle(
    state: ControllerState, request: BrokerRegistrationRequest, version: int, context: Context
) -> Result:
    """Register a broker.

    Raises ApiError: INCONSISTENT_CLUSTER_ID; DUPLICATE_BROKER_REGISTRATION while another process with that id
    is alive; INVALID_REGISTRATION for impossible listeners, directories or features; UNSUPPORTED_VERSION for
    a broker that does not support a finalized feature.
    """
    _check(state, request, context)
    existing = state.metadata.brokers.get(request.broker_id)
    amended = _same_process(state, request)
    if amended is not None:
        piece = _register(state, request, amended)
        return Result(piece.response, piece.records, atomic=False, session_changes=piece.session_changes)
    work = BrokerLeaving(
        WorkKind.REGISTER,
        request.broker_id,
        partial(_replace, request),
        forgets=_may_have_lost_records(state, request, version, existing),
    )
    return Result.of_work(work, state, context)


def _same_process(state: ControllerState, request: BrokerRegistrationRequest) -> BrokerRegistration | None:
    """Return the registration that this process has already. It keeps its epoch."""
    existing = state.metadata.brokers.get(request.broker_id)
    is_same = existing is not None and existing.incarnation_id == request.incarnation_id
    return existing if is_same else None


def _check(state: ControllerState, request: BrokerRegistrationRequest, context: Context) -> None:
    _check_cluster(state, request)
    if request.broker_id < 0:
        raise _invalid(request, "has a negative id")
    _check_duplicate(state, request, state.metadata.brokers.get(request.broker_id), context)
    _check_directories(state, request)
    check_listeners(f"broker {request.broker_id}", request.listeners, ErrorCode.INVALID_REGISTRATION)
    _check_features(state, request)


def _replace(
    request: BrokerRegistrationRequest, state: ControllerState, context: Context, count: int
) -> Piece:
    """Register a new process, now that no ISR has its predecessor any more. If it asked twice, its first
    request has registered it already."""
    _check(state, request, context)  # again, because this may be a later step
    return _register(state, request, _same_process(state, request))


def _register(
    state: ControllerState, request: BrokerRegistrationRequest, amended: BrokerRegistration | None
) -> Piece:
    record = _registration(state, request, amended)
    level = state.metadata.features.metadata_version
    return Piece(
        [(record, metadata_version.register_broker_record_version(level))],
        True,
        [BrokerRegistered(request.broker_id, record.broker_epoch)],
        BrokerRegistrationResponse(broker_epoch=record.broker_epoch),
    )


def _check_cluster(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    if request.cluster_id != state.cluster_id:
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"broker {request.broker_id} belongs to cluster {request.cluster_id}, not {state.cluster_id}",
        )


def _check_duplicate(
    state: ControllerState,
    request: BrokerRegistrationRequest,
    existing: BrokerRegistration | None,
    context: Context,
) -> None:
    """Reject a second process with the same id until the first has been silent for a session timeout."""
    if (
        existing is not None
        and existing.incarnation_id != request.incarnation_id
        and state.sessions.has_valid_session(existing.id, existing.epoch, context.monotonic_ms)
    ):
        raise ApiError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"broker {existing.id} is running as incarnation {existing.incarnation_id}; if it was restarted, "
            f"register again {state.sessions.session_timeout_ms} ms after its last heartbeat",
        )
    if request.is_migrating_zk_broker:
        raise ApiError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"broker {request.broker_id} runs in ZooKeeper mode; migrate with Kafka 3.9 first",
        )


def _check_directories(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    if not metadata_version.directory_assignment_supported(state.metadata.features.metadata_version):
        return
    directories = request.log_dirs
    if not directories:
        raise _invalid(request, "has no log directory")
    if len(directories) > MOST_DIRECTORIES:
        raise _invalid(request, f"has {len(directories)} log directories; {MOST_DIRECTORIES} are allowed")
    if any(map(is_reserved_directory, directories)):
        raise _invalid(request, "has a log directory with a reserved id")
    own = set(directories)
    if len(own) != len(directories):
        raise _invalid(request, "has two log directories with the same id")
    for other in state.metadata.brokers.values():
        if other.id != request.broker_id and (shared := own.intersection(other.directories)):
            raise _invalid(request, f"has log directory {min(shared)}, which belongs to broker {other.id}")


def _invalid(request: BrokerRegistrationRequest, fault: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REGISTRATION, f"broker {request.broker_id} {fault}")


def _check_features(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    """Check that the broker supports the finalized level of every feature.

    A feature that the broker does not name has the range 0 to 0.
    """
    check_feature_count(f"broker {request.broker_id}", len(request.features), ErrorCode.INVALID_REGISTRATION)
    finalized = state.finalized_levels()
    supported = {f.name: (f.min_supported_version, f.max_supported_version) for f in request.features}
    for name, (lowest, highest) in supported.items():
        _check_level(request, name, finalized.get(name, 0), lowest, highest)
    if metadata_version.FEATURE_NAME not in supported:
        raise _invalid(request, f"does not name the feature {metadata_version.FEATURE_NAME}")
    for name, level in finalized.items():
        if name not in supported:
            _check_level(request, name, level, 0, 0)


def _check_level(
    request: BrokerRegistrationRequest, name: str, level: int, lowest: int, highest: int
) -> None:
    if not lowest <= level <= highest:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"broker {request.broker_id} supports {name} {lowest} to {highest}, "
            f"but the finalized level is {level}",
        )


def _may_have_lost_records(
    state: ControllerState,
    request: BrokerRegistrationRequest,
    version: int,
    existing: BrokerRegistration | None,
) -> bool:
    """Whether the broker has to leave the ELRs, with the feature of eligible leader replicas (KIP-966).

    After an unclean stop it may have lost records that it acknowledged. The stop was clean if the broker
    names the epoch of its predecessor.
    """
    stopped_cleanly = (
        version >= FIRST_VERSION_WITH_PREVIOUS_EPOCH
        and existing is not None
        and existing.epoch == request.previous_broker_epoch
    )
    return state.metadata.features.elr_enabled and not stopped_cleanly


def _registration(
    state: ControllerState, request: BrokerRegistrationRequest, amended: BrokerRegistration | None
) -> RegisterBrokerRecord:
    has_directories = metadata_version.directory_assignment_supported(
        state.metadata.features.metadata_version
    )
    record = RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=state.next_offset,
        end_points=[
            BrokerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in request.listeners
        ],
        features=[
            BrokerFeature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in request.features
        ],
        rack=request.rack,
        log_dirs=tuple(request.log_dirs) if has_directories else (),
    )
    if amended is not None:
        record.broker_epoch = amended.epoch
        record.fenced = amended.fenced
        record.in_controlled_shutdown = amended.in_controlled_shutdown
    return record
