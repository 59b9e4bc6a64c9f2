"""AllocateProducerIds: the scenarios of ProducerIdControlManagerTest."""

from __future__ import annotations

import pytest

from kraft_wire.controller.cluster import allocate_producer_ids
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraft_wire.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from kraft_wire.protocol.messages.producer_ids_record import ProducerIdsRecord
from tests.controller.controller_harness import Harness, failure


def request_of(harness: Harness, broker_id: int) -> AllocateProducerIdsRequest:
    return AllocateProducerIdsRequest(
        broker_id=broker_id, broker_epoch=harness.metadata.brokers[broker_id].epoch
    )


def test_blocks_follow_each_other_whoever_asks() -> None:
    harness = Harness()
    harness.add_brokers(0, 1)
    firsts = []
    for broker_id in (0, 1, 1, 0):
        request = request_of(harness, broker_id)
        response = harness.run(allocate_producer_ids, request, 0, AllocateProducerIdsResponse)
        assert response.producer_id_len == 1000
        firsts.append(response.producer_id_start)
    assert firsts == [0, 1000, 2000, 3000]
    assert harness.metadata.producer_ids.next_producer_id == 4000


def test_the_record_names_the_broker_and_the_id_behind_the_block() -> None:
    harness = Harness()
    harness.add_brokers(3)
    request = request_of(harness, 3)
    ((record, version),) = harness.decide(allocate_producer_ids, request, 0).records
    assert version == 0
    assert record == ProducerIdsRecord(broker_id=3, broker_epoch=request.broker_epoch, next_producer_id=1000)


@pytest.mark.parametrize(("broker_id", "epoch_change"), [(9, 0), (0, 1), (0, -1)])
def test_only_the_registered_incarnation_gets_ids(broker_id: int, epoch_change: int) -> None:
    harness = Harness()
    harness.add_brokers(0)
    epoch = harness.metadata.brokers[0].epoch + epoch_change
    request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
    with pytest.raises(ApiError) as refused:
        harness.decide(allocate_producer_ids, request, 0)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
    assert failure(AllocateProducerIdsResponse, request, 0, refused.value.code, "").error_code == 77


def test_the_last_whole_block_is_given_out_and_no_more() -> None:
    harness = Harness()
    harness.add_brokers(0)
    largest = 2**63 - 1
    harness.replay([(ProducerIdsRecord(next_producer_id=largest - 1000), 0)])
    response = harness.run(allocate_producer_ids, request_of(harness, 0), 0, AllocateProducerIdsResponse)
    assert response.producer_id_start == largest - 1000
    with pytest.raises(ApiError) as refused:
        harness.decide(allocate_producer_ids, request_of(harness, 0), 0)
    assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
