"""AlterPartitionReassignments and ListPartitionReassignments: the scenarios of ReplicationControlManagerTest,
PartitionReassignmentReplicasTest and PartitionReassignmentRevertTest, and where this controller differs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kraft_wire.controller.partitions import alter_partition
from kraft_wire.controller.reassignments import alter_partition_reassignments, list_partition_reassignments
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.partitions.partition import DIRECTORY_UNASSIGNED, NO_LEADER
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from kraft_wire.protocol.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraft_wire.protocol.messages.alter_partition_response import AlterPartitionResponse
from kraft_wire.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kraft_wire.protocol.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
)
from kraft_wire.protocol.uuid import Uuid
from tests.controller.controller_harness import directory, uuid
from tests.controller.topic_cluster import BEFORE_DIRECTORIES, TopicCluster

Target = Sequence[int] | None
BROKERS = (0, 1, 2, 3, 4)
UNCLEAN = "unclean.leader.election.enable"


@pytest.fixture
def cluster() -> TopicCluster:
    return TopicCluster(*BROKERS)


def reassign(
    cluster: TopicCluster, topic: str, *targets: Target, may_change_factor: bool = True, version: int = 1
) -> list[int]:
    """Reassign the partitions of a topic from 0 on; None cancels. Returns the code of each."""
    partitions = [
        ReassignablePartition(index, None if target is None else tuple(target))
        for index, target in enumerate(targets)
    ]
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=may_change_factor, topics=[ReassignableTopic(topic, partitions)]
    )
    response = cluster.run(
        alter_partition_reassignments, request, version, AlterPartitionReassignmentsResponse
    )
    assert (response.error_code, response.error_message) == (0, None)
    (answer,) = response.responses
    assert answer.name == topic
    assert [each.partition_index for each in answer.partitions] == list(range(len(targets)))
    assert all((each.error_message is None) == (each.error_code == 0) for each in answer.partitions)
    return [each.error_code for each in answer.partitions]


def propose_isr(cluster: TopicCluster, topic_id: Uuid, isr: Sequence[int]) -> int:
    """Let the leader of partition 0 propose an ISR. Returns the code of the answer."""
    partition = cluster.partition(topic_id)
    proposal = PartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        new_isr_with_epochs=[BrokerState(id, cluster.metadata.brokers[id].epoch) for id in isr],
        partition_epoch=partition.partition_epoch,
    )
    request = AlterPartitionRequest(
        broker_id=partition.leader,
        broker_epoch=cluster.metadata.brokers[partition.leader].epoch,
        topics=[TopicData(topic_id=topic_id, partitions=[proposal])],
    )
    response = cluster.run(alter_partition, request, 3, AlterPartitionResponse)
    return response.topics[0].partitions[0].error_code


def moves(cluster: TopicCluster, topic_id: Uuid, index: int = 0) -> tuple[tuple[int, ...], ...]:
    """Return the replicas, those that are added and those that are removed."""
    partition = cluster.partition(topic_id, index)
    return partition.replicas, partition.adding_replicas, partition.removing_replicas


def listed(cluster: TopicCluster, topics: list[ListPartitionReassignmentsTopics] | None) -> object:
    request = ListPartitionReassignmentsRequest(topics=topics)
    response = cluster.run(list_partition_reassignments, request, 0, ListPartitionReassignmentsResponse)
    assert (response.error_code, response.error_message) == (0, None)
    return {
        topic.name: {
            each.partition_index: (each.replicas, each.adding_replicas, each.removing_replicas)
            for each in topic.partitions
        }
        for topic in response.topics
    }


def test_a_reassignment_completes_when_the_new_replicas_are_in_sync(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1, 2])
    epoch = cluster.partition(foo).leader_epoch
    assert reassign(cluster, "foo", [3, 1, 4]) == [0]
    assert moves(cluster, foo) == ((3, 1, 4, 0, 2), (3, 4), (0, 2))
    partition = cluster.partition(foo)
    assert (partition.leader, partition.leader_epoch, partition.isr) == (0, epoch, (0, 1, 2))
    assert partition.directories == tuple(map(directory, (3, 1, 4, 0, 2)))
    assert propose_isr(cluster, foo, [0, 1, 2, 3]) == 0
    assert moves(cluster, foo) == ((3, 1, 4, 0, 2), (3, 4), (0, 2))
    assert propose_isr(cluster, foo, [0, 1, 2, 3, 4]) == ErrorCode.NEW_LEADER_ELECTED
    partition = cluster.partition(foo)
    assert moves(cluster, foo) == ((3, 1, 4), (), ())
    assert (partition.leader, partition.isr, partition.leader_epoch) == (3, (1, 3, 4), epoch + 1)


def test_another_order_of_the_same_replicas_is_done_at_once(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1, 2])
    assert reassign(cluster, "foo", [2, 1, 0]) == [0]
    assert moves(cluster, foo) == ((2, 1, 0), (), ())
    assert cluster.partition(foo).leader == 0
    assert cluster.partition(foo).directories == tuple(map(directory, (2, 1, 0)))


def test_replicas_in_sync_are_removed_at_once_with_a_new_leader_epoch(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1, 2])
    epoch = cluster.partition(foo).leader_epoch
    assert reassign(cluster, "foo", [0, 1]) == [0]
    assert moves(cluster, foo) == ((0, 1), (), ())
    assert cluster.partition(foo).isr == (0, 1)
    assert cluster.partition(foo).leader_epoch == epoch + 1


def test_the_present_replicas_need_no_record(cluster: TopicCluster) -> None:
    cluster.create_topic("foo", [0, 1, 2])
    before = cluster.state.next_offset
    assert reassign(cluster, "foo", [0, 1, 2]) == [0]
    assert cluster.state.next_offset == before


def test_a_smaller_factor_waits_for_all_that_stay(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1, 2])
    cluster.fence(2)
    assert reassign(cluster, "foo", [1, 2]) == [0]
    assert moves(cluster, foo) == ((1, 2, 0), (), (0,))
    cluster.unfence(2)
    assert propose_isr(cluster, foo, [0, 1, 2]) == ErrorCode.NEW_LEADER_ELECTED
    assert moves(cluster, foo) == ((1, 2), (), ())


def test_a_cancelled_reassignment_leaves_the_former_replicas(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1, 2])
    reassign(cluster, "foo", [3, 1, 4])
    propose_isr(cluster, foo, [0, 1, 2, 3])
    assert reassign(cluster, "foo", None) == [0]
    assert moves(cluster, foo) == ((1, 0, 2), (), ())
    assert cluster.partition(foo).isr == (0, 1, 2)
    assert reassign(cluster, "foo", None) == [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]


@pytest.mark.parametrize("allows_unclean", [False, True])
def test_a_cancellation_without_former_replicas_in_sync_loses_records(
    cluster: TopicCluster, allows_unclean: bool
) -> None:
    foo = cluster.create_topic("foo", [0, 1])
    reassign(cluster, "foo", [2, 3])
    propose_isr(cluster, foo, [0, 1, 2])
    cluster.fence(0, 1)
    assert cluster.leader_and_isr(foo) == (2, (2,))
    if allows_unclean:
        cluster.set_config(ResourceType.TOPIC, "foo", UNCLEAN, "true")
        assert reassign(cluster, "foo", None) == [0]
        assert moves(cluster, foo) == ((0, 1), (), ())
        assert cluster.leader_and_isr(foo) == (NO_LEADER, (0,))
    else:
        assert reassign(cluster, "foo", None) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
        assert moves(cluster, foo) == ((2, 3, 0, 1), (2, 3), (0, 1))


def test_a_reassignment_replaces_another(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1])
    reassign(cluster, "foo", [2, 1])
    assert reassign(cluster, "foo", [3, 1]) == [0]
    assert moves(cluster, foo) == ((3, 1, 0), (3,), (0,))
    assert propose_isr(cluster, foo, [0, 1, 3]) == ErrorCode.NEW_LEADER_ELECTED
    assert moves(cluster, foo) == ((3, 1), (), ())


def test_the_former_replicas_are_remembered_when_a_reassignment_replaces_another(
    cluster: TopicCluster,
) -> None:
    cluster.add_brokers(5)
    foo = cluster.create_topic("foo", [0, 1, 2])
    reassign(cluster, "foo", [3, 4, 5])
    propose_isr(cluster, foo, [0, 1, 2, 5])
    assert reassign(cluster, "foo", [3, 4, 0]) == [0]
    assert moves(cluster, foo) == ((3, 4, 0, 1, 2), (3, 4), (1, 2))
    assert cluster.partition(foo).isr == (0, 1, 2), "5 is no replica any more"
    assert reassign(cluster, "foo", None) == [0]
    assert moves(cluster, foo) == ((0, 1, 2), (), ())


def test_replicas_that_alone_are_in_sync_are_not_dropped(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1])
    reassign(cluster, "foo", [2, 3])
    propose_isr(cluster, foo, [0, 1, 2])
    cluster.fence(0, 1)
    assert reassign(cluster, "foo", [4, 3]) == [0]
    assert cluster.leader_and_isr(foo) == (2, (2,))
    assert moves(cluster, foo) == ((4, 3, 0, 1, 2), (4,), (0, 1, 2))


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_replica_that_is_removed_is_not_eligible_any_more(is_cancelled: bool) -> None:
    """It deletes its log, and may come back without records."""
    cluster = TopicCluster(*BROKERS, elr=True)
    foo = cluster.create_topic("foo", [0, 1])
    cluster.set_min_isr("foo", 2)
    reassign(cluster, "foo", [2, 3])
    propose_isr(cluster, foo, [0, 2])
    if is_cancelled:
        reassign(cluster, "foo", None)
    else:
        propose_isr(cluster, foo, [0, 2, 3])
    partition = cluster.partition(foo)
    assert set(partition.elr) <= set(partition.replicas)
    if is_cancelled:
        assert (partition.replicas, partition.isr, partition.elr) == ((0, 1), (0,), ())


def test_a_reassignment_back_to_the_former_replicas_completes(cluster: TopicCluster) -> None:
    """In Java, broker 2 stays among those that are added, and is removed from each ISR: it never ends."""
    foo = cluster.create_topic("foo", [0, 1])
    reassign(cluster, "foo", [2, 1])
    assert reassign(cluster, "foo", [0, 1]) == [0]
    assert moves(cluster, foo) == ((0, 1), (), ())


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([0, 0], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([0, 9], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([0, 4], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_a_wrong_target_fails_alone(cluster: TopicCluster, target: Target, code: ErrorCode) -> None:
    foo = cluster.create_topic("foo", [0, 1], [0, 1])
    cluster.cordon(4)
    assert reassign(cluster, "foo", target, [2, 1]) == [code, 0]
    assert moves(cluster, foo, 0) == ((0, 1), (), ())
    assert moves(cluster, foo, 1) == ((2, 1, 0), (2,), (0,))


def test_fenced_brokers_may_get_replicas(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1])
    cluster.fence(2, 3)
    assert reassign(cluster, "foo", [2, 3]) == [0]
    assert moves(cluster, foo) == ((2, 3, 0, 1), (2, 3), (0, 1))


def test_unknown_topics_and_partitions(cluster: TopicCluster) -> None:
    cluster.create_topic("foo", [0, 1])
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert reassign(cluster, "bar", [0]) == [unknown]
    assert reassign(cluster, "foo", [1, 0], [1, 0]) == [0, unknown]


def test_a_request_can_forbid_another_factor(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1])
    refused = [ErrorCode.INVALID_REPLICATION_FACTOR]
    assert reassign(cluster, "foo", [2, 1, 0], may_change_factor=False) == refused
    assert reassign(cluster, "foo", [2, 1], may_change_factor=False) == [0]
    assert reassign(cluster, "foo", [3, 1, 0], may_change_factor=False) == refused
    assert reassign(cluster, "foo", [3, 1], may_change_factor=False) == [0]
    assert reassign(cluster, "foo", [3], version=0) == [0]
    assert moves(cluster, foo)[0][0] == 3


def test_a_partition_that_is_named_twice_is_left_alone(cluster: TopicCluster) -> None:
    foo = cluster.create_topic("foo", [0, 1])
    both = [ReassignablePartition(0, (2, 1)), ReassignablePartition(0, (3, 1))]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("foo", both)])
    response = cluster.run(alter_partition_reassignments, request, 1, AlterPartitionReassignmentsResponse)
    codes = [each.error_code for each in response.responses[0].partitions]
    assert codes == [ErrorCode.INVALID_REQUEST] * 2
    assert moves(cluster, foo) == ((0, 1), (), ())


def test_a_broker_with_several_directories_chooses_one_itself(cluster: TopicCluster) -> None:
    cluster.register(7, log_dirs=[uuid(7001), uuid(7002)])
    foo = cluster.create_topic("foo", [0])
    reassign(cluster, "foo", [7])
    assert cluster.partition(foo).directories == (DIRECTORY_UNASSIGNED, directory(0))


def test_before_directories_records_name_none() -> None:
    cluster = TopicCluster(*BROKERS, level=BEFORE_DIRECTORIES)
    cluster.create_topic("foo", [0, 1])
    partition = ReassignablePartition(0, (2, 1))
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("foo", [partition])])
    ((record, version),) = cluster.decide(alter_partition_reassignments, request, 1).records
    assert version == 0 and getattr(record, "directories") is None  # noqa: B009 - of any record


def test_what_is_being_moved_is_listed(cluster: TopicCluster) -> None:
    cluster.create_topic("foo", [0, 1], [1, 2], [2, 3])
    cluster.create_topic("bar", [0, 1])
    cluster.create_topic("baz", [0, 1])
    assert listed(cluster, None) == {}
    reassign(cluster, "foo", [4, 1], [1, 2], [2, 4])
    reassign(cluster, "bar", [2, 1])
    first = {0: ((4, 1, 0), (4,), (0,))}
    third = {2: ((2, 4, 3), (4,), (3,))}
    bar = {0: ((2, 1, 0), (2,), (0,))}
    assert listed(cluster, None) == {"foo": first | third, "bar": bar}
    asked = [
        ListPartitionReassignmentsTopics("foo", (0, 1, 9)),
        ListPartitionReassignmentsTopics("baz", (0,)),
        ListPartitionReassignmentsTopics("none", (0,)),
    ]
    assert listed(cluster, asked) == {"foo": first}
    assert listed(cluster, []) == {}


def test_many_partitions_are_listed_in_pieces(cluster: TopicCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_partition_reassignments, "PARTITIONS_PER_PIECE", 1)
    cluster.create_topic("foo", [0, 1], [1, 2])
    reassign(cluster, "foo", [4, 1], [4, 2])
    request = ListPartitionReassignmentsRequest(topics=None)
    first = cluster.decide(list_partition_reassignments, request, 0)
    assert first.response is None
    (work,) = first.works
    piece = work.decide(cluster.state, cluster.context())
    assert piece.is_last and isinstance(piece.response, ListPartitionReassignmentsResponse)
    assert [each.partition_index for each in piece.response.topics[0].partitions] == [0, 1]
