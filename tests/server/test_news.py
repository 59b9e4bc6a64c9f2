"""What the log says of decisions and refusals."""

from __future__ import annotations

import logging

import pytest

from kraft_wire.controller.requests import Peer, Refused
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.server.news import BROKER_REGISTRATION, tell_decisions, tell_refusal

BROKER_HEARTBEAT = 63
PEER = Peer(listener="CONTROLLER", address="10.0.0.7:40000", client_id="7")


@pytest.fixture(autouse=True)
def _everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


def _told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (UnregisterBrokerRecord(broker_id=7, broker_epoch=5), ("INFO", "broker unregistered")),
        (BrokerRegistrationChangeRecord(7, 5, fenced=1), ("INFO", "broker fenced")),
        (BrokerRegistrationChangeRecord(7, 5, fenced=-1), ("INFO", "broker unfenced")),
        (BrokerRegistrationChangeRecord(7, 5, in_controlled_shutdown=1), ("INFO", "broker shuts down")),
        (
            BrokerRegistrationChangeRecord(7, 5, log_dirs=(Uuid.ONE,)),
            ("WARNING", "broker lost log directories"),
        ),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_a_brokers_change_is_told(
    record: Message, told: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    tell_decisions([(record, 0)])
    assert _told(caplog) == [told]
    assert caplog.records[0].__dict__["fields"]["broker_id"] == 7


def test_a_registration_is_told_with_its_endpoints(caplog: pytest.LogCaptureFixture) -> None:
    record = RegisterBrokerRecord(broker_id=7, end_points=[BrokerEndpoint("PLAINTEXT", "b7", 9092, 0)])
    tell_decisions([(record, 3)])
    assert _told(caplog) == [("INFO", "broker registered")]
    assert caplog.records[0].__dict__["fields"]["endpoints"] == ["PLAINTEXT://b7:9092"]


def test_what_happens_all_the_time_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    tell_decisions([(NoOpRecord(), 0), (PartitionRecord(), 2)])
    assert _told(caplog) == []


@pytest.mark.parametrize(
    ("api_key", "code", "level"),
    [
        (BROKER_REGISTRATION, ErrorCode.DUPLICATE_BROKER_REGISTRATION, "WARNING"),
        (BROKER_REGISTRATION, ErrorCode.NOT_CONTROLLER, "DEBUG"),
        (BROKER_HEARTBEAT, ErrorCode.BROKER_ID_NOT_REGISTERED, "INFO"),
        (BROKER_HEARTBEAT, ErrorCode.STALE_BROKER_EPOCH, "DEBUG"),
    ],
)
def test_a_refusal_is_told_as_loudly_as_it_matters(
    api_key: int, code: ErrorCode, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    tell_refusal(Refused(api_key, PEER, code, "because"))
    (record,) = caplog.records
    assert record.levelname == level
    fields = record.__dict__["fields"]
    assert (fields["error"], fields["reason"], fields["peer"]) == (code.name, "because", "10.0.0.7:40000")
