"""Realistic requests for every handler: some that succeed, some that fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from kraft_wire.controller.tokens.token_rules import token_hmac
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import alter_client_quotas_request as quotas
from kraft_wire.protocol.messages import alter_configs_request as alter_configs
from kraft_wire.protocol.messages import alter_partition_reassignments_request as reassignments
from kraft_wire.protocol.messages import alter_partition_request as alter_partition
from kraft_wire.protocol.messages import assign_replicas_to_dirs_request as assign
from kraft_wire.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraft_wire.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.controller_registration_request import (
    ControllerRegistrationRequest,
    Listener,
)
from kraft_wire.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kraft_wire.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.protocol.messages.create_topics_request import CreateTopicsRequest
from kraft_wire.protocol.messages.delegation_token_record import DelegationTokenRecord
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kraft_wire.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraft_wire.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from kraft_wire.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraft_wire.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.protocol.messages.register_controller_record import (
    ControllerFeature,
    RegisterControllerRecord,
)
from kraft_wire.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraft_wire.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kraft_wire.protocol.messages.unregister_controller_request import UnregisterControllerRequest
from kraft_wire.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraft_wire.security.secret import Secret
from tests.controller.controller_harness import NODE_ID, SESSION_TIMEOUT_MS, directory, uuid
from tests.controller.topic_cluster import TopicCluster, new_topic

Sample = Callable[["SampleCluster"], Message]

TOKEN: Final = "a token"
TOKEN_KEY: Final = "a secret"
TOKEN_HMAC: Final = token_hmac(Secret(TOKEN_KEY), TOKEN)
GONE: Final = NODE_ID + 1
"""A controller that is registered."""


class SampleCluster(TopicCluster):
    """Brokers 0 to 2 are active, broker 3 is fenced; broker 0 leads "orders", broker 2 leads nothing.

    The preferred leader of "moved", broker 2, does not lead it.
    """

    def __init__(self) -> None:
        super().__init__(0, 1, 2, elr=False)
        self.register(3)
        self.orders = self.create_topic("orders", [0, 1, 2], [0, 2, 1])
        self.add_topic("moved", [2, 1], isr=(1, 2))
        gone = RegisterControllerRecord(
            controller_id=GONE,
            incarnation_id=uuid(GONE),
            features=[ControllerFeature("kraft.version", 0, 1)],
        )
        user, end_ms = "User:ANONYMOUS", self.context().wall_ms + 1_000
        token = DelegationTokenRecord(user, user, (), 0, end_ms, end_ms, TOKEN)
        self.replay([(gone, 0), (token, 0)])
        self.state.settings = msgspec.structs.replace(
            self.state.settings, delegation_token_secret_key=Secret(TOKEN_KEY)
        )

    def epoch(self, broker_id: int) -> int:
        return self.metadata.brokers[broker_id].epoch

    def silence(self) -> None:
        """Let all sessions time out."""
        self.now_ms += SESSION_TIMEOUT_MS + 1


def _produce(cluster: SampleCluster) -> Message:
    topic = TopicProduceData("orders", uuid(0), [PartitionProduceData(0, b"records")])
    return ProduceRequest(acks=1, topic_data=[topic])


def _alter_configs(name: str, value: str) -> Sample:
    change = AlterableConfig(name="retention.ms", config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=2, resource_name=name, configs=[change])
    return lambda cluster: IncrementalAlterConfigsRequest(resources=[resource])


def _replace_configs(name: str, value: str) -> Sample:
    resource = alter_configs.AlterConfigsResource(
        resource_type=2,
        resource_name=name,
        configs=[alter_configs.AlterableConfig(name="retention.ms", value=value)],
    )
    return lambda cluster: alter_configs.AlterConfigsRequest(resources=[resource])


def _of_tokens(request: Message) -> Sample:
    """A request of a client that a broker has authenticated."""

    def make(cluster: SampleCluster) -> Message:
        cluster.is_forwarded = True
        return request

    return make


def _reassign(topic: str, replicas: tuple[int, ...] | None) -> Sample:
    target = reassignments.ReassignableTopic(topic, [reassignments.ReassignablePartition(0, replicas)])
    return lambda cluster: reassignments.AlterPartitionReassignmentsRequest(topics=[target])


def _quota(value: float) -> Sample:
    entry = quotas.EntryData([quotas.EntityData("user", "ann")], [quotas.OpData("producer_byte_rate", value)])
    return lambda cluster: quotas.AlterClientQuotasRequest([entry])


def _credential(iterations: int) -> Sample:
    upsertion = ScramCredentialUpsertion("ann", 1, iterations, b"salt", b"salted password")
    return lambda cluster: AlterUserScramCredentialsRequest(upsertions=[upsertion])


def _alter_partition(isr: tuple[int, ...], epoch_change: int = 0) -> Sample:
    def make(cluster: SampleCluster) -> Message:
        partition = cluster.partition(cluster.orders)
        proposal = alter_partition.PartitionData(
            partition_index=0,
            leader_epoch=partition.leader_epoch,
            new_isr_with_epochs=[alter_partition.BrokerState(id, cluster.epoch(id)) for id in isr],
            partition_epoch=partition.partition_epoch,
        )
        topic = alter_partition.TopicData(topic_id=cluster.orders, partitions=[proposal])
        return alter_partition.AlterPartitionRequest(
            broker_id=0, broker_epoch=cluster.epoch(0) + epoch_change, topics=[topic]
        )

    return make


def _assign(partition: int) -> Sample:
    def make(cluster: SampleCluster) -> Message:
        topic = assign.TopicData(topic_id=cluster.orders, partitions=[assign.PartitionData(partition)])
        return assign.AssignReplicasToDirsRequest(
            broker_id=1,
            broker_epoch=cluster.epoch(1),
            directories=[assign.DirectoryData(id=directory(1, 5), topics=[topic])],
        )

    return make


def _features(name: str, level: int) -> Sample:
    update = FeatureUpdateKey(feature=name, max_version_level=level)
    return lambda cluster: UpdateFeaturesRequest(feature_updates=[update])


def _controller(host: str) -> Sample:
    return lambda cluster: ControllerRegistrationRequest(
        controller_id=NODE_ID, incarnation_id=uuid(77), listeners=[Listener("CONTROLLER", host, 9093, 0)]
    )


def _stale_heartbeat(cluster: SampleCluster) -> Message:
    request = cluster.heartbeat_request(0)
    request.broker_epoch += 1
    return request


def _foreign_registration(cluster: SampleCluster) -> Message:
    request = cluster.registration_request(7)
    request.cluster_id = "another"
    return request


SUCCEEDING: Final[dict[str, tuple[Sample, ...]]] = {
    "Metadata": (lambda cluster: MetadataRequest(topics=None),),
    "ApiVersions": (lambda cluster: ApiVersionsRequest("librdkafka", "2.0"),),
    "CreateTopics": (lambda cluster: CreateTopicsRequest(topics=[new_topic("new", partitions=3, factor=2)]),),
    "DeleteTopics": (lambda cluster: DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")]),),
    "DescribeConfigs": (lambda cluster: DescribeConfigsRequest([DescribeConfigsResource(2, "orders")]),),
    "AlterConfigs": (_replace_configs("orders", "1000"),),
    "CreatePartitions": (
        lambda cluster: CreatePartitionsRequest(topics=[CreatePartitionsTopic("orders", 4, None)]),
    ),
    "AlterPartitionReassignments": (_reassign("orders", (2, 1, 0)),),
    "ListPartitionReassignments": (lambda cluster: ListPartitionReassignmentsRequest(topics=None),),
    "AlterClientQuotas": (_quota(1000.0),),
    "DescribeUserScramCredentials": (lambda cluster: DescribeUserScramCredentialsRequest(None),),
    "AlterUserScramCredentials": (_credential(4096),),
    "CreateDelegationToken": (_of_tokens(CreateDelegationTokenRequest()),),
    "RenewDelegationToken": (_of_tokens(RenewDelegationTokenRequest(TOKEN_HMAC)),),
    "ExpireDelegationToken": (_of_tokens(ExpireDelegationTokenRequest(TOKEN_HMAC)),),
    "DescribeDelegationToken": (_of_tokens(DescribeDelegationTokenRequest(None)),),
    "ElectLeaders": (lambda cluster: ElectLeadersRequest(0, [TopicPartitions("moved", (0,))]),),
    "IncrementalAlterConfigs": (_alter_configs("orders", "1000"),),
    "AlterPartition": (_alter_partition((0,)),),
    "DescribeCluster": (lambda cluster: DescribeClusterRequest(endpoint_type=2),),
    "BrokerRegistration": (
        lambda cluster: cluster.registration_request(7),
        lambda cluster: cluster.registration_request(0),
        lambda cluster: cluster.registration_request(3, 2),
    ),
    "BrokerHeartbeat": (
        lambda cluster: cluster.heartbeat_request(0),
        lambda cluster: cluster.heartbeat_request(3),
        lambda cluster: cluster.heartbeat_request(0, want_fence=True),
        lambda cluster: cluster.heartbeat_request(0, want_shut_down=True),
        lambda cluster: cluster.heartbeat_request(2, want_shut_down=True),
        lambda cluster: cluster.heartbeat_request(1, offline=[directory(1)], cordoned=[]),
    ),
    "UnregisterBroker": (lambda cluster: UnregisterBrokerRequest(broker_id=1),),
    "AllocateProducerIds": (
        lambda cluster: AllocateProducerIdsRequest(broker_id=1, broker_epoch=cluster.epoch(1)),
    ),
    "ControllerRegistration": (_controller("localhost"),),
    "AssignReplicasToDirs": (_assign(0),),
    "UpdateFeatures": (_features("kraft.version", 1),),
    "UnregisterController": (lambda cluster: UnregisterControllerRequest(controller_id=GONE),),
}
"""Requests by API that succeed. Produce never does."""

FAILING: Final[dict[str, tuple[Sample, ...]]] = {
    "Produce": (_produce,),
    "Metadata": (lambda cluster: MetadataRequest(topics=[MetadataRequestTopic(name="orders")]),),
    "ApiVersions": (lambda cluster: ApiVersionsRequest("a b", "2.0"),),
    "CreateTopics": (
        lambda cluster: CreateTopicsRequest(topics=[new_topic("orders")]),
        lambda cluster: CreateTopicsRequest(topics=[new_topic("many", partitions=10_001)]),
    ),
    "DeleteTopics": (lambda cluster: DeleteTopicsRequest(topics=[DeleteTopicState(name="missing")]),),
    "DescribeConfigs": (
        lambda cluster: DescribeConfigsRequest([DescribeConfigsResource(2, "missing")]),
        lambda cluster: DescribeConfigsRequest([DescribeConfigsResource(3, "orders")]),
    ),
    "AlterConfigs": (_replace_configs("missing", "1000"), _replace_configs("orders", "no number")),
    "CreatePartitions": (
        lambda cluster: CreatePartitionsRequest(topics=[CreatePartitionsTopic("orders", 1, None)]),
    ),
    "AlterPartitionReassignments": (_reassign("missing", (0,)), _reassign("orders", None)),
    "AlterClientQuotas": (_quota(-1.0),),
    "DescribeUserScramCredentials": (
        lambda cluster: DescribeUserScramCredentialsRequest([UserName("missing")]),
    ),
    "AlterUserScramCredentials": (_credential(1),),
    "CreateDelegationToken": (lambda cluster: CreateDelegationTokenRequest(),),
    "RenewDelegationToken": (_of_tokens(RenewDelegationTokenRequest(b"unknown")),),
    "ExpireDelegationToken": (lambda cluster: ExpireDelegationTokenRequest(TOKEN_HMAC),),
    "DescribeDelegationToken": (lambda cluster: DescribeDelegationTokenRequest(None),),
    "ElectLeaders": (
        lambda cluster: ElectLeadersRequest(0, [TopicPartitions("missing", (0,))]),
        lambda cluster: ElectLeadersRequest(7, None),
    ),
    "IncrementalAlterConfigs": (_alter_configs("missing", "1000"), _alter_configs("orders", "no number")),
    "AlterPartition": (_alter_partition((0, 3)), _alter_partition((0, 1), epoch_change=1)),
    "DescribeCluster": (lambda cluster: DescribeClusterRequest(endpoint_type=1),),
    "BrokerRegistration": (_foreign_registration, lambda cluster: cluster.registration_request(0, 2)),
    "BrokerHeartbeat": (_stale_heartbeat,),
    "UnregisterBroker": (lambda cluster: UnregisterBrokerRequest(broker_id=9),),
    "AllocateProducerIds": (lambda cluster: AllocateProducerIdsRequest(broker_id=1, broker_epoch=-1),),
    "ControllerRegistration": (_controller(""),),
    "AssignReplicasToDirs": (_assign(9),),
    "UpdateFeatures": (_features("metadata.version", 1), _features("missing", 1)),
    "UnregisterController": (lambda cluster: UnregisterControllerRequest(controller_id=9),),
}
"""Requests by API that fail as a whole or for one item. ListPartitionReassignments never does."""
