"""The node: becoming active, speculative writes, responses that wait, losing and replaying."""

from __future__ import annotations

from typing import cast

import pytest
from controller_harness import CLUSTER_ID, directory, uuid
from lone_controller import LISTENER, NODE_ID, LoneController, active_controller

from kraft_wire.controller import envelope
from kraft_wire.controller.context import Principal, Result
from kraft_wire.controller.requests import (
    Activated,
    ApiRequest,
    Decided,
    FirstWrite,
    HandlerFailed,
    Peer,
    ReadCommitted,
    Refused,
    StateLoaded,
)
from kraft_wire.controller.settings import Settings
from kraft_wire.log.batch import encode_batch, split_batches
from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.canonical import fingerprint
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import EncodeError, ErrorCode
from kraft_wire.protocol.headers import encode_request
from kraft_wire.protocol.messages import broker_registration_request as registration
from kraft_wire.protocol.messages.abort_transaction_record import AbortTransactionRecord
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.begin_transaction_record import BeginTransactionRecord
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_cluster_response import DescribeClusterResponse
from kraft_wire.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.protocol.messages.describe_configs_response import DescribeConfigsResponse
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.protocol.messages.list_offsets_response import ListOffsetsResponse
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.vote_request import PartitionData, TopicData, VoteRequest
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.raft.effects import HighWatermarkAdvanced, InstallSnapshot, LostLeadership, ReadyToStop
from kraft_wire.raft.events import (
    Now,
    RequestAbandoned,
    RpcRequest,
    ShutDown,
    SnapshotVerified,
    SnapshotWritten,
    Tick,
)


def _register(broker_id: int = 1) -> registration.BrokerRegistrationRequest:
    ranges = {
        "metadata.version": (7, 33),
        "kraft.version": (0, 1),
        "transaction.version": (0, 2),
        "group.version": (0, 1),
        "eligible.leader.replicas.version": (0, 1),
        "share.version": (0, 2),
        "streams.version": (0, 1),
    }
    return registration.BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=directory(broker_id, 5),
        listeners=[registration.Listener("PLAINTEXT", "localhost", 9092, 0)],
        features=[registration.Feature(name, low, high) for name, (low, high) in ranges.items()],
        log_dirs=(directory(broker_id),),
    )


def _create_topic(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])


def _with_broker(settings: Settings | None = None) -> LoneController:
    """An active controller with broker 1 registered and unfenced."""
    controller = active_controller(settings)
    controller.ask("register", _register(), 4)
    controller.flush()
    epoch = controller.answer("register", BrokerRegistrationResponse).broker_epoch
    beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=epoch)
    controller.ask("unfence", beat, 1)
    controller.flush()
    assert not controller.answer("unfence", BrokerHeartbeatResponse).is_fenced
    return controller


def _consume(offset: int, max_wait_ms: int = 500) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=CLUSTER_METADATA, partitions=[partition])],
    )


def _lose_leadership(controller: LoneController) -> None:
    """Somebody who isn't a voter wants to be leader of a higher epoch."""
    partition = PartitionData(
        replica_epoch=controller.node.core.epoch + 1,
        replica_id=99,
        voter_directory_id=uuid(1),
        last_offset_epoch=0,
        last_offset=0,
    )
    topics = [TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])]
    vote = VoteRequest(cluster_id=CLUSTER_ID, voter_id=NODE_ID, topics=topics)
    controller.step(RpcRequest("vote", vote, 2, LISTENER))


def test_a_node_is_active_only_when_its_first_record_is_committed() -> None:
    controller = LoneController()
    controller.ask("early", _create_topic("a"), 7)
    assert controller.answer("early", CreateTopicsResponse).topics[0].error_code == ErrorCode.NOT_CONTROLLER
    controller.flush()
    assert controller.node.is_active
    assert any(isinstance(effect, Activated) for effect in controller.effects)


def test_how_soon_a_leader_has_written_is_told_once() -> None:
    controller = LoneController()
    controller.flush()
    assert not [effect for effect in controller.effects if isinstance(effect, FirstWrite)]
    controller.tick(7)
    for name in ("a", "b"):
        controller.ask(name, _create_topic(name), 7)
        controller.flush()
    told = [effect for effect in controller.effects if isinstance(effect, FirstWrite)]
    assert told == [FirstWrite(controller.node.core.epoch, 7)]


