"""AssignReplicasToDirs (73), version 0: a broker says which log directory each replica is in (KIP-858).

Kafka requires CLUSTER_ACTION on the CLUSTER. A replica in a directory that is not online costs the broker its
place in the ISR.
"""

from __future__ import annotations

from kraft_wire.controller.broker_partitions import records_for_offline_replicas
from kraft_wire.controller.cluster_view import ClusterView, check_broker_epoch
from kraft_wire.controller.context import Context, ControllerState, Result, VersionedRecord
from kraft_wire.controller.partition_change import Goal
from kraft_wire.metadata.partition import PartitionRef
from kraft_wire.metadata.version import directory_assignment_supported
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
)
from kraft_wire.protocol.messages.assign_replicas_to_dirs_response import (
    AssignReplicasToDirsResponse,
)
from kraft_wire.protocol.messages.assign_replicas_to_dirs_response import (
    DirectoryData as DirectoryResult,
)
from kraft_wire.protocol.messages.assign_replicas_to_dirs_response import (
    PartitionData as PartitionResult,
)
from kraft_wire.protocol.messages.assign_replicas_to_dirs_response import (
    TopicData as TopicResult,
)
from kraft_wire.protocol.uuid import Uuid


def handle(
    state: ControllerState, request: AssignReplicasToDirsRequest, version: int, context: Context
) -> Result:
    """Note the directories of the replicas that the broker has.

    Raises ApiError(UNSUPPORTED_VERSION) below metadata.version 3.7-IV2 and ApiError(STALE_BROKER_EPOCH).
    """
    if not directory_assignment_supported(state.metadata.features.metadata_version):
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION, "replicas have directories from metadata.version 3.7-IV2 on"
        )
    registration = check_broker_epoch(state, request.broker_id, request.broker_epoch)
    assignment = _Assignment(ClusterView(state), request.broker_id)
    results = []
    lost: dict[PartitionRef, None] = {}
    for directory in request.directories:
        result, assigned = assignment.assign(directory)
        results.append(result)
        if not registration.has_online_directory(directory.id):
            lost.update(dict.fromkeys(assigned))
    records = assignment.records + records_for_offline_replicas(state, request.broker_id, lost)
    return Result(AssignReplicasToDirsResponse(directories=results), records, atomic=False)


def error_response(
    request: AssignReplicasToDirsRequest, version: int, code: ErrorCode, message: str
) -> AssignReplicasToDirsResponse:
    """The error at the top; there is no place for the message."""
    return AssignReplicasToDirsResponse(error_code=code)


class _Assignment:
    """One broker's directories, taken one after the other."""

    def __init__(self, view: ClusterView, broker_id: int) -> None:
        self.records: list[VersionedRecord] = []
        self._view = view
        self._broker_id = broker_id

    def assign(self, directory: DirectoryData) -> tuple[DirectoryResult, list[PartitionRef]]:
        """The result for one directory, and the partitions that are in it now."""
        assigned = []
        topics = []
        for topic in directory.topics:
            partitions = []
            for partition in topic.partitions:
                ref = PartitionRef(topic.topic_id, partition.partition_index)
                error = self._assign(ref, directory.id)
                if error is None:
                    assigned.append(ref)
                partitions.append(
                    PartitionResult(partition_index=ref.index, error_code=error or ErrorCode.NONE)
                )
            topics.append(TopicResult(topic_id=topic.topic_id, partitions=partitions))
        return DirectoryResult(id=directory.id, topics=topics), assigned

    def _assign(self, ref: PartitionRef, directory: Uuid) -> ErrorCode | None:
        metadata = self._view.state.metadata
        if metadata.topics.by_id(ref.topic_id) is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        partition = metadata.partitions.get(ref.topic_id, ref.index)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._broker_id not in partition.replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        record = self._view.change(ref, partition, Goal(directories={self._broker_id: directory}))
        if record is not None:
            self.records.append(record)
        return None
