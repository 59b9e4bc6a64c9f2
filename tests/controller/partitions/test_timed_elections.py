"""Periodic elections: the scenarios of Kafka's ReplicationControlManagerTest."""

from __future__ import annotations

import pytest

from kraft_wire.controller.decision.work import SliceLimits
from kraft_wire.controller.partitions.timed_elections import (
    balance_leaders,
    elect_unclean_leaders,
)
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.partitions.partition import NO_LEADER, RECOVERING
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from tests.controller.controller_harness import NODE_ID
from tests.controller.topic_cluster import TopicCluster, changes, new_topic
from tests.support.partition_queries import partitions_where

UNCLEAN = "unclean.leader.election.enable"


def test_leaders_go_back_to_preferred_replicas_that_are_in_sync() -> None:
    cluster = TopicCluster(2, 3, 4)
    cluster.register(0)
    cluster.register(1)
    foo = cluster.create_topic("foo", [1, 2, 3], [2, 3, 4], [0, 2, 1])
    assert not balance_leaders(cluster.state, cluster.context()).records
    cluster.unfence(0, 1)
    assert not balance_leaders(cluster.state, cluster.context()).records
    for index, isr in ((0, (1, 2, 3)), (2, (0, 2, 1))):
        cluster.replay([(PartitionChangeRecord(partition_id=index, topic_id=foo, isr=isr), 2)])
    done = balance_leaders(cluster.state, cluster.context())
    assert changes(done.records) == [
        PartitionChangeRecord(partition_id=0, topic_id=foo, leader=1),
        PartitionChangeRecord(partition_id=2, topic_id=foo, leader=0),
    ]
    assert not done.works
    cluster.replay(done.records)
    assert partitions_where(cluster.metadata, lambda one: one.leader != one.preferred_leader) == []
    assert not balance_leaders(cluster.state, cluster.context()).records


def test_many_elections_are_held_in_pieces() -> None:
    cluster = TopicCluster(0, 1)
    for _ in range(2):
        cluster.create(new_topic(f"foo-{_}", partitions=9_000, factor=2))
    cluster.fence(0)
    cluster.unfence(0)
    imbalanced = partitions_where(cluster.metadata, lambda one: one.leader != one.preferred_leader)
    for ref in imbalanced:
        record = PartitionChangeRecord(partition_id=ref.index, topic_id=ref.topic_id, isr=(0, 1))
        cluster.replay([(record, 2)])
    done = balance_leaders(cluster.state, cluster.context())
    cluster.replay(done.records)
    counts = [len(done.records), *cluster.finish(done.works)]
    assert sum(counts) == len(imbalanced) == 9_000 and len(counts) > 2
    assert partitions_where(cluster.metadata, lambda one: one.leader != one.preferred_leader) == []


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
    assert not done.works
    cluster.replay(done.records)
    if place == "nowhere":
        assert not done.records
        return
    for index in (0, 2):
        assert cluster.leader_and_isr(foo, index) == (2, (2,))
        assert cluster.partition(foo, index).leader_recovery_state == RECOVERING
    assert cluster.leader_and_isr(foo, 1) == (NO_LEADER, (4,))
    assert not elect_unclean_leaders(cluster.state, cluster.context()).records


def test_unclean_elections_are_held_in_pieces_too() -> None:
    cluster = TopicCluster(0, 1)
    cluster.state.slice_limits = SliceLimits(window_rows=20, few_changes=10)
    cluster.create(new_topic("foo", partitions=21, factor=2))
    cluster.fence(0, 1)
    cluster.unfence(0)
    cluster.set_config(ResourceType.TOPIC, "foo", UNCLEAN, "true")
    done = elect_unclean_leaders(cluster.state, cluster.context())
    (work,) = done.works
    assert len(done.records) == 20
    cluster.replay(done.records)
    cluster.state.in_work = [work.key]
    assert not elect_unclean_leaders(cluster.state, cluster.context()).records, "they are going on"
    piece = work.decide(cluster.state, cluster.context())
    assert (len(piece.records), piece.is_last) == (1, True)
