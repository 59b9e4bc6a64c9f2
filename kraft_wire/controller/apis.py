"""Build the table of the APIs that a controller serves.

ApiVersions advertises exactly this table. A broker offers its clients those versions of a forwardable API
that both the broker and the controller know (Kafka's ApiVersionsResponse). So if a forwardable API is missing
here, the clients of every broker lose it.

Each row names Kafka's permission for the whole request (ControllerApis). The rows of APIs whose handlers
check the permissions of single items have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kraft_wire.controller import error_forms
from kraft_wire.controller.decision.api_table import AnsweredBy, Api, ApiTable
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.security.authorization import CLUSTER, AclOperation

if TYPE_CHECKING:
    from kraft_wire.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest

_ACTIVE: Final = AnsweredBy.ACTIVE_CONTROLLER
_ANY: Final = AnsweredBy.ANY_CONTROLLER
_RAFT: Final = AnsweredBy.RAFT
_NODE: Final = AnsweredBy.NODE

_ALTER: Final = (AclOperation.ALTER, CLUSTER)
_ALTER_CONFIGS: Final = (AclOperation.ALTER_CONFIGS, CLUSTER)
_DESCRIBE: Final = (AclOperation.DESCRIBE, CLUSTER)
_CLUSTER_ACTION: Final = (AclOperation.CLUSTER_ACTION, CLUSTER)

_LOGGER: Final = ResourceType.BROKER_LOGGER

_ALTER_PARTITION_ENTRIES_FACTOR: Final = 5
"""By default 100,000 entries: 24,000 partitions with three replicas each, decoded in 30 to 50 ms.

