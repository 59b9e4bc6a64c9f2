"""Metadata, ListOffsets and Fetch for ordinary consumers of ``__cluster_metadata``."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.controller.cluster import controller_registration
from kraft_wire.controller.reading import consumer_list_offsets as list_offsets
from kraft_wire.controller.reading import consumer_metadata
from kraft_wire.controller.reading.consumer_fetch import (
    MOST_WAIT_MS,
    ConsumerAnswer,
    ConsumerDecision,
    ConsumerRead,
    ConsumerWait,
    LogView,
    decide,
    is_consumer_fetch,
)
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages import controller_registration_request as registration
from kraft_wire.protocol.messages import fetch_request as fetch
from kraft_wire.protocol.messages import list_offsets_request as offsets
from kraft_wire.protocol.messages.controller_registration_response import ControllerRegistrationResponse
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.list_offsets_response import ListOffsetsResponse
from kraft_wire.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraft_wire.protocol.messages.metadata_response import MetadataResponse
from kraft_wire.protocol.uuid import Uuid
from tests.controller.controller_harness import CLUSTER_ID, NODE_ID, Harness, failure, uuid

TOPIC = "__cluster_metadata"
LEADER = LogView(node_id=1, leader_id=1, epoch=5, log_start_offset=10, high_watermark=100)
FOLLOWER = LogView(node_id=2, leader_id=1, epoch=5, log_start_offset=10, high_watermark=100)
NEW_LEADER = LogView(node_id=1, leader_id=1, epoch=6, log_start_offset=10, high_watermark=None)


def with_controllers(*controller_ids: int) -> Harness:
    harness = Harness()
    for controller_id in controller_ids:
        request = registration.ControllerRegistrationRequest(
            controller_id=controller_id,
            incarnation_id=uuid(controller_id),
            listeners=[registration.Listener("CONTROLLER", f"c{controller_id}", 9093, 0)],
        )
        harness.run(controller_registration, request, 0, ControllerRegistrationResponse)
    return harness


def describe(
    harness: Harness, version: int, *names: str | None, ids: tuple[Uuid, ...] = ()
) -> MetadataResponse:
    topics = [MetadataRequestTopic(name=name) for name in names]
    topics += [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids]
    request = MetadataRequest(topics=topics or None)
    return harness.run(consumer_metadata, request, version, MetadataResponse)


# Metadata


@pytest.mark.parametrize("version", range(1, 14))
def test_all_topics_means_the_metadata_log(version: int) -> None:
    response = describe(with_controllers(NODE_ID, NODE_ID + 1), version)
    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [
        (NODE_ID, "c3000", 9093),
        (NODE_ID + 1, "c3001", 9093),
    ]
    assert response.controller_id == NODE_ID
    (topic,) = response.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, TOPIC, True)
    assert topic.topic_id == (Uuid.ONE if version >= 10 else Uuid.ZERO)
    (partition,) = topic.partitions
    assert (partition.error_code, partition.partition_index, partition.leader_id) == (0, 0, NODE_ID)
    assert partition.leader_epoch == (1 if version >= 7 else -1)
    assert (partition.replica_nodes, partition.isr_nodes) == ((NODE_ID,), (NODE_ID,))
    if version >= 2:
        assert response.cluster_id == CLUSTER_ID


def test_at_version_0_an_empty_list_means_all_topics() -> None:
    harness = with_controllers(NODE_ID)
    response = harness.run(consumer_metadata, MetadataRequest(topics=[]), 0, MetadataResponse)
    assert [topic.name for topic in response.topics] == [TOPIC]
    response = harness.run(consumer_metadata, MetadataRequest(topics=[]), 1, MetadataResponse)
    assert response.topics == []


def test_topics_of_the_brokers_are_unknown_here() -> None:
    harness = with_controllers(NODE_ID)
    harness.add_topic("orders", [0])
    response = describe(harness, 9, "orders", TOPIC, "no such/name")
    assert [(t.name, t.error_code) for t in response.topics] == [
        ("orders", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, 0),
        ("no such/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]


def test_topics_by_id() -> None:
    response = describe(with_controllers(NODE_ID), 12, ids=(Uuid.ONE, uuid(77)))
    assert [(t.name, t.error_code) for t in response.topics] == [
        (TOPIC, 0),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize("version", [10, 11])
def test_null_names_are_refused_where_the_response_has_none(version: int) -> None:
    with pytest.raises(ApiError) as refused:
        describe(with_controllers(NODE_ID), version, ids=(Uuid.ONE,))
    assert refused.value.code == ErrorCode.INVALID_REQUEST


def test_a_leader_that_can_not_be_reached_is_not_available() -> None:
    harness = with_controllers(NODE_ID + 1)
    harness.state.voter_ids = (NODE_ID, NODE_ID + 1)
    (partition,) = describe(harness, 9).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert partition.replica_nodes == (NODE_ID, NODE_ID + 1)
    assert (partition.isr_nodes, partition.offline_replicas) == ((NODE_ID + 1,), (NODE_ID,))


def test_an_observer_names_itself_alone() -> None:
    harness = with_controllers(NODE_ID + 1, NODE_ID + 2)
    harness.state.voter_ids = (NODE_ID + 1, NODE_ID + 2)
    harness.state.leader_id = NODE_ID + 1
    harness.state.read_here = {"CONTROLLER": ("observer", 9095)}
    response = describe(harness, 9)
    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [(NODE_ID, "observer", 9095)]
    assert response.controller_id == -1
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (0, NODE_ID)
    assert partition.leader_epoch == harness.state.epoch
    assert (partition.replica_nodes, partition.isr_nodes) == ((NODE_ID,), (NODE_ID,))


def test_a_voter_that_the_leader_does_not_hear_from_is_not_in_sync() -> None:
    harness = with_controllers(NODE_ID, NODE_ID + 1, NODE_ID + 2)
    harness.state.voter_ids = (NODE_ID, NODE_ID + 1, NODE_ID + 2)
    harness.state.silent_voter_ids = (NODE_ID + 2,)
    (partition,) = describe(harness, 9).topics[0].partitions
    assert partition.replica_nodes == (NODE_ID, NODE_ID + 1, NODE_ID + 2)
    assert (partition.isr_nodes, partition.offline_replicas) == ((NODE_ID, NODE_ID + 1), ())


def test_a_failure_is_told_for_each_topic() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a"), MetadataRequestTopic(name=None)])
    old = failure(MetadataResponse, request, 9, ErrorCode.INVALID_REQUEST, "")
    assert [(t.name, t.error_code) for t in MetadataResponse.decode(old.encode(9), 9).topics] == [("a", 42)]
    new = failure(MetadataResponse, request, 13, ErrorCode.INVALID_REQUEST, "")
    decoded = MetadataResponse.decode(new.encode(13), 13)
    assert decoded.error_code == 42
    assert [(t.name, t.error_code) for t in decoded.topics] == [("a", 42), (None, 42)]


# ListOffsets


def look_up(
    timestamp: int,
    view: LogView = LEADER,
    version: int = 7,
    *,
    topic: str = TOPIC,
    index: int = 0,
    epoch: int = -1,
    found: dict[int, list_offsets.FoundOffset | None] | None = None,
) -> tuple[int, int, int]:
    """Return (error code, offset, timestamp)."""
    partition = offsets.ListOffsetsPartition(
        partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
    )
    request = offsets.ListOffsetsRequest(topics=[offsets.ListOffsetsTopic(topic, [partition])])
    request = offsets.ListOffsetsRequest.decode(request.encode(version), version)
    response = list_offsets.respond(request, version, view, found)
    answer = ListOffsetsResponse.decode(response.encode(version), version).topics[0].partitions[0]
    assert answer.partition_index == index
    return answer.error_code, answer.offset, answer.timestamp


@pytest.mark.parametrize("version", range(1, 12))
def test_the_log_ends_at_the_high_watermark_and_begins_where_it_begins(version: int) -> None:
    assert look_up(list_offsets.LATEST, version=version) == (0, 100, -1)
    assert look_up(list_offsets.EARLIEST, version=version) == (0, 10, -1)


def test_local_and_tiered_offsets() -> None:
    assert look_up(list_offsets.EARLIEST_LOCAL, version=8) == (0, 10, -1)
    assert look_up(list_offsets.LATEST_TIERED, version=9) == (0, -1, -1)
    assert look_up(list_offsets.EARLIEST_PENDING_UPLOAD, version=11) == (0, 10, -1)


def test_a_timestamp_is_answered_with_what_was_found() -> None:
    hit = list_offsets.FoundOffset(offset=55, timestamp_ms=1234, leader_epoch=4)
    assert look_up(1200, found={1200: hit}) == (0, 55, 1234)
    assert look_up(list_offsets.MAX_TIMESTAMP, found={-3: hit}) == (0, 55, 1234)
    assert look_up(1200, found={1200: None}) == (0, -1, -1)


def test_what_is_not_committed_is_not_found() -> None:
    hit = list_offsets.FoundOffset(offset=100, timestamp_ms=1234)
    assert look_up(1200, found={1200: hit}) == (0, -1, -1)


def test_a_timestamp_that_nobody_looked_up_is_refused() -> None:
    assert look_up(1200)[0] == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_which_timestamps_are_to_be_looked_up() -> None:
    asked = [offsets.ListOffsetsPartition(0, timestamp=timestamp) for timestamp in (-1, 500, -3, 0, 500, -2)]
    request = offsets.ListOffsetsRequest(
        topics=[offsets.ListOffsetsTopic(TOPIC, asked), offsets.ListOffsetsTopic("t", asked)]
    )
    assert list_offsets.timestamps_wanted(request, LEADER) == [-3, 0, 500]


@pytest.mark.parametrize(
    ("view", "version", "epoch", "code"),
    [
        (FOLLOWER, 7, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (LEADER, 7, 4, ErrorCode.FENCED_LEADER_EPOCH),
        (LEADER, 7, 6, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (NEW_LEADER, 5, -1, ErrorCode.OFFSET_NOT_AVAILABLE),
        (NEW_LEADER, 4, -1, ErrorCode.LEADER_NOT_AVAILABLE),
    ],
)
def test_who_can_not_say(view: LogView, version: int, epoch: int, code: ErrorCode) -> None:
    assert look_up(-1, view, version, epoch=epoch) == (code, -1, -1)


def test_offsets_of_anything_else_are_unknown() -> None:
    assert look_up(-1, topic="t")[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert look_up(-1, index=1)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# Fetch


def fetch_request(
    offset: int,
    version: int = 12,
    *,
    topic: str = TOPIC,
    topic_id: Uuid = Uuid.ONE,
    epoch: int = -1,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    session: tuple[int, int] = (0, -1),
) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        partition=0, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=4096
    )
    request = fetch.FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=[fetch.FetchTopic(topic=topic, topic_id=topic_id, partitions=[partition])],
    )
    return fetch.FetchRequest.decode(request.encode(version), version)


def sent(decision: ConsumerDecision, version: int = 12) -> FetchResponse:
    """Return the response as the consumer reads it."""
    assert not isinstance(decision, ConsumerWait)
    return FetchResponse.decode(decision.response.encode(version), version)


def fault(decision: ConsumerDecision, version: int = 12) -> int:
    assert isinstance(decision, ConsumerAnswer)
    return sent(decision, version).responses[0].partitions[0].error_code


@pytest.mark.parametrize("version", range(4, 19))
def test_a_consumer_is_served_what_is_committed(version: int) -> None:
    decision = decide(fetch_request(10, version), version, LEADER)
    assert isinstance(decision, ConsumerRead)
    assert (decision.offset, decision.end_offset, decision.max_bytes) == (10, 100, 4096)
    decision.records_of.records = b"the bytes of some batches"
    response = sent(decision, version)
    assert (response.error_code, response.session_id) == (0, 0)
    (topic,) = response.responses
    assert (topic.topic, topic.topic_id) == ((TOPIC, Uuid.ZERO) if version < 13 else ("", Uuid.ONE))
    (partition,) = topic.partitions
    assert (partition.error_code, partition.high_watermark, partition.last_stable_offset) == (0, 100, 100)
    assert partition.records == b"the bytes of some batches"
    assert partition.aborted_transactions is None


def test_the_request_bounds_the_bytes_too() -> None:
    decision = decide(fetch_request(10, max_bytes=100), 12, LEADER)
    assert isinstance(decision, ConsumerRead)
    assert decision.max_bytes == 100


def test_at_the_high_watermark_a_consumer_waits() -> None:
    decision = decide(fetch_request(100), 12, LEADER)
    assert isinstance(decision, ConsumerWait)
    assert (decision.offset, decision.max_wait_ms) == (100, 500)
    partition = sent(decide(decision.request, 12, LEADER)).responses[0].partitions[0]
    assert (partition.error_code, partition.records, partition.high_watermark) == (0, b"", 100)


@pytest.mark.parametrize("version", range(4, 19))
def test_what_is_kept_while_a_consumer_waits_is_the_same_question(version: int) -> None:
    request = fetch_request(100, version, epoch=LEADER.epoch if version >= 9 else -1, max_bytes=3_000)
    decision = decide(request, version, LEADER)
    assert isinstance(decision, ConsumerWait)
    later = msgspec.structs.replace(LEADER, high_watermark=110)
    assert decide(decision.request, version, later) == decide(request, version, later)
    new_epoch = msgspec.structs.replace(later, epoch=LEADER.epoch + 1)
    assert decide(decision.request, version, new_epoch) == decide(request, version, new_epoch)


def test_topics_without_partitions_do_not_matter_to_a_consumer_that_waits() -> None:
    request = fetch_request(100)
    nothing = fetch.FetchTopic(topic="other", partitions=[])
    for topics in ([nothing, *request.topics], [*request.topics, nothing, nothing]):
        decision = decide(msgspec.structs.replace(request, topics=topics), 12, LEADER)
        assert isinstance(decision, ConsumerWait)
        assert [topic.topic for topic in decision.request.topics] == [TOPIC]


def test_little_is_kept_while_a_consumer_waits() -> None:
    request = fetch_request(100)
    request.rack_id = "r" * 30_000
    request.forgotten_topics_data = [fetch.ForgottenTopic(topic="x", partitions=tuple(range(10_000)))]
    unknown = ((99, bytes(10_000)),)
    request.unknown_tagged_fields = unknown
    request.topics[0].unknown_tagged_fields = unknown
    request.topics[0].partitions[0].unknown_tagged_fields = unknown
    decision = decide(request, 12, LEADER)
    assert isinstance(decision, ConsumerWait)
    assert len(decision.request.encode(12)) < 200


def test_a_consumer_that_names_the_partition_twice_does_not_wait() -> None:
    request = fetch_request(100)
    request.topics *= 2
    assert isinstance(decide(request, 12, LEADER), ConsumerAnswer)


def test_a_consumer_waits_for_a_limited_time() -> None:
    decision = decide(fetch_request(100, max_wait_ms=2**31 - 1), 12, LEADER)
    assert isinstance(decision, ConsumerWait)
    assert decision.max_wait_ms == MOST_WAIT_MS


@pytest.mark.parametrize(("max_wait_ms", "min_bytes"), [(0, 1), (500, 0)])
def test_a_consumer_that_will_not_wait_is_answered_at_once(max_wait_ms: int, min_bytes: int) -> None:
    request = fetch_request(100, max_wait_ms=max_wait_ms, min_bytes=min_bytes)
    assert fault(decide(request, 12, LEADER)) == 0


@pytest.mark.parametrize("offset", [-1, 9, 101])
def test_offsets_outside_the_committed_log(offset: int) -> None:
    assert fault(decide(fetch_request(offset), 12, LEADER)) == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_follower_names_the_leader() -> None:
    decision = decide(fetch_request(10), 12, FOLLOWER)
    assert fault(decision) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader = sent(decision).responses[0].partitions[0].current_leader
    assert (leader.leader_id, leader.leader_epoch) == (1, 5)


@pytest.mark.parametrize("version", range(4, 12))
@pytest.mark.parametrize(("view", "epoch"), [(FOLLOWER, -1), (LEADER, 4)])
def test_an_old_response_has_no_place_for_the_leader(view: LogView, epoch: int, version: int) -> None:
    decision = decide(fetch_request(10, epoch=epoch), version, view)
    assert sent(decision, version).responses[0].partitions[0].error_code == fault(decision)


def test_epochs_are_checked() -> None:
    assert fault(decide(fetch_request(10, epoch=4), 12, LEADER)) == ErrorCode.FENCED_LEADER_EPOCH
    assert fault(decide(fetch_request(10, epoch=6), 12, LEADER)) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert isinstance(decide(fetch_request(10, epoch=5), 12, LEADER), ConsumerRead)


def test_a_new_leader_does_not_know_yet_what_is_committed() -> None:
    assert fault(decide(fetch_request(10), 12, NEW_LEADER)) == ErrorCode.OFFSET_NOT_AVAILABLE


def test_other_topics_are_unknown_by_name_and_by_id() -> None:
    by_name = decide(fetch_request(10, topic="orders"), 12, LEADER)
    assert fault(by_name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    by_id = decide(fetch_request(10, 13, topic_id=uuid(77)), 13, LEADER)
    assert fault(by_id, 13) == ErrorCode.UNKNOWN_TOPIC_ID


def test_an_error_elsewhere_is_not_kept_waiting() -> None:
    request = fetch_request(100)
    partition = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    request.topics.append(fetch.FetchTopic(topic="orders", partitions=[partition]))
    decision = decide(request, 12, LEADER)
    assert isinstance(decision, ConsumerAnswer)
    errors = [topic.partitions[0].error_code for topic in sent(decision).responses]
    assert errors == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_fetch_sessions_are_declined() -> None:
    assert isinstance(decide(fetch_request(10, session=(0, 0)), 12, LEADER), ConsumerRead)
    decision = decide(fetch_request(10, session=(99, 3)), 12, LEADER)
    assert isinstance(decision, ConsumerAnswer)
    assert sent(decision).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_replicas_are_no_consumers() -> None:
    assert is_consumer_fetch(fetch_request(10, 12))
    assert is_consumer_fetch(fetch_request(10, 18))
    assert not is_consumer_fetch(fetch.FetchRequest(replica_id=4))
    assert not is_consumer_fetch(fetch.FetchRequest(replica_state=fetch.ReplicaState(replica_id=0)))


def test_whoever_says_what_it_fetched_last_is_answered_by_raft() -> None:
    request = fetch_request(10, 18)
    request.topics[0].partitions[0].last_fetched_epoch = 0
    assert not is_consumer_fetch(request)