def test_the_first_leader_writes_the_bootstrap_and_registers_itself() -> None:
    controller = active_controller()
    names = [record.NAME for record in controller.disk.records()]
    assert names[0] == "BeginTransactionRecord"
    assert "EndTransactionRecord" in names
    assert names[-1] == "RegisterControllerRecord"
    assert controller.state.metadata.features.metadata_version == 33
    assert list(controller.state.metadata.controllers) == [NODE_ID]


def test_a_response_waits_until_its_records_are_flushed() -> None:
    controller = _with_broker()
    controller.ask("create", _create_topic("a"), 7)
    assert "create" not in controller.replies
    assert controller.state.metadata.topics.by_name("a") is not None
    controller.flush()
    assert controller.answer("create", CreateTopicsResponse).topics[0].error_code == ErrorCode.NONE


def test_a_decision_sees_earlier_ones_that_are_not_committed_and_waits_for_them() -> None:
    controller = _with_broker()
    controller.ask("first", _create_topic("a"), 7)
    controller.ask("second", _create_topic("a"), 7)
    assert "second" not in controller.replies
    controller.flush()
    second = controller.answer("second", CreateTopicsResponse).topics[0]
    assert second.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_responses_leave_in_the_order_of_their_decisions() -> None:
    controller = _with_broker()
    before = set(controller.replies)
    for number in range(5):
        controller.ask(number, _create_topic(f"t{number}"), 7)
    controller.flush()
    assert [token for token in controller.replies if token not in before] == [0, 1, 2, 3, 4]


def test_what_was_not_flushed_is_gone_after_a_crash_and_was_never_acknowledged() -> None:
    controller = _with_broker()
    controller.ask("kept", _create_topic("kept"), 7)
    controller.flush()
    controller.ask("lost", _create_topic("lost"), 7)
    restarted = controller.crash_and_restart()
    restarted.flush()
    restarted.flush()
    assert "lost" not in controller.replies
    assert restarted.state.metadata.topics.by_name("kept") is not None
    assert restarted.state.metadata.topics.by_name("lost") is None


def test_a_restart_replays_to_the_same_state_in_a_higher_epoch() -> None:
    controller = _with_broker()
    controller.ask("create", _create_topic("a"), 7)
    controller.flush()
    epoch_before = controller.node.core.epoch
    restarted = controller.crash_and_restart()
    restarted.flush()
    assert restarted.node.core.epoch > epoch_before
    assert restarted.node.is_active
    topic = restarted.state.metadata.topics.by_name("a")
    assert topic is not None
    broker = restarted.state.metadata.brokers[1]
    assert (broker.epoch, broker.fenced) == (controller.state.metadata.brokers[1].epoch, False)


def test_what_was_committed_before_a_restart_is_applied_before_anybody_leads() -> None:
    controller = _with_broker()
    controller.ask("create", _create_topic("a"), 7)
    controller.flush()
    end_offset = controller.disk.committed
    restarted = controller.crash_and_restart()
    assert restarted.state.metadata.topics.by_name("a") is not None
    restarted.flush()
    assert restarted.node.is_active
    reads = [effect for effect in restarted.effects if isinstance(effect, ReadCommitted)]
    assert [read.start_offset for read in reads] == [end_offset]


def test_what_was_not_known_to_be_committed_is_applied_when_it_is() -> None:
    controller = _with_broker()
    known = controller.disk.committed
    controller.ask("create", _create_topic("a"), 7)
    controller.flush()
    controller.disk.committed = known
    restarted = controller.crash_and_restart()
    assert restarted.state.metadata.topics.by_name("a") is None
    restarted.flush()
    assert restarted.state.metadata.topics.by_name("a") is not None


def test_a_snapshot_is_due_after_the_bytes_before_a_restart_and_those_behind_it() -> None:
    settings = Settings(node_id=NODE_ID, metadata_log_max_record_bytes_between_snapshots=5_000)
    controller = active_controller(settings)
    restarts = 0
    while not controller.snapshots_wanted() and restarts < 100:
        restarts += 1
        controller = controller.crash_and_restart()
        controller.flush()
    assert 5 < restarts < 100


def test_lost_leadership_undoes_what_is_not_committed_and_says_so() -> None:
    controller = _with_broker()
    committed = fingerprint(controller.state.metadata)
    controller.ask("create", _create_topic("a"), 7)
    _lose_leadership(controller)
    answer = controller.answer("create", CreateTopicsResponse).topics[0]
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    assert any(isinstance(effect, LostLeadership) for effect in controller.effects)
    assert fingerprint(controller.state.metadata) == committed


