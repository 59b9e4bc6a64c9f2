"""The node: activation, speculative writes, waiting responses, lost leadership and replay."""

from __future__ import annotations

from typing import cast

import pytest

from kraft_wire.controller.cluster.describe_cluster import CONTROLLERS
from kraft_wire.controller.decision.context import Result
from kraft_wire.controller.forwarding import envelope
from kraft_wire.controller.node.effects import (
    Activated,
    FirstWrite,
    HandlerFailed,
    ReadCommitted,
    RecordsAppended,
    RequestRefused,
    SetLogLevels,
)
from kraft_wire.controller.node.events import ApiRequest, Caller
from kraft_wire.metadata.canonical import fingerprint
from kraft_wire.protocol.errors import EncodeError, ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_cluster_response import DescribeClusterResponse
from kraft_wire.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.protocol.messages.describe_configs_response import DescribeConfigsResponse
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kraft_wire.protocol.messages.metadata_request import MetadataRequest
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.raft.effects import LostLeadership, ReadyToStop
from kraft_wire.raft.events import (
    ShutDown,
)
from kraft_wire.security.principal import Principal
from kraft_wire.wire.entry_count import MAX_REQUEST_ENTRIES
from kraft_wire.wire.headers import decode_response, encode_request
from tests.controller.lone_controller import LISTENER, NODE_ID, LoneController, active_controller
from tests.controller.node.node_requests import (
    controller_with_broker,
    create_topic,
    lose_leadership,
    register_broker,
)


def test_a_node_is_active_only_when_its_first_record_is_committed() -> None:
    controller = LoneController()
    controller.ask("early", create_topic("a"), 7)
    assert controller.answer("early", CreateTopicsResponse).topics[0].error_code == ErrorCode.NOT_CONTROLLER
    controller.flush()
    assert controller.node.is_active
    assert any(isinstance(effect, Activated) for effect in controller.effects)


def test_the_first_committed_write_of_a_leader_is_reported_once() -> None:
    controller = LoneController()
    controller.flush()
    assert not [effect for effect in controller.effects if isinstance(effect, FirstWrite)]
    controller.tick(7)
    for name in ("a", "b"):
        controller.ask(name, create_topic(name), 7)
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
    controller = controller_with_broker()
    controller.ask("create", create_topic("a"), 7)
    assert "create" not in controller.replies
    assert controller.state.metadata.topics.by_name("a") is not None
    controller.flush()
    assert controller.answer("create", CreateTopicsResponse).topics[0].error_code == ErrorCode.NONE


def test_a_decision_sees_earlier_ones_that_are_not_committed_and_waits_for_them() -> None:
    controller = controller_with_broker()
    controller.ask("first", create_topic("a"), 7)
    controller.ask("second", create_topic("a"), 7)
    assert "second" not in controller.replies
    controller.flush()
    second = controller.answer("second", CreateTopicsResponse).topics[0]
    assert second.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_responses_leave_in_the_order_of_their_decisions() -> None:
    controller = controller_with_broker()
    before = set(controller.replies)
    for number in range(5):
        controller.ask(number, create_topic(f"t{number}"), 7)
    controller.flush()
    assert [token for token in controller.replies if token not in before] == [0, 1, 2, 3, 4]


def test_records_that_were_not_flushed_are_lost_in_a_crash_and_were_never_acknowledged() -> None:
    controller = controller_with_broker()
    controller.ask("kept", create_topic("kept"), 7)
    controller.flush()
    controller.ask("lost", create_topic("lost"), 7)
    restarted = controller.crash_and_restart()
    restarted.flush()
    restarted.flush()
    assert "lost" not in controller.replies
    assert restarted.state.metadata.topics.by_name("kept") is not None
    assert restarted.state.metadata.topics.by_name("lost") is None


def test_a_restart_replays_to_the_same_state_in_a_higher_epoch() -> None:
    controller = controller_with_broker()
    controller.ask("create", create_topic("a"), 7)
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


def test_records_known_to_be_committed_are_applied_at_the_start() -> None:
    controller = controller_with_broker()
    controller.ask("create", create_topic("a"), 7)
    controller.flush()
    restarted = controller.crash_and_restart()
    assert restarted.state.metadata.topics.by_name("a") is not None
    restarted.flush()
    assert restarted.node.is_active
    assert not [effect for effect in restarted.effects if isinstance(effect, ReadCommitted)]


def test_a_new_leader_that_has_applied_the_log_writes_before_its_first_record_is_committed() -> None:
    restarted = restarted_with_topic("a")
    restarted.ask("alter", change_of_configs(), 1)
    assert "alter" not in restarted.replies, "the answer waits for the commit"
    restarted.flush()
    assert restarted.answer("alter", IncrementalAlterConfigsResponse).responses[0].error_code == 0


