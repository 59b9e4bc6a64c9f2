"""Build the table of the APIs that a controller serves.

ApiVersions advertises exactly this table. A broker offers its clients those versions of a forwardable API
that both the broker and the controller know (Kafka's ApiVersionsResponse). So if a forwardable API is missing
here, the clients of every broker lose it.

Each row names Kafka's permission for the whole request (ControllerApis). The rows of APIs whose handlers
check the permissions of single items have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kraft_wire.controller.decision.api_table import AnsweredBy, Api, ApiTable, Handler
from kraft_wire.controller.decision.error_responses import ErrorForm, ItemErrors
from kraft_wire.controller.reading import NO_OFFSET
from kraft_wire.security.authorization import CLUSTER, AclOperation

if TYPE_CHECKING:
    from kraft_wire.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
    from kraft_wire.protocol.messages.alter_partition_request import AlterPartitionRequest
    from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
    from kraft_wire.protocol.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
    from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
    from kraft_wire.protocol.messages.broker_registration_request import BrokerRegistrationRequest
    from kraft_wire.protocol.messages.controller_registration_request import ControllerRegistrationRequest
    from kraft_wire.protocol.messages.create_partitions_request import CreatePartitionsRequest
    from kraft_wire.protocol.messages.create_topics_request import CreateTopicsRequest
    from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest
    from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
    from kraft_wire.protocol.messages.describe_configs_request import DescribeConfigsRequest
    from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest
    from kraft_wire.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
    from kraft_wire.protocol.messages.metadata_request import MetadataRequest
    from kraft_wire.protocol.messages.produce_request import ProduceRequest
    from kraft_wire.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
    from kraft_wire.protocol.messages.unregister_controller_request import UnregisterControllerRequest
    from kraft_wire.protocol.messages.update_features_request import UpdateFeaturesRequest
    from kraft_wire.protocol.own_messages.exporter_positions_request import ExporterPositionsRequest

# Handlers are imported when the first request needs them: starting a controller is mostly importing modules.


def _produce() -> Handler[ProduceRequest]:
    from kraft_wire.controller.reading.refuse_produce import handle

    return handle


def _metadata() -> Handler[MetadataRequest]:
    from kraft_wire.controller.reading.consumer_metadata import handle

    return handle


def _api_versions() -> Handler[ApiVersionsRequest]:
    from kraft_wire.controller.cluster.api_versions import handle

    return handle


def _create_topics() -> Handler[CreateTopicsRequest]:
    from kraft_wire.controller.topics.create_topics import handle

    return handle


def _delete_topics() -> Handler[DeleteTopicsRequest]:
    from kraft_wire.controller.topics.delete_topics import handle

    return handle


def _describe_configs() -> Handler[DescribeConfigsRequest]:
    from kraft_wire.controller.config_apis.describe_configs import handle

    return handle


def _create_partitions() -> Handler[CreatePartitionsRequest]:
    from kraft_wire.controller.topics.create_partitions import handle

    return handle


def _elect_leaders() -> Handler[ElectLeadersRequest]:
    from kraft_wire.controller.partitions.elect_leaders import handle

    return handle


def _incremental_alter_configs() -> Handler[IncrementalAlterConfigsRequest]:
    from kraft_wire.controller.config_apis.incremental_alter_configs import handle

    return handle


def _alter_partition() -> Handler[AlterPartitionRequest]:
    from kraft_wire.controller.partitions.alter_partition import handle

    return handle


def _describe_cluster() -> Handler[DescribeClusterRequest]:
    from kraft_wire.controller.cluster.describe_cluster import handle

    return handle


def _update_features() -> Handler[UpdateFeaturesRequest]:
    from kraft_wire.controller.cluster.update_features import handle

    return handle


def _broker_registration() -> Handler[BrokerRegistrationRequest]:
    from kraft_wire.controller.brokers.broker_registration import handle

    return handle


def _broker_heartbeat() -> Handler[BrokerHeartbeatRequest]:
    from kraft_wire.controller.brokers.broker_heartbeat import handle

    return handle


def _unregister_broker() -> Handler[UnregisterBrokerRequest]:
    from kraft_wire.controller.brokers.unregister_broker import handle

    return handle


def _allocate_producer_ids() -> Handler[AllocateProducerIdsRequest]:
    from kraft_wire.controller.cluster.allocate_producer_ids import handle

    return handle


def _controller_registration() -> Handler[ControllerRegistrationRequest]:
    from kraft_wire.controller.cluster.controller_registration import handle

    return handle


def _unregister_controller() -> Handler[UnregisterControllerRequest]:
    from kraft_wire.controller.cluster.unregister_controller import handle

    return handle


def _assign_replicas_to_dirs() -> Handler[AssignReplicasToDirsRequest]:
    from kraft_wire.controller.partitions.assign_replicas_to_dirs import handle

    return handle


def _exporter_positions() -> Handler[ExporterPositionsRequest]:
    from kraft_wire.controller.cluster.exporter_positions import handle

    return handle


_ACTIVE: Final = AnsweredBy.ACTIVE_CONTROLLER
_ANY: Final = AnsweredBy.ANY_CONTROLLER
_RAFT: Final = AnsweredBy.RAFT
_NODE: Final = AnsweredBy.NODE

_ALTER: Final = (AclOperation.ALTER, CLUSTER)
_DESCRIBE: Final = (AclOperation.DESCRIBE, CLUSTER)
_CLUSTER_ACTION: Final = (AclOperation.CLUSTER_ACTION, CLUSTER)

_ALTER_PARTITION_ENTRIES_FACTOR: Final = 5
"""By default 100,000 entries: 24,000 partitions with three replicas each, decoded in 30 to 50 ms.