def test_a_standby_answers_what_it_may() -> None:
    """KAFKA-15048: reads on a controller that doesn't lead failed."""
    controller = _with_broker()
    _lose_leadership(controller)
    assert not controller.node.is_active
    controller.ask("versions", ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)
    assert controller.answer("versions", ApiVersionsResponse).error_code == ErrorCode.NONE
    controller.ask("cluster", DescribeClusterRequest(endpoint_type=2), 1)
    assert controller.answer("cluster", DescribeClusterResponse).error_code == ErrorCode.NONE


def test_a_read_waits_for_what_it_shows() -> None:
    """KAFKA-15048: what isn't committed was listed."""
    controller = _with_broker()
    value = AlterableConfig(name="ssl.keystore.location", config_operation=0, value="/new")
    change = AlterConfigsResource(resource_type=4, resource_name="", configs=[value])
    controller.ask("alter", IncrementalAlterConfigsRequest(resources=[change]), 1)
    read = DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=4, resource_name="1")])
    controller.ask("read", read, 4)
    assert not {"alter", "read"} & set(controller.replies)
    _lose_leadership(controller)
    (answer,) = controller.answer("read", DescribeConfigsResponse).results
    assert answer.error_code == ErrorCode.NOT_CONTROLLER


def test_a_lone_voter_that_lost_its_leadership_leads_again_and_keeps_the_log() -> None:
    controller = _with_broker()
    controller.ask("create", _create_topic("a"), 7)
    epoch = controller.node.core.epoch
    _lose_leadership(controller)
    controller.flush()
    assert controller.node.is_active
    assert controller.node.core.epoch > epoch + 1
    assert controller.state.metadata.topics.by_name("a") is not None


def test_a_forwarded_request_is_answered_inside_an_envelope() -> None:
    controller = _with_broker()
    inner = encode_request(CreateTopicsRequest.API_KEY, 7, 42, "a client", _create_topic("a"))
    principal = envelope.encode_principal(Principal())
    controller.ask(
        "envelope",
        EnvelopeRequest(request_data=inner, request_principal=principal, client_host_address=bytes(4)),
        0,
    )
    assert "envelope" not in controller.replies
    controller.flush()
    answer = controller.answer("envelope", EnvelopeResponse)
    assert answer.error_code == ErrorCode.NONE
    assert answer.response_data is not None
    assert answer.response_data[:4] == (42).to_bytes(4, "big")


def test_a_forwarded_request_to_a_node_that_is_not_active_makes_the_broker_look_elsewhere() -> None:
    controller = LoneController()
    inner = encode_request(CreateTopicsRequest.API_KEY, 7, 42, "a client", _create_topic("a"))
    principal = envelope.encode_principal(Principal())
    controller.ask(
        "envelope",
        EnvelopeRequest(request_data=inner, request_principal=principal, client_host_address=bytes(4)),
        0,
    )
    answer = controller.answer("envelope", EnvelopeResponse)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    assert answer.response_data is None


def test_api_versions_does_not_wait_for_unrelated_writes() -> None:
    controller = _with_broker()
    controller.ask("create", _create_topic("a"), 7)
    controller.ask("versions", ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)
    assert controller.answer("versions", ApiVersionsResponse).error_code == ErrorCode.NONE


def test_api_versions_does_not_show_features_that_are_not_committed() -> None:
    controller = LoneController()
    controller.flush()
    controller.ask("versions", ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)
    assert "versions" not in controller.replies
    controller.flush()
    features = controller.answer("versions", ApiVersionsResponse).finalized_features
    assert {feature.name for feature in features} >= {"metadata.version"}


def test_a_version_that_is_not_served_is_answered_with_the_error() -> None:
    controller = active_controller()
    controller.step(
        ApiRequest("future", ApiVersionsRequest.API_KEY, 99, ApiVersionsRequest(), Peer(LISTENER))
    )
    assert controller.answer("future", ApiVersionsResponse).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_defect_in_a_handler_costs_one_request_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller = _with_broker()
    before = fingerprint(controller.state.metadata)

    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("kraft_wire.controller.apis.Api.handler", lambda api: broken)
    controller.ask("create", _create_topic("a"), 7)
    monkeypatch.undo()
    answer = controller.answer("create", CreateTopicsResponse).topics[0]
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert [type(e.error) for e in controller.effects if isinstance(e, HandlerFailed)] == [ZeroDivisionError]
    assert fingerprint(controller.state.metadata) == before