def test_a_new_leader_that_loses_before_its_first_commit_undoes_only_what_it_wrote() -> None:
    restarted = restarted_with_topic("a")
    committed = fingerprint(restarted.state.metadata)
    restarted.ask("alter", change_of_configs(), 1)
    assert fingerprint(restarted.state.metadata) != committed
    lose_leadership(restarted)
    answer = restarted.answer("alter", IncrementalAlterConfigsResponse).responses[0]
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    assert fingerprint(restarted.state.metadata) == committed
    restarted.flush()
    assert restarted.node.is_active
    reads = [effect.start_offset for effect in restarted.effects if isinstance(effect, ReadCommitted)]
    assert reads, "what it wrote is committed after all"
    assert min(reads) > 0, "nothing is applied twice"


def change_of_configs() -> IncrementalAlterConfigsRequest:
    value = AlterableConfig(name="message.max.bytes", config_operation=0, value="1048588")
    return IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=4, resource_name="", configs=[value])]
    )


def restarted_with_topic(name: str) -> LoneController:
    """Return a controller that leads again after a restart, with everything applied and nothing flushed."""
    controller = controller_with_broker()
    controller.ask("create", create_topic(name), 7)
    controller.flush()
    restarted = controller.crash_and_restart()
    assert restarted.node.is_active
    assert restarted.disk.flushed < restarted.disk.end_offset
    return restarted


def test_records_not_known_to_be_committed_are_applied_after_their_commit() -> None:
    controller = controller_with_broker()
    known = controller.disk.committed
    controller.ask("create", create_topic("a"), 7)
    controller.flush()
    controller.disk.committed = known
    restarted = controller.crash_and_restart()
    assert restarted.state.metadata.topics.by_name("a") is None
    restarted.flush()
    assert restarted.state.metadata.topics.by_name("a") is not None


def test_lost_leadership_undoes_records_that_are_not_committed() -> None:
    controller = controller_with_broker()
    committed = fingerprint(controller.state.metadata)
    controller.ask("create", create_topic("a"), 7)
    lose_leadership(controller)
    answer = controller.answer("create", CreateTopicsResponse).topics[0]
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    assert any(isinstance(effect, LostLeadership) for effect in controller.effects)
    assert fingerprint(controller.state.metadata) == committed


def test_a_standby_answers_reads() -> None:
    """KAFKA-15048: reads failed on a controller that is not the leader."""
    controller = controller_with_broker()
    controller.ask("create", create_topic("a"), 7)
    lose_leadership(controller)
    assert not controller.node.is_active
    controller.ask("versions", ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)
    assert controller.answer("versions", ApiVersionsResponse).error_code == ErrorCode.NONE
    controller.ask("cluster", DescribeClusterRequest(endpoint_type=2), 1)
    assert controller.answer("cluster", DescribeClusterResponse).error_code == ErrorCode.NONE


def test_a_standby_and_a_leader_without_a_majority_change_their_log_levels() -> None:
    controller = controller_with_broker()
    controller.state.log_levels = lambda: {"root": "INFO"}
    controller.ask("create", create_topic("a"), 7)
    controller.ask("leading", change_of_level("DEBUG"), 1)
    assert "create" not in controller.replies, "nothing is committed"
    assert controller.answer("leading", IncrementalAlterConfigsResponse).responses[0].error_code == 0
    lose_leadership(controller)
    controller.ask("standby", change_of_level("ERROR"), 1)
    assert controller.answer("standby", IncrementalAlterConfigsResponse).responses[0].error_code == 0
    set_to = [effect.levels for effect in controller.effects if isinstance(effect, SetLogLevels)]
    assert set_to == [{"root": "DEBUG"}, {"root": "ERROR"}]


def change_of_level(level: str) -> IncrementalAlterConfigsRequest:
    value = AlterableConfig(name="root", config_operation=0, value=level)
    return IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=8, resource_name=str(NODE_ID), configs=[value])]
    )


def test_a_read_waits_for_the_commit_of_what_it_shows() -> None:
    """KAFKA-15048: uncommitted values were returned."""
    controller = controller_with_broker()
    value = AlterableConfig(name="ssl.keystore.location", config_operation=0, value="/new")
    change = AlterConfigsResource(resource_type=4, resource_name="", configs=[value])
    controller.ask("alter", IncrementalAlterConfigsRequest(resources=[change]), 1)
    read = DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=4, resource_name="")])
    controller.ask("read", read, 4)
    assert not {"alter", "read"} & set(controller.replies)
    lose_leadership(controller)
    controller.tick()
    (answer,) = controller.answer("read", DescribeConfigsResponse).results
    names = [config.name for config in answer.configs]
    assert answer.error_code == 0 and "ssl.keystore.location" not in names, "it shows what is committed"


