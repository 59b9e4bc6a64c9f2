"""A leader activates when everything that it reads is applied, and never reads its own records."""

from __future__ import annotations

import pytest

from kraft_wire.controller.node.executor import execute_all
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from tests.controller.lone_controller import LoneController
from tests.controller.lone_ports import LoneLog
from tests.controller.node.node_requests import controller_with_broker, create_topic, register_broker

Read = tuple[LoneLog, int, int]


def with_an_uncommitted_topic() -> LoneController:
    controller = controller_with_broker()
    known = controller.disk.committed
    controller.ask("old", create_topic("old"), 7)
    controller.flush()
    controller.disk.committed = known
    return controller


def start_reading(controller: LoneController) -> None:
    """Begin a read, as a follower does that is elected before it is complete."""
    node, end = controller.node, controller.node.core.epoch_start_offset
    assert end is not None
    node._outbox.begin_step(controller._now())
    node._follower.read_up_to(end)
    execute_all(node._outbox.effects, controller._ports)


def test_a_leader_does_not_read_its_own_records(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Read] = []
    serve = LoneLog.read_committed
    before = with_an_uncommitted_topic()
    monkeypatch.setattr(LoneLog, "read_committed", lambda *read: reads.append(read))
    controller = before.crash_and_restart()
    start_reading(controller)
    controller.flush()
    is_active_too_soon = controller.node.is_active
    serve(*reads.pop())
    controller.ask("register", register_broker(2), 4)
    controller.flush()
    assert controller.node.is_active
    assert not is_active_too_soon
    assert not reads
    assert controller.answer("register", BrokerRegistrationResponse).error_code == ErrorCode.NONE
