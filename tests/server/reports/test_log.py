"""Log events of records and of refused requests."""

from __future__ import annotations

import logging

import pytest

from kraft_wire.controller.decision.records import Records
from kraft_wire.controller.node.effects import RequestRefused
from kraft_wire.controller.node.events import Caller
from kraft_wire.metadata.topic_removals import TopicRemovals
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.broker_registration_request import BrokerRegistrationRequest
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest
from kraft_wire.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.server.reports.log import MOST_TOPIC_LINES, report_records, report_refusal

BROKER_REGISTRATION = BrokerRegistrationRequest.API_KEY
BROKER_HEARTBEAT = BrokerHeartbeatRequest.API_KEY
PEER = Caller(listener="CONTROLLER", address="10.0.0.7:40000", client_id="7")


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
        (
            BrokerRegistrationChangeRecord(7, 5, in_controlled_shutdown=1),
            ("INFO", "broker controlled shutdown started"),
        ),
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
    report_records([(record, 0)])
    assert _told(caplog) == [told]
    assert caplog.records[0].__dict__["fields"]["broker_id"] == 7


def test_a_registration_is_told_with_its_endpoints(caplog: pytest.LogCaptureFixture) -> None:
    record = RegisterBrokerRecord(broker_id=7, end_points=[BrokerEndpoint("PLAINTEXT", "b7", 9092, 0)])
    report_records([(record, 3)])
    assert _told(caplog) == [("INFO", "broker registered")]
    assert caplog.records[0].__dict__["fields"]["endpoints"] == ["PLAINTEXT://b7:9092"]


def test_what_happens_all_the_time_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    report_records([(NoOpRecord(), 0), (PartitionRecord(), 2)])
    assert _told(caplog) == []


@pytest.mark.parametrize(
    ("fenced", "request_", "reason"),
    [
        (1, None, "session timed out"),
        (1, BrokerHeartbeatRequest(want_fence=True), "requested by the broker"),
        (1, BrokerHeartbeatRequest(want_fence=True, want_shut_down=True), "broker shuts down"),
        (1, BrokerHeartbeatRequest(want_shut_down=True), "broker shuts down"),
        (1, BrokerHeartbeatRequest(), "broker shuts down"),
        (-1, BrokerHeartbeatRequest(), "broker caught up"),
        (1, BrokerRegistrationRequest(), "BrokerRegistration"),
    ],
)
def test_a_fencing_has_a_reason(
    fenced: int, request_: Message | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    report_records([(BrokerRegistrationChangeRecord(7, 5, fenced=fenced), 0)], request_)
    assert caplog.records[0].__dict__["fields"]["reason"] == reason


def test_topics_are_created_and_deleted_by_name(caplog: pytest.LogCaptureFixture) -> None:
    report_records([(TopicRecord(name="orders", topic_id=Uuid.ONE), 0)])
    response = DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name="other", topic_id=Uuid.ZERO),
            DeletableTopicResult(name="orders", topic_id=Uuid.ONE),
        ]
    )
    report_records([(RemoveTopicRecord(topic_id=Uuid.ONE), 0)], DeleteTopicsRequest(), response)
    assert _told(caplog) == [("INFO", "topic created"), ("INFO", "topic deleted")]
    for record in caplog.records:
        assert record.__dict__["fields"] == {"topic": "orders", "topic_id": str(Uuid.ONE)}


def test_features_are_one_entry(caplog: pytest.LogCaptureFixture) -> None:
    levels = {"metadata.version": 33, "group.version": 1}
    report_records([(FeatureLevelRecord(name, level), 0) for name, level in levels.items()])
    assert _told(caplog) == [("INFO", "features finalized")]
    fields = caplog.records[0].__dict__["fields"]
    assert fields == {"features": ["metadata.version=33", "group.version=1"]}


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
    report_refusal(RequestRefused(api_key, PEER, code, "because"))
    (record,) = caplog.records
    assert record.levelname == level
    fields = record.__dict__["fields"]
    assert (fields["error"], fields["reason"], fields["peer"]) == (code.name, "because", "10.0.0.7:40000")


@pytest.mark.parametrize(
    ("count", "lines"), [(MOST_TOPIC_LINES, MOST_TOPIC_LINES), (MOST_TOPIC_LINES + 1, 1)]
)
def test_topics_that_are_deleted_together_are_told(
    count: int, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    ids = tuple(Uuid(number.to_bytes(16)) for number in range(count))
    results = [DeletableTopicResult(name="foo", topic_id=topic_id) for topic_id in ids]
    report_records(Records([TopicRemovals(ids)]), None, DeleteTopicsResponse(responses=results))
    assert len(caplog.records) == lines
    fields = caplog.records[0].__dict__["fields"]
    assert fields == ({"count": count} if lines == 1 else {"topic": "foo", "topic_id": str(ids[0])})


def test_many_topics_of_one_request_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    names = [f"t{number}" for number in range(MOST_TOPIC_LINES + 1)]
    report_records([(TopicRecord(name=name), 0) for name in names])
    report_records([(RemoveTopicRecord(), 0) for _ in names])
    assert _told(caplog) == [("INFO", "topics created"), ("INFO", "topics deleted")]
    created, deleted = [record.__dict__["fields"] for record in caplog.records]
    assert created == {"count": len(names), "first": "t0"}
    assert deleted == {"count": len(names)}
    caplog.clear()
    report_records([(TopicRecord(name=name), 0) for name in names[1:]])
    assert len(caplog.records) == MOST_TOPIC_LINES