A broker sends the ISRs of all partitions that it leads in one request, if all change at once, and doesn't
split it. One that leads so many would have 72,000 replicas. Brokers' other requests are small: there are at
most 2,250 partitions in an AssignReplicasToDirs, one in a Fetch, and a few directories in a heartbeat.
"""


def _changes_loggers_only(request: IncrementalAlterConfigsRequest) -> bool:
    return bool(request.resources) and all(each.resource_type == _LOGGER for each in request.resources)


CONTROLLER_APIS: Final = ApiTable(
    [
        Api("Produce", 3, 13, _ANY, "reading.refuse_produce", errors=error_forms.PRODUCE),
        Api("Fetch", 4, 18, _RAFT, requires=_CLUSTER_ACTION),
        Api("ListOffsets", 1, 11, _NODE, searches_log=True, errors=error_forms.LIST_OFFSETS),
        Api(
            "Metadata",
            0,
            13,
            _ANY,
            "reading.consumer_metadata",
            reads_in_pieces=True,
            errors=error_forms.METADATA,
        ),
        Api(
            "ApiVersions", 0, 5, _ANY, "cluster.api_versions", errors=error_forms.API_VERSIONS, is_small=True
        ),
        Api(
            "CreateTopics",
            2,
            7,
            _ACTIVE,
            "topics.create_topics",
            is_forwardable=True,
            must_begin_in_time=True,
            errors=error_forms.CREATE_TOPICS,
        ),
        Api(
            "DeleteTopics",
            1,
            6,
            _ACTIVE,
            "topics.delete_topics",
            is_forwardable=True,
            must_begin_in_time=True,
            errors=error_forms.DELETE_TOPICS,
        ),
        Api(
            "DescribeConfigs",
            1,
            4,
            _ANY,
            "config_apis.describe_configs",
            reads_in_pieces=True,
            errors=error_forms.DESCRIBE_CONFIGS,
        ),
        Api(
            "AlterConfigs",
            0,
            2,
            _ACTIVE,
            "config_apis.alter_configs",
            is_forwardable=True,
            errors=error_forms.ALTER_CONFIGS,
        ),
        Api(
            "CreatePartitions",
            0,
            3,
            _ACTIVE,
            "topics.create_partitions",
            is_forwardable=True,
            must_begin_in_time=True,
            errors=error_forms.CREATE_PARTITIONS,
        ),
        Api(
            "CreateDelegationToken",
            1,
            3,
            _ACTIVE,
            "tokens.create_delegation_token",
            is_forwardable=True,
            is_small=True,
        ),
        Api(
            "RenewDelegationToken",
            1,
            2,
            _ACTIVE,
            "tokens.renew_delegation_token",
            is_forwardable=True,
            is_small=True,
        ),
        Api(
            "ExpireDelegationToken",
            1,
            2,
            _ACTIVE,
            "tokens.expire_delegation_token",
            is_forwardable=True,
            is_small=True,
        ),
        Api(
            "DescribeDelegationToken",
            1,
            3,
            _ANY,
            "tokens.describe_delegation_token",
            reads_in_pieces=True,
            is_small=True,
        ),
        Api(
            "ElectLeaders",
            0,
            2,
            _ACTIVE,
            "partitions.elect_leaders",
            _ALTER,
            is_forwardable=True,
            must_begin_in_time=True,
            errors=error_forms.ELECT_LEADERS,
        ),
        Api(
            "IncrementalAlterConfigs",
            0,
            1,
            _ACTIVE,
            "config_apis.incremental_alter_configs",
            is_forwardable=True,
            is_about_this_node=_changes_loggers_only,
            errors=error_forms.ALTER_CONFIGS,
        ),
        Api(
            "AlterPartitionReassignments",
            0,
            1,
            _ACTIVE,
            "reassignments.alter_partition_reassignments",
            _ALTER,
            is_forwardable=True,
            must_begin_in_time=True,
            errors=error_forms.ALTER_PARTITION_REASSIGNMENTS,
        ),
        Api(
            "ListPartitionReassignments",
            0,
            0,
            _ANY,
            "reassignments.list_partition_reassignments",
            _DESCRIBE,
            is_forwardable=True,
            reads_in_pieces=True,
            errors=error_forms.LIST_PARTITION_REASSIGNMENTS,
        ),
        Api(
            "AlterClientQuotas",
            0,
            1,
            _ACTIVE,
            "clients.alter_client_quotas",
            _ALTER_CONFIGS,
            is_forwardable=True,
            errors=error_forms.ALTER_CLIENT_QUOTAS,
        ),
        Api(
            "DescribeUserScramCredentials",
            0,
            0,
            _ANY,
            "clients.describe_user_scram_credentials",
            _DESCRIBE,
            reads_in_pieces=True,
        ),
        Api(
            "AlterUserScramCredentials",
            0,
            0,
            _ACTIVE,
            "clients.alter_user_scram_credentials",
            _ALTER,
            is_forwardable=True,
            errors=error_forms.ALTER_USER_SCRAM_CREDENTIALS,
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
            "partitions.alter_partition",
            _CLUSTER_ACTION,
            entries_factor=_ALTER_PARTITION_ENTRIES_FACTOR,
        ),
        Api(
            "UpdateFeatures",
            0,
            2,
            _ACTIVE,
            "cluster.update_features",
            _ALTER,
            is_forwardable=True,
            is_small=True,
        ),
        Api("Envelope", 0, 0, _NODE, requires=_CLUSTER_ACTION),
        Api("FetchSnapshot", 0, 1, _RAFT, requires=_CLUSTER_ACTION, is_small=True),
        Api("DescribeCluster", 0, 2, _ANY, "cluster.describe_cluster", _ALTER, is_small=True),
        Api(
            "BrokerRegistration", 0, 4, _ACTIVE, "brokers.broker_registration", _CLUSTER_ACTION, is_small=True
        ),
        Api("BrokerHeartbeat", 0, 2, _ACTIVE, "brokers.broker_heartbeat", _CLUSTER_ACTION, is_small=True),
        Api(
            "UnregisterBroker",
            0,
            0,
            _ACTIVE,
            "brokers.unregister_broker",
            _ALTER,
            is_forwardable=True,
            is_small=True,
        ),
        Api(
            "AllocateProducerIds",
            0,
            0,
            _ACTIVE,
            "cluster.allocate_producer_ids",
            _CLUSTER_ACTION,
            is_forwardable=True,
            is_small=True,
        ),
        Api(
            "ControllerRegistration",
            0,
            0,
            _ACTIVE,
            "cluster.controller_registration",
            _CLUSTER_ACTION,
            is_small=True,
        ),
        Api("AssignReplicasToDirs", 0, 0, _ACTIVE, "partitions.assign_replicas_to_dirs", _CLUSTER_ACTION),
        Api("AddRaftVoter", 0, 1, _RAFT, requires=_ALTER, is_forwardable=True, is_small=True),
        Api("RemoveRaftVoter", 0, 0, _RAFT, requires=_ALTER, is_forwardable=True, is_small=True),
        Api("UpdateRaftVoter", 0, 0, _RAFT, requires=_CLUSTER_ACTION, is_small=True),
        Api(
            "UnregisterController",
            0,
            0,
            _ACTIVE,
            "cluster.unregister_controller",
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
    return Api(
        "ExporterPositions", 0, 1, answered_by, "cluster.exporter_positions", _CLUSTER_ACTION, is_small=True
    )


EXPORTER_APIS: Final = ApiTable([*OUR_CONTROLLER_APIS, _exporter_positions_by(_ACTIVE)])
"""The APIs of a controller with exporters."""

_OF_VOTERS: Final = {"Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "VoterEntry"}
"""The APIs that only voters are asked."""

OBSERVER_APIS: Final = ApiTable(api for api in OUR_CONTROLLER_APIS if api.name not in _OF_VOTERS)
"""The APIs of a node that only observes. As it doesn't advertise Vote, no leader makes it a voter."""

EXPORTING_OBSERVER_APIS: Final = ApiTable([*OBSERVER_APIS, _exporter_positions_by(_ANY)])
"""The APIs of an observer with exporters."""