def test_a_request_for_too_many_records_costs_the_request_not_the_leader() -> None:
    """KAFKA-14204, KAFKA-14996."""
    controller = _with_broker()
    topics = [CreatableTopic(name=f"t{n}", num_partitions=1, replication_factor=1) for n in range(9_000)]
    controller.ask("create", CreateTopicsRequest(topics=topics), 7)
    controller.flush()
    answers = controller.answer("create", CreateTopicsResponse).topics
    assert {answer.error_code for answer in answers} == {ErrorCode.POLICY_VIOLATION}
    assert controller.node.is_active
    assert len(controller.state.metadata.topics) == 0


def test_a_consumer_sees_committed_batches_only() -> None:
    controller = _with_broker()
    high_watermark = controller.node.core.high_watermark
    assert high_watermark is not None
    controller.ask("create", _create_topic("a"), 7)
    controller.ask("fetch", _consume(0), 11)
    (partition,) = controller.answer("fetch", FetchResponse).responses[0].partitions
    assert partition.high_watermark == high_watermark
    assert partition.records is not None
    batches, _ = split_batches(partition.records)
    assert batches[0].header.base_offset == 0
    assert batches[-1].header.next_offset == high_watermark


def test_a_consumer_at_the_end_waits_for_the_next_commit() -> None:
    controller = _with_broker()
    end = controller.node.core.high_watermark
    assert end is not None
    controller.ask("fetch", _consume(end), 11)
    assert "fetch" not in controller.replies
    controller.ask("create", _create_topic("a"), 7)
    assert "fetch" not in controller.replies
    controller.flush()
    (partition,) = controller.answer("fetch", FetchResponse).responses[0].partitions
    assert partition.records is not None
    assert split_batches(partition.records)[0][0].header.base_offset == end


def test_a_consumer_that_waited_long_enough_is_answered_with_nothing() -> None:
    controller = _with_broker(Settings(node_id=NODE_ID, metadata_max_idle_interval_ms=0))
    end = controller.node.core.high_watermark
    assert end is not None
    controller.ask("fetch", _consume(end, max_wait_ms=300), 11)
    controller.tick(299)
    assert "fetch" not in controller.replies
    controller.tick(1)
    assert controller.answer("fetch", FetchResponse).responses[0].partitions[0].records == b""


def test_an_abandoned_consumer_is_not_answered() -> None:
    controller = _with_broker()
    end = controller.node.core.high_watermark
    assert end is not None
    controller.ask("fetch", _consume(end), 11)
    controller.step(RequestAbandoned("fetch"))
    controller.ask("create", _create_topic("a"), 7)
    controller.flush()
    assert "fetch" not in controller.replies


def test_list_offsets_tells_the_log_start_and_the_high_watermark() -> None:
    controller = active_controller()
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=t) for t in (-2, -1)]
    for partition in partitions:
        topic = ListOffsetsTopic(name=CLUSTER_METADATA, partitions=[partition])
        controller.ask(partition.timestamp, ListOffsetsRequest(replica_id=-1, topics=[topic]), 5)
    earliest, latest = (
        controller.answer(token, ListOffsetsResponse).topics[0].partitions[0].offset for token in (-2, -1)
    )
    assert (earliest, latest) == (0, controller.node.core.high_watermark)


def test_an_idle_controller_writes_no_ops() -> None:
    controller = active_controller()
    count = len(controller.disk.batches)
    controller.tick(500)
    assert isinstance(controller.disk.records()[-1], NoOpRecord)
    assert len(controller.disk.batches) == count + 1


def test_a_silent_broker_is_fenced_by_the_clock() -> None:
    controller = _with_broker()
    controller.live(8_000)
    assert not controller.state.metadata.brokers[1].fenced
    controller.live(3_000)
    assert controller.state.metadata.brokers[1].fenced


def test_a_pause_of_the_controller_itself_fences_nobody() -> None:
    controller = _with_broker()
    controller.tick(60_000)
    controller.flush()
    assert not controller.state.metadata.brokers[1].fenced


def test_a_stop_commits_what_was_appended_and_takes_nothing_more() -> None:
    controller = _with_broker()
    controller.ask("before", _create_topic("a"), 7)
    controller.step(ShutDown())
    controller.ask("after", _create_topic("b"), 7)
    controller.tick(60_000)
    assert ReadyToStop() not in controller.effects
    controller.flush()
    assert controller.answer("before", CreateTopicsResponse).topics[0].error_code == ErrorCode.NONE
    assert controller.answer("after", CreateTopicsResponse).topics[0].error_code == ErrorCode.NOT_CONTROLLER
    assert ReadyToStop() in controller.effects


