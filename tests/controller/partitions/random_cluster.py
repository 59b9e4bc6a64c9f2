"""Random clusters in any state that records can bring about, with more rare states than real ones have."""

from __future__ import annotations

from random import Random

from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.partitions.partition import (
    DIRECTORY_LOST,
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    NO_LEADER,
)
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.uuid import Uuid
from tests.controller.controller_harness import LATEST, directory, uuid
from tests.controller.topic_cluster import TopicCluster

BROKERS = 6
BEFORE_3_6 = 11
BEFORE_DIRECTORIES = 16


class RandomCluster(TopicCluster):
    """Brokers of which some are fenced or shutting down, and partitions with any leader and ISR."""

    def __init__(self, random: Random, *, topics: int = 4, most_partitions: int = 12) -> None:
        self.random = random
        level = random.choice((LATEST, LATEST, LATEST, BEFORE_DIRECTORIES, BEFORE_3_6))
        super().__init__(level=level, elr=level == LATEST and random.random() < 0.5)
        # ELRs may be left from a time with the feature.
        self.had_elr = self.elr or (level == LATEST and random.random() < 0.1)
        for broker_id in range(BROKERS):
            self._register(broker_id)
        for number in range(random.randint(1, topics)):
            self._create(f"topic-{number}", uuid(number + 1), random.randint(1, most_partitions))

    def _register(self, broker_id: int) -> None:
        random = self.random
        self.register(
            broker_id, log_dirs=[directory(broker_id, number) for number in range(random.randint(1, 2))]
        )
        if random.random() < 0.8:
            self.unfence(broker_id)
        if random.random() < 0.15:
            epoch = self.metadata.brokers[broker_id].epoch
            change = BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=epoch, in_controlled_shutdown=1
            )
            self.replay([(change, 1)])

    def _create(self, name: str, topic_id: Uuid, count: int) -> None:
        random = self.random
        self.replay([(TopicRecord(name=name, topic_id=topic_id), 0)])
        if random.random() < 0.3:
            self.set_config(ResourceType.TOPIC, name, "unclean.leader.election.enable", "true")
        if random.random() < 0.5:
            self.set_min_isr(name, random.randint(1, 3))
        factor = random.randint(1, 4)
        for index in range(count):
            self.replay([(self._partition(topic_id, index, factor), 2)])

    def _partition(self, topic_id: Uuid, index: int, factor: int) -> PartitionRecord:
        random = self.random
        replicas = tuple(random.sample(range(BROKERS), factor))
        isr = tuple(random.sample(replicas, random.randint(0 if self.had_elr else 1, factor)))
        leader = random.choice((*isr, NO_LEADER))
        if random.random() < 0.1 and self.elr == self.had_elr:
            leader = random.choice(replicas)
        others = [replica for replica in replicas if replica not in isr]
        record = PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=replicas,
            isr=isr,
            leader=leader,
            leader_epoch=random.choice((0, 5, 2**31 - 2)) if random.random() < 0.05 else random.randint(0, 9),
            partition_epoch=random.randint(0, 9),
            directories=tuple(map(self._directory, replicas)),
        )
        if random.random() < 0.15:
            record.adding_replicas = (replicas[-1],)
        if random.random() < 0.1 and len(replicas) > 1:
            record.removing_replicas = (replicas[0],)
        if self.had_elr and random.random() < 0.5:
            record.eligible_leader_replicas = tuple(random.sample(others, random.randint(0, len(others))))
        if self.had_elr and random.random() < (0.5 if leader == NO_LEADER else 0.1):
            record.last_known_elr = tuple(random.sample(replicas, 1 if random.random() < 0.9 else factor))
        return record

    @property
    def elr(self) -> bool:
        return self.metadata.features.elr_enabled

    def _directory(self, broker_id: int) -> Uuid:
        chosen = self.random.random()
        if self.metadata.features.metadata_version <= BEFORE_DIRECTORIES:
            return DIRECTORY_MIGRATING
        if chosen < 0.1:
            return self.random.choice((DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, DIRECTORY_LOST))
        if chosen < 0.15:
            return directory(self.random.randrange(BROKERS), 7)
        return directory(broker_id, self.random.randint(0, 1))
