"""Changes of a broker's partitions: the scenarios of Kafka's ReplicationControlManagerTest."""

from __future__ import annotations

import pytest

from kraft_wire.controller.partitions.departure import Departure
from kraft_wire.controller.partitions.elections import Elections
from kraft_wire.controller.partitions.partition_change import Election
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.partitions.partition import NO_LEADER, RECOVERED, RECOVERING, PartitionRef
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from tests.controller.controller_harness import directory
from tests.controller.topic_cluster import TopicCluster, changes

UNCLEAN = "unclean.leader.election.enable"


def test_a_fenced_broker_leads_nothing_and_is_in_no_isr() -> None:
    cluster = TopicCluster(0, 1, 2, 3)
    foo = cluster.create_topic("foo", [0, 1, 2], [1, 2, 3], [2, 3, 0], [0, 2, 1])
    assert cluster.led_by(0) == {PartitionRef(foo, 0), PartitionRef(foo, 3)}
    records = Departure(0).next_slice(cluster.state).records
    assert changes(records) == [
        PartitionChangeRecord(partition_id=0, topic_id=foo, isr=(1, 2), leader=1),
        PartitionChangeRecord(partition_id=2, topic_id=foo, isr=(2, 3)),
        PartitionChangeRecord(partition_id=3, topic_id=foo, isr=(2, 1), leader=2),
    ]
    assert len(records) == 3
    cluster.fence(0)
    assert cluster.led_by(0) == set()
    assert cluster.metadata.partitions.with_isr_member(0) == []


def test_brokers_are_fenced_one_after_the_other() -> None:
    cluster = TopicCluster(0, 1, 2, 3, 4)
    foo = cluster.create_topic("foo", [1, 2, 3], [2, 3, 4], [0, 2, 1])
    cluster.fence(2, 3)
    assert cluster.leader_and_isr(foo, 0) == (1, (1,))
    assert cluster.leader_and_isr(foo, 1) == (4, (4,))
    assert cluster.leader_and_isr(foo, 2) == (0, (0, 1))


def test_the_last_member_stays_in_the_isr_without_leading_and_leads_when_it_is_back() -> None:
    cluster = TopicCluster(0, 1)
    foo = cluster.create_topic("foo", [0, 1])
    cluster.fence(1, 0)
    assert cluster.leader_and_isr(foo) == (NO_LEADER, (0,))
    cluster.unfence(1)
    assert cluster.leader_and_isr(foo) == (NO_LEADER, (0,))
    cluster.unfence(0)
    assert cluster.leader_and_isr(foo) == (0, (0,))
    assert cluster.partition(foo).leader_recovery_state == RECOVERED
    assert cluster.partition(foo).leader_epoch == 2


def test_before_3_6_every_smaller_isr_raises_the_leader_epoch() -> None:
    cluster = TopicCluster(0, 1, level=11)
    foo = cluster.create_topic("foo", [0, 1])
    cluster.fence(1)
    assert cluster.leader_and_isr(foo) == (0, (0,))
    assert cluster.partition(foo).leader_epoch == 1


def test_a_broker_that_shuts_down_hands_its_leaderships_over() -> None:
    cluster = TopicCluster(0, 1, 2)
    foo = cluster.create_topic("foo", [0, 1], [1, 0])
    alone = cluster.create_topic("alone", [0])
    cluster.begin_shutdown(0)
    assert cluster.leader_and_isr(foo, 0) == (1, (1,))
    assert cluster.leader_and_isr(foo, 1) == (1, (1,))
    assert cluster.leader_and_isr(alone) == (NO_LEADER, (0,))


def test_a_broker_that_shuts_down_is_no_refuge_for_the_partitions_of_another() -> None:
    cluster = TopicCluster(0, 1)
    foo = cluster.create_topic("foo", [0, 1])
    cluster.set_config(ResourceType.TOPIC, "foo", UNCLEAN, "true")
    cluster.begin_shutdown(1)
    cluster.fence(0)
    assert cluster.leader_and_isr(foo) == (NO_LEADER, (0,))