A broker sends the ISRs of all partitions that it leads in one request, if all change at once, and doesn't
split it. One that leads so many would have 72,000 replicas. Brokers' other requests are small: there are at
most 2,250 partitions in an AssignReplicasToDirs, one in a Fetch, and a few directories in a heartbeat.
"""

_PRODUCE_ERRORS: Final = ErrorForm(
    (
        ItemErrors(
            "topic_data",
            "responses",
            ("name", "topic_id"),
            ItemErrors(
                "partition_data", "partition_responses", ("index",), constants={"base_offset": NO_OFFSET}
            ),
        ),
    )
)
_LIST_OFFSETS_ERRORS: Final = ErrorForm(
    (ItemErrors("topics", "topics", ("name",), ItemErrors("partitions", "partitions", ("partition_index",))),)
)
_METADATA_ERRORS: Final = ErrorForm((ItemErrors("topics", "topics", ("name", "topic_id")),))
_API_VERSIONS_ERRORS: Final = ErrorForm(own_versions="api_keys")
_CREATE_TOPICS_ERRORS: Final = ErrorForm((ItemErrors("topics", "topics", ("name",)),))
_DELETE_TOPICS_ERRORS: Final = ErrorForm(
    (
        ItemErrors("topics", "responses", ("name", "topic_id")),
        ItemErrors("topic_names", "responses", ("name",)),
    )
)
_CREATE_PARTITIONS_ERRORS: Final = ErrorForm((ItemErrors("topics", "results", ("name",)),))
_DESCRIBE_CONFIGS_ERRORS: Final = ErrorForm(
    (ItemErrors("resources", "results", ("resource_type", "resource_name")),)
)
_ALTER_CONFIGS_ERRORS: Final = ErrorForm(
    (ItemErrors("resources", "responses", ("resource_type", "resource_name")),)
)
_ELECT_LEADERS_ERRORS: Final = ErrorForm(
    (
        ItemErrors(
            "topic_partitions",
            "replica_election_results",
            ("topic",),
            ItemErrors("partitions", "partition_result", ("partition_id",)),
        ),
    )
)

CONTROLLER_APIS: Final = ApiTable(
    [
        Api("Produce", 3, 13, _ANY, _produce, errors=_PRODUCE_ERRORS),
        Api("Fetch", 4, 18, _RAFT, requires=_CLUSTER_ACTION),
        Api("ListOffsets", 1, 11, _NODE, searches_log=True, errors=_LIST_OFFSETS_ERRORS),
        Api("Metadata", 0, 13, _ANY, _metadata, reads_in_pieces=True, errors=_METADATA_ERRORS),
        Api("ApiVersions", 0, 5, _ANY, _api_versions, errors=_API_VERSIONS_ERRORS, is_small=True),
        Api("CreateTopics", 2, 7, _ACTIVE, _create_topics, is_forwardable=True, errors=_CREATE_TOPICS_ERRORS),
        Api("DeleteTopics", 1, 6, _ACTIVE, _delete_topics, is_forwardable=True, errors=_DELETE_TOPICS_ERRORS),
        Api(
            "DescribeConfigs",
            1,
            4,
            _ANY,
            _describe_configs,
            reads_in_pieces=True,
            errors=_DESCRIBE_CONFIGS_ERRORS,
        ),
        Api(
            "CreatePartitions",
            0,
            3,
            _ACTIVE,
            _create_partitions,
            is_forwardable=True,
            errors=_CREATE_PARTITIONS_ERRORS,
        ),
        Api(
            "ElectLeaders",
            0,
            2,
            _ACTIVE,
            _elect_leaders,
            _ALTER,
            is_forwardable=True,
            errors=_ELECT_LEADERS_ERRORS,
        ),
        Api(
            "IncrementalAlterConfigs",
            0,
            1,
            _ACTIVE,
            _incremental_alter_configs,
            is_forwardable=True,
            errors=_ALTER_CONFIGS_ERRORS,
        ),
        Api("Vote", 0, 2, _RAFT, requires=_CLUSTER_ACTION, is_small=True),
        Api("BeginQuorumEpoch", 0, 1, _RAFT, requires=_CLUSTER_ACTION, is_small=True),
        Api("EndQuorumEpoch", 0, 1, _RAFT, requires=_CLUSTER_ACTION, is_small=True),
        Api("DescribeQuorum", 0, 2, _RAFT, requires=_DESCRIBE, is_forwardable=True, is_small=True),
        Api(
            "AlterPartition",
            2,
            3,
            _ACTIVE,
            _alter_partition,
            _CLUSTER_ACTION,
            entries_factor=_ALTER_PARTITION_ENTRIES_FACTOR,
        ),
        Api("UpdateFeatures", 0, 2, _ACTIVE, _update_features, _ALTER, is_forwardable=True, is_small=True),
        Api("Envelope", 0, 0, _NODE, requires=_CLUSTER_ACTION),
        Api("FetchSnapshot", 0, 1, _RAFT, requires=_CLUSTER_ACTION, is_small=True),
        Api("DescribeCluster", 0, 2, _ANY, _describe_cluster, _ALTER, is_small=True),
        Api("BrokerRegistration", 0, 4, _ACTIVE, _broker_registration, _CLUSTER_ACTION, is_small=True),
        Api("BrokerHeartbeat", 0, 2, _ACTIVE, _broker_heartbeat, _CLUSTER_ACTION, is_small=True),
        Api(
            "UnregisterBroker", 0, 0, _ACTIVE, _unregister_broker, _ALTER, is_forwardable=True, is_small=True
        ),
        Api(
            "AllocateProducerIds",
            0,
            0,
            _ACTIVE,
            _allocate_producer_ids,
            _CLUSTER_ACTION,
            is_forwardable=True,
            is_small=True,
        ),
        Api(
            "ControllerRegistration", 0, 0, _ACTIVE, _controller_registration, _CLUSTER_ACTION, is_small=True
        ),
        Api("AssignReplicasToDirs", 0, 0, _ACTIVE, _assign_replicas_to_dirs, _CLUSTER_ACTION),
        Api("AddRaftVoter", 0, 1, _RAFT, requires=_ALTER, is_forwardable=True, is_small=True),
        Api("RemoveRaftVoter", 0, 0, _RAFT, requires=_ALTER, is_forwardable=True, is_small=True),
        Api("UpdateRaftVoter", 0, 0, _RAFT, requires=_CLUSTER_ACTION, is_small=True),
        Api(
            "UnregisterController",
            0,
            0,
            _ACTIVE,
            _unregister_controller,
            _ALTER,
            is_forwardable=True,
            is_small=True,
        ),
    ]
)
"""Kafka's APIs of a controller."""

