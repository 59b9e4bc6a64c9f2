"""A cluster with brokers and topics, for tests of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kraft_wire.controller.brokers import broker_changes, unregister_broker
from kraft_wire.controller.brokers.broker_changes import BrokerChange
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.sessions import BrokerHeard
from kraft_wire.controller.decision.work import Work
from kraft_wire.controller.partitions.departure import Departure
from kraft_wire.controller.topics import create_topics
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.partitions.partition import Partition, PartitionRef
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kraft_wire.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kraft_wire.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from kraft_wire.protocol.uuid import Uuid
from tests.controller.controller_harness import LATEST, Harness

ELR_FEATURE = "eligible.leader.replicas.version"
BEFORE_DIRECTORIES = 16
BEFORE_ELR = 17


def new_topic(name: str, *, partitions: int = 1, factor: int = 1) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)


def assigned_topic(name: str, assignments: Mapping[int, Sequence[int]]) -> CreatableTopic:
    """Return a request for a topic with these brokers for each partition."""
    return CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreatableReplicaAssignment(index, tuple(ids)) for index, ids in assignments.items()],
    )


def changes(records: Iterable[VersionedRecord]) -> list[PartitionChangeRecord]:
    """Return the PartitionChangeRecords among records."""
    return [record for record, _ in records if isinstance(record, PartitionChangeRecord)]


class TopicCluster(Harness):
    """Active brokers with one log directory each, and topics on them."""

    def __init__(
        self,
        *brokers: int,
        level: int = LATEST,
        elr: bool = False,
        static_configs: Mapping[str, str] | None = None,
        **settings: object,
    ) -> None:
        super().__init__(level, {ELR_FEATURE: 1 if elr else 0}, static_configs)
        self.state.settings = msgspec.structs.replace(self.state.settings, **settings)
        self.add_brokers(*brokers)

    def create(
        self, *topics: CreatableTopic, version: int = 7, validate_only: bool = False
    ) -> list[CreatableTopicResult]:
        request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
        return self.run(create_topics, request, version, CreateTopicsResponse).topics

    def create_topic(self, name: str, *assignments: Sequence[int]) -> Uuid:
        """Create a topic with these replicas. The first active broker of each partition leads."""
        (result,) = self.create(assigned_topic(name, dict(enumerate(assignments))))
        assert result.error_code == ErrorCode.NONE, result.error_message
        return result.topic_id

    def partition(self, topic_id: Uuid, index: int = 0) -> Partition:
        partition = self.metadata.partitions.get(topic_id, index)
        assert partition is not None
        return partition

    def leader_and_isr(self, topic_id: Uuid, index: int = 0) -> tuple[int, tuple[int, ...]]:
        partition = self.partition(topic_id, index)
        return partition.leader, partition.isr

    def led_by(self, broker_id: int) -> set[PartitionRef]:
        return set(self.metadata.partitions.led_by(broker_id))

    def set_config(self, resource_type: ResourceType, name: str, key: str, value: str) -> None:
        record = ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)
        self.replay([(record, 0)])

    def set_min_isr(self, topic: str, min_isr: int) -> None:
        self.set_config(ResourceType.TOPIC, topic, "min.insync.replicas", str(min_isr))

    def fence(self, *broker_ids: int) -> None:
        """Fence brokers one after the other."""
        for broker_id in broker_ids:
            self._make(broker_changes.fence(self.state, self.metadata.brokers[broker_id], self.context()))

    def unfence(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self._make(broker_changes.unfence(self.state, self.metadata.brokers[broker_id], self.context()))

    def begin_shutdown(self, broker_id: int) -> None:
        broker = self.metadata.brokers[broker_id]
        change = broker_changes.shut_down_gradually(self.state, broker, self.context())
        self._make(change)
        heard = BrokerHeard(broker_id, broker.epoch, -1, self.context().monotonic_ms)
        self.state.sessions.apply([heard, *change.session_changes])

    def _make(self, change: BrokerChange) -> None:
        """Make a change, in as many steps as it takes."""
        self.replay(change.records)
        self.finish(change.works)

    def finish(self, works: Iterable[Work]) -> list[int]:
        """Do what is left of works, one after the other. Returns the number of records of each piece."""
        counts = []
        for work in works:
            is_last = False
            while not is_last:
                piece = work.decide(self.state, self.context())
                self.replay(piece.records)
                self.state.sessions.apply(piece.session_changes)
                counts.append(len(piece.records))
                is_last = piece.is_last
        return counts

    def unregister(self, broker_id: int) -> None:
        self.run(unregister_broker, UnregisterBrokerRequest(broker_id), 0, UnregisterBrokerResponse)

    def restart_uncleanly(self, broker_id: int) -> None:
        """Change the broker's partitions as for a registration after an unclean stop."""
        self.replay(Departure(broker_id, forgets=True).next_slice(self.state).records)

    def cordon(self, broker_id: int) -> None:
        """Cordon all log directories of the broker."""
        broker = self.metadata.brokers[broker_id]
        record = BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=broker.epoch, cordoned_log_dirs=broker.directories
        )
        self.replay([(record, 3)])
