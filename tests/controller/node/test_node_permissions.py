"""The node checks the permission of a whole request before anything else happens to it."""

from __future__ import annotations

import pytest

from kraft_wire.controller.apis import CONTROLLER_APIS
from kraft_wire.controller.decision.api_table import Api
from kraft_wire.controller.decision.context import Authorizer, Context
from kraft_wire.controller.forwarding import envelope
from kraft_wire.controller.node.effects import FindTimestamps, RequestRefused
from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest
from kraft_wire.protocol.messages.elect_leaders_response import ElectLeadersResponse
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.protocol.messages.list_offsets_response import ListOffsetsResponse
from kraft_wire.security.authorization import CLUSTER, AclOperation, Resource, topic_resource
from kraft_wire.security.principal import Principal
from kraft_wire.wire.headers import decode_response, encode_request
from tests.controller.error_samples import ERROR_SAMPLES
from tests.controller.grants import Grants
from tests.controller.lone_controller import LoneController

SAMPLES = {sample.API_KEY: sample for sample in ERROR_SAMPLES}
WITH_PERMISSION = [pytest.param(api, id=api.name) for api in CONTROLLER_APIS if api.requires is not None]
WHOLE_REQUEST = {
    AclOperation.CLUSTER_ACTION: {
        "Fetch", "FetchSnapshot", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "AlterPartition", "Envelope",
        "BrokerRegistration", "BrokerHeartbeat", "AllocateProducerIds", "ControllerRegistration",
        "AssignReplicasToDirs", "UpdateRaftVoter",
    },
    AclOperation.ALTER: {
        "ElectLeaders", "DescribeCluster", "UnregisterBroker", "AddRaftVoter", "RemoveRaftVoter",
        "UpdateFeatures", "UnregisterController", "AlterPartitionReassignments", "AlterUserScramCredentials",
    },
    AclOperation.ALTER_CONFIGS: {"AlterClientQuotas"},
    AclOperation.DESCRIBE: {
        "DescribeQuorum", "ListPartitionReassignments", "DescribeUserScramCredentials",
    },
}  # fmt: skip
"""ControllerApis.authorizeClusterOperation; for DescribeUserScramCredentials, KafkaApis."""

ALICE = Principal("User", "alice")


def controller_with(authorizer: Authorizer) -> LoneController:
    controller = LoneController(authorizer=authorizer)
    controller.flush()
    controller.flush()
    assert controller.node.is_active
    return controller


def _sample(api: Api) -> Message:
    request = SAMPLES.get(api.key) or api.request_class()
    if isinstance(request, FetchRequest):
        return FetchRequest(replica_state=ReplicaState(replica_id=1), topics=request.topics)
    return request


def test_permissions_of_whole_requests_are_kafkas() -> None:
    found = {api.name: api.requires for api in CONTROLLER_APIS if api.requires is not None}
    assert found == {
        name: (operation, CLUSTER) for operation, names in WHOLE_REQUEST.items() for name in names
    }


@pytest.mark.parametrize("api", WITH_PERMISSION)
def test_a_request_without_permission_is_refused_and_changes_nothing(api: Api) -> None:
    controller = controller_with(Grants())
    end_offset = controller.node.core.log_end_offset
    request, version = _sample(api), api.max_version
    controller.ask("refused", request, version)
    (refusal,) = [effect for effect in controller.effects if isinstance(effect, RequestRefused)]
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert (refusal.api_key, refusal.code) == (api.key, code)
    expected = api.error_response(request, version, code, refusal.reason)
    assert controller.replies["refused"].encode(version) == expected.encode(version)
    assert controller.node.core.log_end_offset == end_offset


