"""A decision that fails changes nothing: no record is appended, and no session changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kraft_wire.controller.brokers import broker_heartbeat
from kraft_wire.controller.decision.api_table import Api
from kraft_wire.controller.decision.context import Result
from kraft_wire.controller.decision.records import MAX_RECORDS_PER_BATCH
from kraft_wire.controller.decision.sessions import BrokerUnregistered
from kraft_wire.controller.node.effects import HandlerFailed
from kraft_wire.metadata.canonical import fingerprint
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from tests.controller.lone_controller import LoneController
from tests.controller.node.node_requests import controller_with_broker


def _state(controller: LoneController) -> tuple[object, ...]:
    sessions: Any = controller.state.sessions
    return (
        fingerprint(controller.state.metadata),
        copy.deepcopy(sessions._sessions),
        controller.node.core.log_end_offset,
        len(controller.disk.batches),
    )


def _heartbeat(controller: LoneController) -> ErrorCode:
    epoch = controller.state.metadata.brokers[1].epoch
    controller.now_ms += 100
    controller.ask("beat", BrokerHeartbeatRequest(1, epoch, current_metadata_offset=epoch + 5), 1)
    return ErrorCode(controller.answer("beat", BrokerHeartbeatResponse).error_code)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ZeroDivisionError(), ErrorCode.UNKNOWN_SERVER_ERROR),
        (ApiError(ErrorCode.STALE_BROKER_EPOCH, "too late"), ErrorCode.STALE_BROKER_EPOCH),
    ],
)
def test_a_handler_that_raises_at_its_end_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, error: Exception, code: ErrorCode
) -> None:
    controller = controller_with_broker()
    before = _state(controller)

    def broken(*arguments: object) -> bool:
        raise error

    monkeypatch.setattr(broker_heartbeat, "is_caught_up", broken)
    monkeypatch.setattr(broker_heartbeat, "next_standing", lambda *_: broker_heartbeat.Standing.SHUTDOWN_NOW)
    assert _heartbeat(controller) is code
    monkeypatch.undo()
    assert _state(controller) == before
    failures = [type(e.error) for e in controller.effects if isinstance(e, HandlerFailed)]
    assert failures == ([ZeroDivisionError] if code is ErrorCode.UNKNOWN_SERVER_ERROR else [])


def test_a_decision_that_does_not_fit_into_a_batch_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = controller_with_broker()
    before = _state(controller)
    large = Result(
        BrokerHeartbeatResponse(),
        [(NoOpRecord(), 0)] * (MAX_RECORDS_PER_BATCH + 1),
        session_changes=[BrokerUnregistered(1)],
    )
    monkeypatch.setattr(Api, "handler", lambda api: lambda *arguments: large)
    assert _heartbeat(controller) is ErrorCode.POLICY_VIOLATION
    monkeypatch.undo()
    assert _state(controller) == before


def test_session_changes_are_applied_after_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = controller_with_broker()
    sessions = controller.state.sessions
    seen: list[int] = []
    apply = sessions.apply

    def spy(changes: Any) -> None:
        seen.append(controller.state.metadata.last_applied_offset)
        apply(changes)

    monkeypatch.setattr(sessions, "apply", spy)
    end_offset = controller.node.core.log_end_offset
    epoch = controller.state.metadata.brokers[1].epoch
    controller.ask("stop", BrokerHeartbeatRequest(1, epoch, want_shut_down=True), 1)
    assert seen == [controller.state.metadata.last_applied_offset]
    assert seen[0] >= end_offset
    assert not sessions.has_valid_session(1, epoch, controller.now_ms)