OUR_CONTROLLER_APIS: Final = ApiTable(
    [
        *CONTROLLER_APIS,
        Api("StateDigest", 0, 0, _NODE, requires=_DESCRIBE, is_small=True),
        Api("VoterEntry", 0, 0, _RAFT, requires=_CLUSTER_ACTION, is_small=True),
    ]
)
"""The APIs of one of our controllers."""


def _exporter_positions_by(answered_by: AnsweredBy) -> Api:
    return Api("ExporterPositions", 0, 1, answered_by, _exporter_positions, _CLUSTER_ACTION, is_small=True)


EXPORTER_APIS: Final = ApiTable([*OUR_CONTROLLER_APIS, _exporter_positions_by(_ACTIVE)])
"""The APIs of a controller with exporters."""

_OF_VOTERS: Final = {"Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "VoterEntry"}
"""The APIs that only voters are asked."""

OBSERVER_APIS: Final = ApiTable(api for api in OUR_CONTROLLER_APIS if api.name not in _OF_VOTERS)
"""The APIs of a node that only observes. As it doesn't advertise Vote, no leader makes it a voter."""

EXPORTING_OBSERVER_APIS: Final = ApiTable([*OBSERVER_APIS, _exporter_positions_by(_ANY)])
"""The APIs of an observer with exporters."""
