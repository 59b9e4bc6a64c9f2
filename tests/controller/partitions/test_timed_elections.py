"""Periodic elections: the scenarios of Kafka's ReplicationControlManagerTest."""

from __future__ import annotations

import pytest

from kraft_wire.controller.partitions.timed_elections import (
    MAX_ELECTIONS_PER_ROUND,
    balance_leaders,
    elect_unclean_leaders,
)
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.partitions.partition import NO_LEADER, RECOVERING
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from tests.controller.controller_harness import NODE_ID
from tests.controller.topic_cluster import TopicCluster, changes, new_topic

UNCLEAN = "unclean.leader.election.enable"


def test_leaders_go_back_to_preferred_replicas_that_are_in_sync() -> None:
    cluster = TopicCluster(2, 3, 4)
    cluster.register(0)
    cluster.register(1)
    foo = cluster.create_topic("foo", [1, 2, 3], [2, 3, 4], [0, 2, 1])
    assert balance_leaders(cluster.state, cluster.context()).records == []
    cluster.unfence(0, 1)
    assert balance_leaders(cluster.state, cluster.context()).records == []
    for index, isr in ((0, (1, 2, 3)), (2, (0, 2, 1))):
        cluster.replay([(PartitionChangeRecord(partition_id=index, topic_id=foo, isr=isr), 2)])
    done = balance_leaders(cluster.state, cluster.context())
    assert changes(done.records) == [
        PartitionChangeRecord(partition_id=0, topic_id=foo, leader=1),
        PartitionChangeRecord(partition_id=2, topic_id=foo, leader=0),
    ]
    assert not done.more
    cluster.replay(done.records)
    assert cluster.metadata.partitions.preferred_imbalanced() == []
    assert balance_leaders(cluster.state, cluster.context()).records == []


def test_a_round_makes_a_thousand_elections_and_says_that_there_are_more() -> None:
    cluster = TopicCluster(0, 1)
    total = 2 * MAX_ELECTIONS_PER_ROUND + 10
    (created,) = cluster.create(new_topic("foo", partitions=2 * total, factor=2))
    foo = created.topic_id
    cluster.fence(0)
    cluster.unfence(0)
    assert len(cluster.metadata.partitions.preferred_imbalanced()) == total
    for index in range(2 * total):
        replicas = cluster.partition(foo, index).replicas
        cluster.replay([(PartitionChangeRecord(partition_id=index, topic_id=foo, isr=replicas), 2)])
    rounds = []
    for _ in range(3):
        done = balance_leaders(cluster.state, cluster.context())
        cluster.replay(done.records)
        rounds.append((len(done.records), done.more))
    assert rounds == [(MAX_ELECTIONS_PER_ROUND, True), (MAX_ELECTIONS_PER_ROUND, True), (10, False)]
    assert cluster.metadata.partitions.count_led_by(0) == total


@pytest.mark.parametrize("place", ["nowhere", "cluster", "node", "topic"])
def test_unclean_elections_where_a_configuration_allows_them(place: str) -> None:
    cluster = TopicCluster(0, 1, 2, 3, 4)
    foo = cluster.create_topic("foo", [1, 2, 4], [1, 3, 4], [0, 2, 4])
    cluster.fence(0, 1, 2, 3, 4)
    cluster.unfence(2)
    for index in range(3):
        assert cluster.leader_and_isr(foo, index) == (NO_LEADER, (4,))
    resource = {
        "cluster": (ResourceType.BROKER, ""),
        "node": (ResourceType.BROKER, str(NODE_ID)),
        "topic": (ResourceType.TOPIC, "foo"),
    }.get(place)
    if resource is not None:
        cluster.set_config(*resource, UNCLEAN, "true")
    done = elect_unclean_leaders(cluster.state, cluster.context())
    assert not done.more
    cluster.replay(done.records)
    if place == "nowhere":
        assert done.records == []
        return
    for index in (0, 2):
        assert cluster.leader_and_isr(foo, index) == (2, (2,))
        assert cluster.partition(foo, index).leader_recovery_state == RECOVERING
    assert cluster.leader_and_isr(foo, 1) == (NO_LEADER, (4,))
    assert elect_unclean_leaders(cluster.state, cluster.context()).records == []


def test_unclean_elections_are_limited_too() -> None:
    cluster = TopicCluster(0, 1)
    cluster.create(new_topic("foo", partitions=MAX_ELECTIONS_PER_ROUND + 1, factor=2))
    cluster.fence(0, 1)
    cluster.unfence(0)
    cluster.set_config(ResourceType.TOPIC, "foo", UNCLEAN, "true")
    done = elect_unclean_leaders(cluster.state, cluster.context())
    assert (len(done.records), done.more) == (MAX_ELECTIONS_PER_ROUND, True)
    cluster.replay(done.records)
    done = elect_unclean_leaders(cluster.state, cluster.context())
    assert (len(done.records), done.more) == (1, False)
