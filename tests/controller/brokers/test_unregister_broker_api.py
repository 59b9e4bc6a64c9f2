"""UnregisterBroker: the records, and the session."""

from __future__ import annotations

import pytest

from kraft_wire.controller.brokers import unregister_broker
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kraft_wire.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from tests.controller.controller_harness import Harness, failure


def test_a_broker_that_is_not_registered() -> None:
    harness = Harness()
    request = UnregisterBrokerRequest(broker_id=7)
    with pytest.raises(ApiError) as refused:
        harness.decide(unregister_broker, request, 0)
    assert refused.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED
    response = failure(UnregisterBrokerResponse, request, 0, refused.value.code, refused.value.message)
    assert (response.error_code, response.error_message) == (102, "broker 7 is not registered")


def test_its_partitions_move_first_and_its_replicas_stay() -> None:
    harness = Harness()
    harness.add_brokers(0, 1)
    topic = harness.add_topic("t", [0, 1])
    result = harness.decide(unregister_broker, UnregisterBrokerRequest(broker_id=0), 0)
    assert [record.NAME for record, _ in result.records] == [
        "PartitionChangeRecord",
        "UnregisterBrokerRecord",
    ]
    assert not result.atomic
    harness.apply(result)
    assert list(harness.metadata.brokers) == [1]
    partition = harness.metadata.partitions.get(topic, 0)
    assert partition is not None
    assert (partition.replicas, partition.isr, partition.leader) == ((0, 1), (1,), 1)


def test_its_session_is_forgotten_and_it_may_come_back() -> None:
    harness = Harness()
    harness.add_brokers(0)
    response = harness.run(
        unregister_broker, UnregisterBrokerRequest(broker_id=0), 0, UnregisterBrokerResponse
    )
    assert response.error_code == 0
    assert harness.state.sessions.metadata_offset(0) == -1
    harness.add_brokers(0)
    assert not harness.metadata.brokers[0].fenced