# Unclean elections


def test_where_it_is_allowed_a_replica_that_is_not_in_sync_leads_at_once() -> None:
    cluster = TopicCluster(0, 1, 2)
    foo = cluster.create_topic("foo", [0, 1, 2])
    cluster.set_config(ResourceType.TOPIC, "foo", UNCLEAN, "true")
    cluster.fence(1, 2)
    cluster.unfence(1)
    cluster.fence(0)
    assert cluster.leader_and_isr(foo) == (1, (1,))
    assert cluster.partition(foo).leader_recovery_state == RECOVERING


def test_a_broker_that_goes_is_not_elected_uncleanly_itself() -> None:
    cluster = TopicCluster(0, 1, static_configs={UNCLEAN: "true"})
    foo = cluster.create_topic("foo", [0, 1])
    cluster.fence(1, 0)
    assert cluster.leader_and_isr(foo) == (NO_LEADER, (0,))
    cluster.unfence(1)
    assert cluster.leader_and_isr(foo) == (1, (1,))


# Directories


def jbod() -> TopicCluster:
    """A cluster of broker 0 with two log directories and broker 1 with one."""
    cluster = TopicCluster(1)
    cluster.register(0, log_dirs=[directory(0, 0), directory(0, 1)])
    cluster.unfence(0)
    return cluster


def test_a_lost_directory_costs_the_partitions_in_it() -> None:
    cluster = jbod()
    foo = cluster.create_topic("foo", [0, 1], [0, 1], [0, 1])
    for index, chosen in enumerate([directory(0, 0), directory(0, 1), directory(0, 0)]):
        record = PartitionChangeRecord(partition_id=index, topic_id=foo, directories=(chosen, directory(1)))
        cluster.replay([(record, 2)])
    records = Departure(0, directories=[directory(0, 0)]).next_slice(cluster.state).records
    assert changes(records) == [
        PartitionChangeRecord(partition_id=0, topic_id=foo, isr=(1,), leader=1),
        PartitionChangeRecord(partition_id=2, topic_id=foo, isr=(1,), leader=1),
    ]
    assert not Departure(1, directories=[directory(0, 0)]).next_slice(cluster.state).records


def test_a_broker_is_not_elected_for_a_replica_in_a_directory_that_is_offline() -> None:
    cluster = jbod()
    foo = cluster.create_topic("foo", [0, 1], [0, 1])
    record = PartitionChangeRecord(
        partition_id=0, topic_id=foo, directories=(directory(0, 9), directory(1)), leader=1
    )
    cluster.replay([(record, 2)])
    cluster.fence(1)
    assert cluster.leader_and_isr(foo, 0) == (NO_LEADER, (0,))
    assert cluster.leader_and_isr(foo, 1) == (0, (0,))


# Eligible leader replicas


def with_elr(*brokers: int, min_isr: int) -> TopicCluster:
    cluster = TopicCluster(*brokers, elr=True)
    cluster.set_config(ResourceType.BROKER, "", "min.insync.replicas", str(min_isr))
    return cluster


def test_fenced_members_of_a_small_isr_become_eligible() -> None:
    cluster = with_elr(0, 1, 2, 3, min_isr=3)
    foo = cluster.create_topic("foo", [0, 1, 2, 3])
    cluster.fence(2)
    assert cluster.partition(foo).elr == ()
    cluster.fence(3)
    assert cluster.partition(foo).elr == (3,)
    cluster.fence(1)
    assert cluster.partition(foo).elr == (1, 3)
    cluster.unfence(1, 2, 3)
    assert cluster.partition(foo).elr == (1, 3)
    assert cluster.leader_and_isr(foo) == (0, (0,))


def test_an_isr_becomes_empty_and_the_last_leader_is_known() -> None:
    cluster = with_elr(0, 1, 2, min_isr=3)
    foo = cluster.create_topic("foo", [0, 1, 2])
    cluster.fence(1, 2, 0)
    partition = cluster.partition(foo)
    assert (partition.leader, partition.isr) == (NO_LEADER, ())
    assert partition.elr == (0, 1, 2)
    assert partition.last_known_elr == (0,)


