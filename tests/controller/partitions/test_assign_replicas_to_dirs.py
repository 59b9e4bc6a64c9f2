"""AssignReplicasToDirs: the scenarios of Kafka's ReplicationControlManagerTest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kraft_wire.controller.partitions import assign_replicas_to_dirs
from kraft_wire.metadata.partitions.partition import (
    DIRECTORY_LOST,
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    PartitionRef,
)
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kraft_wire.protocol.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.uuid import Uuid
from tests.controller.controller_harness import directory, failure, uuid
from tests.controller.topic_cluster import BEFORE_DIRECTORIES, TopicCluster, changes

FIRST, SECOND = directory(1, 0), directory(1, 1)
OFFLINE = directory(1, 7)


@pytest.fixture
def cluster() -> TopicCluster:
    """A cluster of broker 1 with two log directories and broker 2 with one."""
    made = TopicCluster(2)
    made.register(1, log_dirs=[FIRST, SECOND])
    made.unfence(1)
    return made


def request(
    cluster: TopicCluster, assignments: Mapping[Uuid, Sequence[PartitionRef]]
) -> AssignReplicasToDirsRequest:
    """Return a request of broker 1 with one topic entry for each partition."""
    return AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=cluster.metadata.brokers[1].epoch,
        directories=[
            DirectoryData(chosen, [TopicData(ref.topic_id, [PartitionData(ref.index)]) for ref in refs])
            for chosen, refs in assignments.items()
        ],
    )


def assign(
    cluster: TopicCluster, assignments: Mapping[Uuid, Sequence[PartitionRef]]
) -> dict[tuple[Uuid, PartitionRef], ErrorCode]:
    response = cluster.run(
        assign_replicas_to_dirs, request(cluster, assignments), 0, AssignReplicasToDirsResponse
    )
    assert response.error_code == ErrorCode.NONE
    return {
        (chosen.id, PartitionRef(topic.topic_id, partition.partition_index)): ErrorCode(partition.error_code)
        for chosen in response.directories
        for topic in chosen.topics
        for partition in topic.partitions
    }


def test_replicas_are_assigned_and_those_in_lost_directories_replaced(cluster: TopicCluster) -> None:
    a = cluster.create_topic("a", [1, 2], [1, 2], [1, 2])
    b = cluster.create_topic("b", [1, 2], [1, 2])
    c = cluster.create_topic("c", [2])
    assert cluster.partition(a).directories == (DIRECTORY_UNASSIGNED, directory(2))
    unknown_topic, unknown_partition, foreign = (
        PartitionRef(uuid(9), 1),
        PartitionRef(a, 137),
        PartitionRef(c, 0),
    )
    assignments = {
        FIRST: [PartitionRef(a, 0), unknown_partition, PartitionRef(b, 0), foreign],
        SECOND: [PartitionRef(a, 1), unknown_topic],
        OFFLINE: [PartitionRef(a, 2)],
        DIRECTORY_LOST: [PartitionRef(b, 1)],
    }
    decided = changes(cluster.decide(assign_replicas_to_dirs, request(cluster, assignments), 0).records)
    assert decided == [
        PartitionChangeRecord(partition_id=0, topic_id=a, directories=(FIRST, directory(2))),
        PartitionChangeRecord(partition_id=0, topic_id=b, directories=(FIRST, directory(2))),
        PartitionChangeRecord(partition_id=1, topic_id=a, directories=(SECOND, directory(2))),
        PartitionChangeRecord(partition_id=2, topic_id=a, directories=(OFFLINE, directory(2))),
        PartitionChangeRecord(partition_id=1, topic_id=b, directories=(DIRECTORY_LOST, directory(2))),
        PartitionChangeRecord(partition_id=2, topic_id=a, isr=(2,), leader=2),
        PartitionChangeRecord(partition_id=1, topic_id=b, isr=(2,), leader=2),
    ]
    outcomes = assign(cluster, assignments)
    assert {key: code for key, code in outcomes.items() if code is not ErrorCode.NONE} == {
        (FIRST, unknown_partition): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (FIRST, foreign): ErrorCode.NOT_LEADER_OR_FOLLOWER,
        (SECOND, unknown_topic): ErrorCode.UNKNOWN_TOPIC_ID,
    }
    assert len(outcomes) == 8
    assert cluster.led_by(1) == {PartitionRef(a, 0), PartitionRef(a, 1), PartitionRef(b, 0)}
    assert cluster.led_by(2) == {PartitionRef(a, 2), PartitionRef(b, 1), PartitionRef(c, 0)}
    assert cluster.partition(a, 2).directories == (OFFLINE, directory(2))
    assert cluster.partition(a, 0).leader_epoch == 0


def test_the_directory_that_is_known_makes_no_record(cluster: TopicCluster) -> None:
    ref = PartitionRef(cluster.create_topic("a", [1, 2]), 0)
    assert assign(cluster, {FIRST: [ref]}) == {(FIRST, ref): ErrorCode.NONE}
    result = cluster.decide(assign_replicas_to_dirs, request(cluster, {FIRST: [ref]}), 0)
    assert list(result.records) == []
    assert not result.atomic


@pytest.mark.parametrize("reserved", [DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING])
def test_directories_that_stand_for_none_cost_nothing(cluster: TopicCluster, reserved: Uuid) -> None:
    foo = cluster.create_topic("a", [1, 2])
    assign(cluster, {reserved: [PartitionRef(foo, 0)]})
    assert cluster.leader_and_isr(foo) == (1, (1, 2))


def test_directories_need_their_level() -> None:
    cluster = TopicCluster(1, level=BEFORE_DIRECTORIES)
    with pytest.raises(ApiError) as refused:
        cluster.decide(assign_replicas_to_dirs, AssignReplicasToDirsRequest(broker_id=1), 0)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
    response = failure(
        AssignReplicasToDirsResponse,
        AssignReplicasToDirsRequest(),
        0,
        refused.value.code,
        refused.value.message,
    )
    assert response == AssignReplicasToDirsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)


@pytest.mark.parametrize("broker_id", [1, 7])
def test_a_stale_sender_fails_as_a_whole(cluster: TopicCluster, broker_id: int) -> None:
    stale = AssignReplicasToDirsRequest(broker_id=broker_id, broker_epoch=-1)
    with pytest.raises(ApiError) as refused:
        cluster.decide(assign_replicas_to_dirs, stale, 0)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
