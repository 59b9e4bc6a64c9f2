"""What placements and elections need to know of the cluster, gathered once a request."""

from __future__ import annotations

from collections.abc import Collection

from kraft_wire.controller.config_schema import effective_topic_config
from kraft_wire.controller.context import ControllerState, VersionedRecord
from kraft_wire.controller.partition_change import Election, Goal, Rules, partition_change
from kraft_wire.controller.placement import UsableBroker
from kraft_wire.metadata.brokers import BrokerRegistration
from kraft_wire.metadata.partition import (
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    Partition,
    PartitionRef,
)
from kraft_wire.metadata.version import directory_assignment_supported
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.uuid import Uuid

_ELR_FEATURE = "eligible.leader.replicas.version"


def is_active(registration: BrokerRegistration) -> bool:
    """Whether a broker may lead partitions and be in ISRs."""
    return not registration.fenced and not registration.in_controlled_shutdown


def check_broker_epoch(state: ControllerState, broker_id: int, broker_epoch: int) -> BrokerRegistration:
    """The registration of the broker that asks.

    Raises ApiError(STALE_BROKER_EPOCH) where it is not registered, or with another epoch.
    """
    registration = state.metadata.brokers.get(broker_id)
    if registration is None:
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} is not registered")
    if registration.epoch != broker_epoch:
        raise ApiError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"broker {broker_id} is registered with epoch {registration.epoch}, not {broker_epoch}",
        )
    return registration


class ClusterView:
    """The cluster as one request sees it.

    ``unavailable`` brokers are about to go: they can lead nothing. ``arriving`` ones are about to be
    unfenced.
    """

    def __init__(
        self, state: ControllerState, *, unavailable: Collection[int] = (), arriving: Collection[int] = ()
    ) -> None:
        self.state = state
        self.metadata_version = state.metadata.features.metadata_version
        self.elr_enabled = state.metadata.features.levels.get(_ELR_FEATURE, 0) >= 1
        self.directories_supported = directory_assignment_supported(self.metadata_version)
        active = {broker.id for broker in state.metadata.brokers.values() if is_active(broker)}
        self.active = frozenset(active.union(arriving).difference(unavailable))
        self._min_isr: dict[Uuid, int] = {}
        self._unclean_election: dict[Uuid, bool] = {}

    def usable_brokers(self) -> list[UsableBroker]:
        """The brokers that may get new replicas."""
        return [
            UsableBroker(broker.id, broker.rack, broker.fenced)
            for broker in self.state.metadata.brokers.values()
            if not broker.in_controlled_shutdown and broker.has_uncordoned_directory
        ]

    def default_directory(self, broker_id: int) -> Uuid:
        """The log directory that a new replica on this broker is recorded with."""
        if not self.directories_supported:
            return DIRECTORY_MIGRATING
        registration = self.state.metadata.brokers.get(broker_id)
        if registration is None:
            return DIRECTORY_UNASSIGNED
        directories = registration.directories
        if not directories:
            return DIRECTORY_MIGRATING
        return directories[0] if len(directories) == 1 else DIRECTORY_UNASSIGNED

    def can_lead(self, partition: Partition, broker_id: int) -> bool:
        """Whether the broker is active and its replica of the partition is in a directory that is online."""
        if broker_id not in self.active:
            return False
        directory = partition.directory_of(broker_id)
        if directory is None:
            return False
        return self.state.metadata.brokers[broker_id].has_online_directory(directory)

    def allows_unclean_election(self, topic_id: Uuid) -> bool:
        """The topic's unclean.leader.election.enable."""
        allowed = self._unclean_election.get(topic_id)
        if allowed is None:
            allowed = self._topic_config(topic_id, "unclean.leader.election.enable").lower() == "true"
            self._unclean_election[topic_id] = allowed
        return allowed

    def min_isr(self, topic_id: Uuid) -> int:
        """The topic's min.insync.replicas, at most its replication factor."""
        min_isr = self._min_isr.get(topic_id)
        if min_isr is None:
            first = self.state.metadata.partitions.get(topic_id, 0)
            configured = int(self._topic_config(topic_id, "min.insync.replicas"))
            min_isr = configured if first is None else min(configured, len(first.replicas))
            self._min_isr[topic_id] = min_isr
        return min_isr

    def partition(self, ref: PartitionRef) -> Partition:
        """The partition that a query found."""
        partition = self.state.metadata.partitions.get(ref.topic_id, ref.index)
        if partition is None:
            raise LookupError(
                f"a query found partition {ref.index} of topic {ref.topic_id}, which does not exist"
            )
        return partition

    def topic_name(self, topic_id: Uuid) -> str:
        """The name of a topic that has partitions."""
        topic = self.state.metadata.topics.by_id(topic_id)
        if topic is None:
            raise LookupError(f"there are partitions of topic {topic_id}, but there is no such topic")
        return topic.name

    def change(self, ref: PartitionRef, partition: Partition, goal: Goal) -> VersionedRecord | None:
        """The record that takes a partition to ``goal``, if anything is to change."""
        return partition_change(ref, partition, goal, self._rules(ref, partition))

    def online_election(self, topic_id: Uuid) -> Election:
        """How leaders are elected when brokers come and go."""
        return Election.UNCLEAN if self.allows_unclean_election(topic_id) else Election.ONLINE

    def _topic_config(self, topic_id: Uuid, key: str) -> str:
        return effective_topic_config(self.state, self.topic_name(topic_id), key)

    def _rules(self, ref: PartitionRef, partition: Partition) -> Rules:
        return Rules(
            can_lead=lambda broker_id: self.can_lead(partition, broker_id),
            default_directory=self.default_directory,
            metadata_version=self.metadata_version,
            elr_enabled=self.elr_enabled,
            min_isr=self.min_isr(ref.topic_id) if self.elr_enabled else 1,
        )