def test_a_lone_voter_that_lost_its_leadership_leads_again_and_keeps_the_log() -> None:
    controller = controller_with_broker()
    controller.ask("create", create_topic("a"), 7)
    epoch = controller.node.core.epoch
    lose_leadership(controller)
    controller.flush()
    assert controller.node.is_active
    assert controller.node.core.epoch > epoch + 1
    assert controller.state.metadata.topics.by_name("a") is not None


def test_a_forwarded_request_is_answered_inside_an_envelope() -> None:
    controller = controller_with_broker()
    inner = encode_request(CreateTopicsRequest.API_KEY, 7, 42, "a client", create_topic("a"))
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


def test_a_forwarded_request_with_too_many_entries_is_refused_inside_the_envelope() -> None:
    """A broker tells its client of an unknown error if the envelope itself has one."""
    controller = controller_with_broker()
    topics = [CreatableTopic(f"t-{number}", 1, 1) for number in range(MAX_REQUEST_ENTRIES + 1)]
    inner = encode_request(CreateTopicsRequest.API_KEY, 7, 42, "a client", CreateTopicsRequest(topics=topics))
    principal = envelope.encode_principal(Principal())
    request = EnvelopeRequest(request_data=inner, request_principal=principal, client_host_address=bytes(4))
    controller.ask("envelope", request, 0)
    answer = controller.answer("envelope", EnvelopeResponse)
    assert answer.error_code == ErrorCode.NONE and answer.response_data is not None
    _, response = decode_response(CreateTopicsRequest.API_KEY, 7, answer.response_data)
    assert isinstance(response, CreateTopicsResponse)
    assert (response.topics[0].name, response.topics[0].error_code) == ("t-0", ErrorCode.POLICY_VIOLATION)
    assert "kraft.wire.max.request.entries" in (response.topics[0].error_message or "")
    assert any(isinstance(effect, RequestRefused) for effect in controller.effects), "the log says so"


def test_a_forwarded_request_whose_answer_has_no_place_for_the_error_fails_with_its_envelope() -> None:
    """ElectLeaders v0: an empty answer would say that all went well."""
    controller = controller_with_broker()
    partitions = tuple(range(MAX_REQUEST_ENTRIES + 1))
    body = ElectLeadersRequest(0, [TopicPartitions("t", partitions)])
    inner = encode_request(ElectLeadersRequest.API_KEY, 0, 42, "a client", body)
    principal = envelope.encode_principal(Principal())
    request = EnvelopeRequest(request_data=inner, request_principal=principal, client_host_address=bytes(4))
    controller.ask("envelope", request, 0)
    assert controller.answer("envelope", EnvelopeResponse).error_code == ErrorCode.POLICY_VIOLATION


def test_a_forwarded_request_to_a_node_that_is_not_active_makes_the_broker_look_elsewhere() -> None:
    controller = LoneController()
    inner = encode_request(CreateTopicsRequest.API_KEY, 7, 42, "a client", create_topic("a"))
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
    controller = controller_with_broker()
    controller.ask("create", create_topic("a"), 7)
    controller.ask("versions", ApiVersionsRequest(client_software_name="x", client_software_version="1"), 4)
    assert controller.answer("versions", ApiVersionsResponse).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("request_", "version"),
    [(DescribeClusterRequest(endpoint_type=CONTROLLERS), 1), (MetadataRequest(topics=None), 9)],
    ids=["DescribeCluster", "Metadata"],
)
def test_who_the_controllers_are_is_answered_before_others_writes_are_committed(
    request_: Message, version: int
) -> None:
    controller = controller_with_broker()
    controller.ask("create", create_topic("a"), 7)
    controller.ask("cluster", request_, version)
    assert "cluster" in controller.replies and "create" not in controller.replies


def test_a_controller_that_registers_is_shown_when_that_is_committed() -> None:
    controller = LoneController()
    controller.flush()
    controller.ask("early", DescribeClusterRequest(endpoint_type=CONTROLLERS), 1)
    assert "early" not in controller.replies, "this controller's own registration isn't committed"
    controller.flush()
    assert "early" in controller.replies


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
        ApiRequest("future", ApiVersionsRequest.API_KEY, 99, ApiVersionsRequest(), Caller(LISTENER))
    )
    assert controller.answer("future", ApiVersionsResponse).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_an_internal_error_of_a_handler_fails_one_request_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller = controller_with_broker()
    before = fingerprint(controller.state.metadata)

    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("kraft_wire.controller.decision.api_table.Api.handler", lambda api: broken)
    controller.ask("create", create_topic("a"), 7)
    monkeypatch.undo()
    answer = controller.answer("create", CreateTopicsResponse).topics[0]
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert [type(e.error) for e in controller.effects if isinstance(e, HandlerFailed)] == [ZeroDivisionError]
    assert fingerprint(controller.state.metadata) == before