def test_an_eligible_replica_leads_cleanly() -> None:
    cluster = with_elr(0, 1, 2, 3, min_isr=3)
    foo = cluster.create_topic("foo", [0, 1, 2, 3])
    cluster.fence(1, 2, 3)
    cluster.unfence(2)
    cluster.fence(0)
    partition = cluster.partition(foo)
    assert (partition.leader, partition.isr, partition.elr) == (2, (2,), (0, 3))
    assert partition.leader_recovery_state == RECOVERED
    assert partition.last_known_elr == ()


def test_the_minimum_is_at_most_the_replication_factor() -> None:
    cluster = with_elr(0, 1, min_isr=5)
    foo = cluster.create_topic("foo", [0, 1])
    cluster.fence(1)
    assert cluster.partition(foo).elr == (1,)
    cluster.replay([(PartitionChangeRecord(partition_id=0, topic_id=foo, isr=(0, 1)), 2)])
    cluster.unfence(1)
    cluster.fence(0)
    assert cluster.partition(foo).elr == (0,)


def test_an_unclean_restart_costs_the_place_in_the_elr() -> None:
    cluster = with_elr(0, 1, 2, 3, min_isr=3)
    foo = cluster.create_topic("foo", [0, 1, 2, 3])
    cluster.fence(1, 2, 3)
    assert cluster.partition(foo).elr == (2, 3)
    cluster.restart_uncleanly(3)
    assert cluster.partition(foo).elr == (2,)
    cluster.restart_uncleanly(0)
    partition = cluster.partition(foo)
    assert (partition.leader, partition.isr) == (NO_LEADER, ())
    assert (partition.elr, partition.last_known_elr) == ((2,), (0,))


def test_an_unregistered_broker_is_in_no_isr_and_leaves_the_elrs_when_it_comes_back() -> None:
    """It is known only then whether it has lost records."""
    cluster = with_elr(0, 1, 2, min_isr=3)
    foo = cluster.create_topic("foo", [0, 1, 2], [1, 0, 2])
    cluster.fence(2)
    assert cluster.partition(foo).elr == (2,)
    cluster.unregister(2)
    assert cluster.partition(foo).elr == (2,)
    cluster.unregister(1)
    for index in (0, 1):
        partition = cluster.partition(foo, index)
        assert (partition.leader, partition.isr, partition.elr) == (0, (0,), (1, 2))
        assert set(partition.replicas) == {0, 1, 2}
    for broker_id in (1, 2):
        cluster.register(broker_id, incarnation=2)
    assert cluster.partition(foo).elr == ()


def test_the_last_known_leader_takes_over_when_nothing_else_is_left() -> None:
    cluster = with_elr(0, 1, min_isr=1)
    foo = cluster.create_topic("foo", [0, 1])
    cluster.fence(1, 0)
    assert cluster.partition(foo).last_known_elr == (0,)
    cluster.restart_uncleanly(0)
    assert cluster.partition(foo).elr == ()
    cluster.unfence(1)
    assert cluster.partition(foo).leader == NO_LEADER
    cluster.unfence(0)
    partition = cluster.partition(foo)
    assert (partition.leader, partition.isr) == (0, (0,))
    assert partition.leader_recovery_state == RECOVERING
    assert partition.last_known_elr == ()


@pytest.mark.parametrize("elr", [False, True])
def test_a_broker_without_partitions_makes_no_records(elr: bool) -> None:
    cluster = TopicCluster(0, 1, elr=elr)
    cluster.create_topic("foo", [0])
    elections = Elections(Election.ONLINE, arriving=(1,)).next_slice(cluster.state)
    assert elections.is_complete and not elections.records
    for departure in (Departure(1), Departure(1, forgets=True), Departure(1, directories=[directory(1)])):
        changes = departure.next_slice(cluster.state)
        assert changes.is_complete and not changes.records
