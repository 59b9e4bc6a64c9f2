"""Requests that ask for several things, to see that an error answers all of them."""

from __future__ import annotations

from typing import Final

from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import alter_client_quotas_request as quotas
from kraft_wire.protocol.messages import alter_configs_request as alter_configs
from kraft_wire.protocol.messages import alter_partition_reassignments_request as reassignments
from kraft_wire.protocol.messages import alter_partition_request as alter_partition
from kraft_wire.protocol.messages import alter_user_scram_credentials_request as scram
from kraft_wire.protocol.messages import assign_replicas_to_dirs_request as assign
from kraft_wire.protocol.messages import broker_registration_request as registration
from kraft_wire.protocol.messages import describe_quorum_request as describe_quorum
from kraft_wire.protocol.messages import fetch_request as fetch
from kraft_wire.protocol.messages import list_offsets_request as list_offsets
from kraft_wire.protocol.messages import produce_request as produce
from kraft_wire.protocol.messages import vote_request as vote
from kraft_wire.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kraft_wire.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraft_wire.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kraft_wire.protocol.uuid import Uuid

ORDERS: Final = Uuid(bytes(15) + b"\x07")

ERROR_SAMPLES: Final[tuple[Message, ...]] = (
    produce.ProduceRequest(
        acks=1,
        topic_data=[
            produce.TopicProduceData(
                name="orders",
                topic_id=ORDERS,
                partition_data=[produce.PartitionProduceData(index=0), produce.PartitionProduceData(index=4)],
            ),
            produce.TopicProduceData(
                name=CLUSTER_METADATA,
                topic_id=CLUSTER_METADATA_TOPIC_ID,
                partition_data=[produce.PartitionProduceData(index=0)],
            ),
        ],
    ),
    fetch.FetchRequest(
        topics=[
            fetch.FetchTopic(
                topic=CLUSTER_METADATA,
                topic_id=CLUSTER_METADATA_TOPIC_ID,
                partitions=[fetch.FetchPartition(partition=0, fetch_offset=5)],
            )
        ]
    ),
    list_offsets.ListOffsetsRequest(
        topics=[
            list_offsets.ListOffsetsTopic(
                name=CLUSTER_METADATA,
                partitions=[list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)],
            ),
            list_offsets.ListOffsetsTopic(
                name="orders",
                partitions=[
                    list_offsets.ListOffsetsPartition(partition_index=1, timestamp=-2),
                    list_offsets.ListOffsetsPartition(partition_index=3, timestamp=77),
                ],
            ),
        ]
    ),
    MetadataRequest(
        topics=[
            MetadataRequestTopic(name="orders"),
            MetadataRequestTopic(name=None, topic_id=ORDERS),
            MetadataRequestTopic(name="invoices"),
        ]
    ),
    ApiVersionsRequest("librdkafka", "2.0"),
    CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name="orders",
                num_partitions=3,
                replication_factor=2,
                configs=[CreatableTopicConfig(name="retention.ms", value="1")],
            ),
            CreatableTopic(name="invoices", num_partitions=1, replication_factor=1),
        ]
    ),
    DeleteTopicsRequest(
        topics=[DeleteTopicState(name="orders"), DeleteTopicState(name=None, topic_id=ORDERS)],
        topic_names=("orders", "invoices"),
    ),
    DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=2, resource_name="orders"),
            DescribeConfigsResource(resource_type=4, resource_name="", configuration_keys=("a", "b")),
        ]
    ),
    alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=2,
                resource_name="orders",
                configs=[alter_configs.AlterableConfig(name="retention.ms", value="1")],
            ),
            alter_configs.AlterConfigsResource(resource_type=4, resource_name="1"),
        ]
    ),
    CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name="orders", count=9),
            CreatePartitionsTopic(name="invoices", count=2),
        ]
    ),
    ElectLeadersRequest(
        topic_partitions=[TopicPartitions("orders", (0, 2)), TopicPartitions("invoices", (1,))]
    ),
    IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=2,
                resource_name="orders",
                configs=[AlterableConfig(name="retention.ms", config_operation=0, value="1")],
            ),
            AlterConfigsResource(resource_type=4, resource_name="1"),
        ]
    ),
    reassignments.AlterPartitionReassignmentsRequest(
        topics=[
            reassignments.ReassignableTopic(
                "orders",
                [
                    reassignments.ReassignablePartition(0, (1, 2)),
                    reassignments.ReassignablePartition(3, None),
                ],
            ),
            reassignments.ReassignableTopic("invoices", [reassignments.ReassignablePartition(1, (2,))]),
        ]
    ),
    ListPartitionReassignmentsRequest(topics=[ListPartitionReassignmentsTopics("orders", (0, 2))]),
    quotas.AlterClientQuotasRequest(
        entries=[
            quotas.EntryData(
                entity=[quotas.EntityData("user", "ann"), quotas.EntityData("client-id", None)],
                ops=[quotas.OpData("producer_byte_rate", 5.0)],
            ),
            quotas.EntryData(entity=[quotas.EntityData("ip", None)]),
        ]
    ),
    scram.AlterUserScramCredentialsRequest(
        deletions=[scram.ScramCredentialDeletion("ann", 1)],
        upsertions=[
            scram.ScramCredentialUpsertion("bob", 1, 4096, b"salt", b"secret"),
            scram.ScramCredentialUpsertion("eve", 2, 4096, b"salt", b"secret"),
        ],
    ),
    vote.VoteRequest(cluster_id="c", topics=[vote.TopicData(CLUSTER_METADATA, [vote.PartitionData()])]),
    describe_quorum.DescribeQuorumRequest(
        topics=[
            describe_quorum.TopicData(
                topic_name=CLUSTER_METADATA,
                partitions=[describe_quorum.PartitionData(partition_index=0)],
            )
        ]
    ),
    alter_partition.AlterPartitionRequest(
        broker_id=1,
        broker_epoch=9,
        topics=[
            alter_partition.TopicData(
                topic_id=ORDERS, partitions=[alter_partition.PartitionData(partition_index=2)]
            )
        ],
    ),
    EnvelopeRequest(request_data=b"inner", request_principal=b"", client_host_address=bytes(4)),
    DescribeClusterRequest(endpoint_type=2),
    registration.BrokerRegistrationRequest(broker_id=1, cluster_id="c"),
    BrokerHeartbeatRequest(broker_id=1, broker_epoch=9),
    UnregisterBrokerRequest(broker_id=1),
    AllocateProducerIdsRequest(broker_id=1, broker_epoch=9),
    assign.AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=9,
        directories=[
            assign.DirectoryData(
                id=ORDERS,
                topics=[
                    assign.TopicData(topic_id=ORDERS, partitions=[assign.PartitionData(partition_index=0)])
                ],
            )
        ],
    ),
)
"""At most one request an API. The APIs that are missing have no items to ask for."""