def test_an_answer_without_a_form_costs_the_forwarded_request_only(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = _with_broker()
    inner = encode_request(CreateTopicsRequest.API_KEY, 7, 42, "a client", _create_topic("a"))
    principal = envelope.encode_principal(Principal())
    request = EnvelopeRequest(request_data=inner, request_principal=principal, client_host_address=bytes(4))
    unnamed = CreateTopicsResponse(topics=[CreatableTopicResult(name=cast(str, None))])
    monkeypatch.setattr("kraft_wire.controller.apis.Api.handler", lambda api: lambda *_: Result(unnamed))
    controller.ask("envelope", request, 0)
    monkeypatch.undo()
    controller.flush()
    assert controller.answer("envelope", EnvelopeResponse).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert [type(e.error) for e in controller.effects if isinstance(e, HandlerFailed)] == [EncodeError]


def test_no_snapshot_is_asked_for_before_anything_is_committed() -> None:
    controller = LoneController(settings=Settings(node_id=NODE_ID, metadata_log_max_snapshot_interval_ms=1))
    controller.tick(1000)
    assert controller.snapshots_wanted() == []


def test_only_the_state_of_the_newest_snapshot_is_begun_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log begins at the end of the newest: with the state of an older one it can't be read on."""
    controller = LoneController()
    node, core = controller.node, controller.node.core
    older, newer = SnapshotId(100, 3), SnapshotId(200, 4)
    for snapshot_id in (older, newer):
        with monkeypatch.context() as context:
            context.setattr(core, "step", lambda event, now, id=snapshot_id: [InstallSnapshot(id)])
            controller.step(SnapshotVerified(snapshot_id, 1000, 0, ()))
    with monkeypatch.context() as context:
        context.setattr(core, "step", lambda event, now: [HighWatermarkAdvanced(250)])
        assert controller.step(Tick()) == [HighWatermarkAdvanced(250)]
    states = {snapshot_id: MetadataState() for snapshot_id in (older, newer)}
    now = Now(controller.now_ms, 0)
    assert node.step(StateLoaded(older, states[older]), now) == []
    assert controller.state.metadata is not states[older]
    assert node.step(StateLoaded(newer, states[newer]), now) == [ReadCommitted(200, 250)]
    assert controller.state.metadata is states[newer]
    assert node.step(StateLoaded(older, states[older]), now) == []
    assert controller.state.metadata is states[newer]


def test_a_snapshot_is_asked_for_after_enough_bytes_and_once() -> None:
    settings = Settings(node_id=NODE_ID, metadata_log_max_record_bytes_between_snapshots=1)
    controller = active_controller(settings)
    (wanted,) = controller.snapshots_wanted()
    controller.tick(500)
    controller.flush()
    assert controller.snapshots_wanted() == [wanted]
    assert wanted.snapshot_id.epoch == controller.node.core.epoch
    controller.step(SnapshotWritten(wanted.snapshot_id, 1000, 0))
    controller.tick(500)
    controller.flush()
    second = controller.snapshots_wanted()[-1]
    assert second.snapshot_id.end_offset > wanted.snapshot_id.end_offset


def test_no_snapshot_ends_in_a_transaction_that_is_aborted() -> None:
    settings = Settings(node_id=NODE_ID, metadata_log_max_record_bytes_between_snapshots=1)
    disk = active_controller(settings).disk
    begun_at = disk.end_offset
    values = [encode_metadata_record(BeginTransactionRecord(), 0), encode_metadata_record(NoOpRecord(), 0)]
    disk.batches += split_batches(encode_batch(begun_at, 1, 0, values))[0]
    disk.flushed = disk.end_offset
    controller = LoneController(disk, settings)
    controller.flush()
    assert isinstance(disk.records()[-2], AbortTransactionRecord)
    assert controller.snapshots_wanted() == []
    controller.flush()
    (wanted,) = controller.snapshots_wanted()
    assert wanted.snapshot_id.end_offset == disk.end_offset


def test_decisions_and_refusals_are_told() -> None:
    controller = _with_broker()
    controller.ask("again", _register(), 4)
    stranger = _register(2)
    stranger.cluster_id = "another"
    controller.ask("stranger", stranger, 4)
    decided = [record.NAME for e in controller.effects if isinstance(e, Decided) for record, _ in e.records]
    assert {"RegisterBrokerRecord", "BrokerRegistrationChangeRecord"} <= set(decided)
    (refused,) = [effect for effect in controller.effects if isinstance(effect, Refused)]
    assert refused.code is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert refused.peer.address == "peer:1"
