"""Known bugs of Kafka that concern brokers and replicas."""

from __future__ import annotations

import pytest

from kraft_wire.metadata.brokers import BrokerRegistration
from kraft_wire.metadata.partitions.partition import Partition, PartitionRef
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraft_wire.protocol.messages.alter_partition_response import AlterPartitionResponse
from kraft_wire.sim.population.brokers import SimBroker
from kraft_wire.sim.population.population import Population
from kraft_wire.sim.scheduler import MS
from tests.sim.planted_controller_bugs import planted
from tests.sim.scenario import Scenario

SEEDS = (0, 2, 3)
FOR_EVER_US = 10**12


class BrokerScenario(Scenario):
    """Three controllers, three brokers whose replicas are all in sync, and a busy log."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, 3, controllers=True, brokers=3, proposals_per_second=50)
        self.with_leader()
        self.until(lambda: self.replicated is not None)
        self.chosen = self.chance.choice(list(self.everybody.brokers.values()))

    @property
    def everybody(self) -> Population:
        assert self.population is not None
        return self.population

    @property
    def replicated(self) -> PartitionRef | None:
        """Return a partition with three replicas, all of them in sync."""
        partitions = self.everybody.committed.state.partitions
        topics = self.everybody.committed.state.topics
        for topic in topics:
            for index, partition in partitions.indexed(topic.id):
                if len(partition.isr) == 3:
                    return PartitionRef(topic.id, index)
        return None

    def registered(self, broker: SimBroker) -> BrokerRegistration:
        return self.everybody.committed.state.brokers[broker.id]

    def fail_over(self) -> None:
        leader = self.leader
        leader.lose_power(self.chance)
        self.until(lambda: self.cluster.leader not in (None, leader))

    def partition(self, ref: PartitionRef) -> Partition:
        partition = self.everybody.committed.state.partitions.get(ref.topic_id, ref.index)
        assert partition is not None
        return partition

    def a_follower(self) -> tuple[PartitionRef, SimBroker]:
        """Return a follower of a partition that doesn't change any more, and the partition."""
        self.everybody.stop()
        self.run_for(1_000)
        self.until(lambda: self.replicated is not None)
        ref = self.replicated
        assert ref is not None
        partition = self.partition(ref)
        id = next(id for id in partition.isr if id != partition.leader)
        return ref, self.everybody.brokers[id]

    def propose_all(self, ref: PartitionRef, follower_id: int, believed_epoch: int) -> ErrorCode:
        """Let the leader propose all replicas as the ISR, with the broker epoch of one incarnation."""
        while True:
            partition = self.partition(ref)
            epochs = {id: self.everybody.committed.state.brokers[id].epoch for id in partition.replicas}
            epochs[follower_id] = believed_epoch
            code = self._propose(ref, partition, [BrokerState(id, epoch) for id, epoch in epochs.items()])
            if code is not ErrorCode.INVALID_UPDATE_VERSION:
                return code

    def _propose(self, ref: PartitionRef, partition: Partition, members: list[BrokerState]) -> ErrorCode:
        data = PartitionData(
            partition_index=ref.index,
            leader_epoch=partition.leader_epoch,
            new_isr_with_epochs=members,
            partition_epoch=partition.partition_epoch,
        )
        epoch = self.everybody.committed.state.brokers[partition.leader].epoch
        request = AlterPartitionRequest(partition.leader, epoch, [TopicData(ref.topic_id, [data])])
        answers: list[Message | None] = []
        self.everybody.clients.ask(partition.leader, self.leader.id, request, 3, answers.append)
        self.until(lambda: bool(answers))
        assert isinstance(answers[0], AlterPartitionResponse)
        return ErrorCode(answers[0].topics[0].partitions[0].error_code)


def _a_broker_dies_at_failover(seed: int) -> None:
    scenario = BrokerScenario(seed)
    scenario.everybody.stop()
    scenario.chosen.kill(FOR_EVER_US)
    scenario.fail_over()
    scenario.until(lambda: scenario.registered(scenario.chosen).fenced, 20_000)


@pytest.mark.parametrize("seed", SEEDS)
def test_kafka_18138_a_broker_that_dies_at_failover_is_fenced(seed: int) -> None:
    _a_broker_dies_at_failover(seed)
    with planted("a_silent_broker_is_not_noticed_after_failover"), pytest.raises(AssertionError):
        _a_broker_dies_at_failover(seed)


def _a_fenced_broker_comes_back_after_failover(seed: int) -> None:
    scenario = BrokerScenario(seed)
    broker = scenario.chosen
    broker.pause(60_000 * MS)
    scenario.until(lambda: scenario.registered(broker).fenced, 20_000)
    epoch = broker.epoch
    scenario.fail_over()
    broker.resume()
    scenario.until(lambda: not scenario.registered(broker).fenced, 10_000)
    assert scenario.registered(broker).epoch == epoch


@pytest.mark.parametrize("seed", SEEDS)
def test_kafka_13841_13959_a_fenced_broker_is_unfenced_after_failover_on_a_busy_log(seed: int) -> None:
    _a_fenced_broker_comes_back_after_failover(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_kafka_13916_a_fenced_replica_does_not_join_the_isr(seed: int) -> None:
    scenario = BrokerScenario(seed)
    ref, follower = scenario.a_follower()
    follower.pause(60_000 * MS)
    scenario.until(lambda: scenario.registered(follower).fenced, 20_000)
    epoch = scenario.registered(follower).epoch
    assert scenario.propose_all(ref, follower.id, epoch) is ErrorCode.INELIGIBLE_REPLICA
    assert follower.id not in scenario.partition(ref).isr


@pytest.mark.parametrize("seed", SEEDS)
def test_kafka_14617_a_replica_of_a_former_incarnation_does_not_join_the_isr(seed: int) -> None:
    scenario = BrokerScenario(seed)
    ref, follower = scenario.a_follower()
    former = scenario.registered(follower).epoch
    follower.kill(10 * MS)
    scenario.until(lambda: scenario.registered(follower).epoch > former, 20_000)
    scenario.until(lambda: not scenario.registered(follower).fenced, 20_000)
    assert scenario.propose_all(ref, follower.id, former) is ErrorCode.INELIGIBLE_REPLICA
    assert scenario.propose_all(ref, follower.id, scenario.registered(follower).epoch) is ErrorCode.NONE
    assert follower.id in scenario.partition(ref).isr