def test_a_request_that_only_validates_appends_nothing() -> None:
    controller = controller_with_broker()
    end_offset = controller.node.core.log_end_offset
    request = create_topic("t")
    request.validate_only = True
    controller.ask("create", request, 7)
    assert controller.answer("create", CreateTopicsResponse).topics[0].error_code == ErrorCode.NONE
    assert controller.node.core.log_end_offset == end_offset
    assert len(controller.state.metadata.topics) == 0


@pytest.mark.parametrize("validate_only", [False, True])
def test_a_request_with_too_many_records_fails_without_ending_the_leadership(validate_only: bool) -> None:
    """KAFKA-14204, KAFKA-14996. Java's limit holds for requests that only validate, too."""
    controller = controller_with_broker()
    topics = [CreatableTopic(name=f"t{n}", num_partitions=1, replication_factor=1) for n in range(9_000)]
    controller.ask("create", CreateTopicsRequest(topics=topics, validate_only=validate_only), 7)
    while controller.state.in_work:
        controller.tick()
    controller.flush()
    answers = controller.answer("create", CreateTopicsResponse).topics
    assert {answer.error_code for answer in answers} == {ErrorCode.POLICY_VIOLATION}
    assert controller.node.is_active
    assert len(controller.state.metadata.topics) == 0


def test_an_idle_controller_writes_no_ops() -> None:
    controller = active_controller()
    count = len(controller.disk.batches)
    controller.tick(500)
    assert isinstance(controller.disk.records()[-1], NoOpRecord)
    assert len(controller.disk.batches) == count + 1


def test_a_silent_broker_is_fenced_by_the_clock() -> None:
    controller = controller_with_broker()
    controller.live(8_000)
    assert not controller.state.metadata.brokers[1].fenced
    controller.live(3_000)
    assert controller.state.metadata.brokers[1].fenced


def test_a_pause_of_the_controller_itself_fences_nobody() -> None:
    controller = controller_with_broker()
    controller.tick(60_000)
    controller.flush()
    assert not controller.state.metadata.brokers[1].fenced


def test_a_stop_commits_appended_records_and_accepts_no_more() -> None:
    controller = controller_with_broker()
    controller.ask("before", create_topic("a"), 7)
    controller.step(ShutDown())
    controller.ask("after", create_topic("b"), 7)
    controller.tick(60_000)
    assert ReadyToStop() not in controller.effects
    controller.flush()
    assert controller.answer("before", CreateTopicsResponse).topics[0].error_code == ErrorCode.NONE
    assert controller.answer("after", CreateTopicsResponse).topics[0].error_code == ErrorCode.NOT_CONTROLLER
    assert ReadyToStop() in controller.effects


def test_a_response_that_cannot_be_encoded_fails_the_forwarded_request_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller = controller_with_broker()
    inner = encode_request(CreateTopicsRequest.API_KEY, 7, 42, "a client", create_topic("a"))
    principal = envelope.encode_principal(Principal())
    request = EnvelopeRequest(request_data=inner, request_principal=principal, client_host_address=bytes(4))
    unnamed = CreateTopicsResponse(topics=[CreatableTopicResult(name=cast(str, None))])
    monkeypatch.setattr(
        "kraft_wire.controller.decision.api_table.Api.handler", lambda api: lambda *_: Result(unnamed)
    )
    controller.ask("envelope", request, 0)
    monkeypatch.undo()
    controller.flush()
    assert controller.answer("envelope", EnvelopeResponse).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert [type(e.error) for e in controller.effects if isinstance(e, HandlerFailed)] == [EncodeError]


def test_decisions_and_refusals_are_reported() -> None:
    controller = controller_with_broker()
    controller.ask("again", register_broker(), 4)
    stranger = register_broker(2)
    stranger.cluster_id = "another"
    controller.ask("stranger", stranger, 4)
    decided = [
        record.NAME for e in controller.effects if isinstance(e, RecordsAppended) for record, _ in e.records
    ]
    assert {"RegisterBrokerRecord", "BrokerRegistrationChangeRecord"} <= set(decided)
    (refused,) = [effect for effect in controller.effects if isinstance(effect, RequestRefused)]
    assert refused.code is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert refused.caller.address == "peer:1"