@pytest.mark.parametrize("api", WITH_PERMISSION)
def test_exactly_the_permission_of_the_row_is_needed(api: Api) -> None:
    assert api.requires is not None
    grants = Grants(api.requires)
    controller = controller_with(grants)
    controller.ask("served", _sample(api), api.max_version)
    assert grants.asked[0] == api.requires
    codes = [effect.code for effect in controller.effects if isinstance(effect, RequestRefused)]
    assert ErrorCode.CLUSTER_AUTHORIZATION_FAILED not in codes


def test_a_standby_checks_permissions_before_it_says_that_it_is_not_active() -> None:
    controller = LoneController(authorizer=Grants())
    controller.ask("elect", ElectLeadersRequest(), 2)
    code = controller.answer("elect", ElectLeadersResponse).error_code
    assert code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _forwarded(request: Message, version: int) -> EnvelopeRequest:
    return EnvelopeRequest(
        request_data=encode_request(request.API_KEY, version, 42, "a client", request),
        request_principal=envelope.encode_principal(ALICE),
        client_host_address=bytes(4),
    )


def _inner(controller: LoneController, api_key: int, version: int) -> Message:
    data = controller.answer("envelope", EnvelopeResponse).response_data
    assert data is not None
    return decode_response(api_key, version, data)[1]


def test_a_forwarded_request_needs_the_permissions_of_the_client() -> None:
    cluster_action = AclOperation.CLUSTER_ACTION, CLUSTER
    controller = controller_with(Grants(cluster_action, principal="ANONYMOUS"))
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=1)
    controller.ask("envelope", _forwarded(request, 0), 0)
    inner = _inner(controller, request.API_KEY, 0)
    assert inner.to_json(0)["errorCode"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_the_items_of_a_forwarded_request_need_the_permissions_of_the_client() -> None:
    class Both:
        """CLUSTER_ACTION for the broker, CREATE on one topic for alice."""

        def authorize(self, context: Context, operation: AclOperation, resource: Resource) -> bool:
            if context.principal == ALICE:
                return (operation, resource) == (AclOperation.CREATE, topic_resource("a"))
            return operation is AclOperation.CLUSTER_ACTION

    controller = controller_with(Both())
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("a", "b")]
    controller.ask("envelope", _forwarded(CreateTopicsRequest(topics=topics), 7), 0)
    controller.flush()
    inner = _inner(controller, CreateTopicsRequest.API_KEY, 7)
    assert isinstance(inner, CreateTopicsResponse)
    assert {topic.name: topic.error_code for topic in inner.topics} == {
        "a": ErrorCode.INVALID_REPLICATION_FACTOR,  # permitted, but there is no broker
        "b": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }


def _consume() -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic=CLUSTER_METADATA, partitions=[partition])
    return FetchRequest(replica_id=-1, max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=[topic])


def test_a_consumer_needs_read_on_the_log_and_nothing_else() -> None:
    controller = controller_with(Grants((AclOperation.READ, topic_resource(CLUSTER_METADATA))))
    controller.ask("fetch", _consume(), 11)
    partition = controller.answer("fetch", FetchResponse).responses[0].partitions[0]
    assert (partition.error_code, bool(partition.records)) == (ErrorCode.NONE, True)


def test_a_consumer_without_read_gets_no_records() -> None:
    controller = controller_with(Grants((AclOperation.CLUSTER_ACTION, CLUSTER)))
    controller.ask("fetch", _consume(), 11)
    partition = controller.answer("fetch", FetchResponse).responses[0].partitions[0]
    assert (partition.error_code, partition.records) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, b"")


@pytest.mark.parametrize("timestamp", [-1, 1000])
def test_offsets_need_describe_on_the_log(timestamp: int) -> None:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name=CLUSTER_METADATA, partitions=[partition])
    request = ListOffsetsRequest(replica_id=-1, topics=[topic])
    controller = controller_with(Grants((AclOperation.READ, topic_resource(CLUSTER_METADATA))))
    controller.ask("offsets", request, 5)
    answer = controller.answer("offsets", ListOffsetsResponse).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not [effect for effect in controller.effects if isinstance(effect, FindTimestamps)]
