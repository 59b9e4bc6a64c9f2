"""Serve AssignReplicasToDirs (73), version 0: record the log directory of each replica of a broker. KIP-858.

If the directory of a replica is not online, the broker leaves the ISR of that partition.
"""

from __future__ import annotations

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.partitions.broker_partitions import records_for_offline_replicas
from kraft_wire.controller.partitions.cluster_view import ClusterView, check_broker_epoch
from kraft_wire.controller.partitions.partition_change import Goal
from kraft_wire.metadata.features.metadata_version import directory_assignment_supported
from kraft_wire.metadata.partitions.partition import PartitionRef
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
    """Record the directories of the broker's replicas.

    Raises ApiError: UNSUPPORTED_VERSION below metadata.version 3.7-IV2, and STALE_BROKER_EPOCH.
    """
    if not directory_assignment_supported(state.metadata.features.metadata_version):
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION, "replicas have log directories from metadata.version 3.7-IV2 on"
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


class _Assignment:
    """The directories of one broker, assigned one after the other."""

    def __init__(self, view: ClusterView, broker_id: int) -> None:
        self.records: list[VersionedRecord] = []
        self._view = view
        self._broker_id = broker_id

    def assign(self, directory: DirectoryData) -> tuple[DirectoryResult, list[PartitionRef]]:
        """Return the result for one directory, and the partitions that are now in it."""
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
