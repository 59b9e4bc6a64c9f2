"""Partitions with many replicas are decided as others are, and cost the others nothing."""

from __future__ import annotations

from kraft_wire.controller.partitions import elect_leaders
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraft_wire.protocol.messages.elect_leaders_response import ElectLeadersResponse
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from tests.controller.topic_cluster import TopicCluster, assigned_topic, new_topic

BROKERS = range(40)


def test_a_topic_on_all_brokers_leaves_the_columns_narrow() -> None:
    cluster = TopicCluster(*BROKERS)
    small, large = cluster.create(
        new_topic("small", partitions=50, factor=3), new_topic("large", partitions=50, factor=len(BROKERS))
    )
    assert small.error_code == large.error_code == ErrorCode.NONE
    assert cluster.metadata.partitions.columns.width == 3
    assert sorted(cluster.partition(large.topic_id, 49).isr) == list(BROKERS)


def test_a_broker_leaves_all_isrs() -> None:
    cluster = TopicCluster(*BROKERS)
    (result,) = cluster.create(new_topic("large", partitions=60, factor=len(BROKERS)))
    cluster.fence(7)
    partitions = [cluster.partition(result.topic_id, index) for index in range(60)]
    assert all(7 not in each.isr and each.leader != 7 and len(each.isr) == 39 for each in partitions)
    cluster.fence(8)
    assert cluster.metadata.partitions.with_isr_member(8) == []


def test_the_first_replica_of_a_wide_partition_is_preferred() -> None:
    cluster = TopicCluster(*BROKERS)
    topic_id = cluster.create_topic("large", BROKERS)
    cluster.fence(0)
    assert cluster.partition(topic_id).leader == 1
    cluster.unfence(0)
    response = cluster.run(
        elect_leaders, ElectLeadersRequest(0, [TopicPartitions("large", (0,))]), 2, ElectLeadersResponse
    )
    (partition,) = response.replica_election_results[0].partition_result
    assert partition.error_code == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "it isn't in the ISR yet"


def test_the_replication_factor_of_partition_0_bounds_the_min_isr_of_the_others() -> None:
    """min.insync.replicas counts up to the number of replicas of partition 0, however many they are."""
    cluster = TopicCluster(*BROKERS, elr=True)
    (result,) = cluster.create(assigned_topic("mixed", {0: BROKERS[:20]}))
    cluster.set_min_isr("mixed", 15)
    brokers = (1, 2, 3)
    record = PartitionRecord(
        1, result.topic_id, brokers, brokers, leader=1, leader_epoch=0, partition_epoch=0
    )
    record.directories = tuple(cluster.metadata.brokers[broker_id].directories[0] for broker_id in brokers)
    cluster.replay([(record, 2)])
    cluster.fence(1)
    narrow = cluster.partition(result.topic_id, 1)
    assert (narrow.isr, narrow.elr) == ((2, 3), (1,))
