"""Give placements and elections their view of the cluster, computed once for each request."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from kraft_wire.configs.schema import MIN_INSYNC_REPLICAS, effective_topic_config, effective_topic_values
from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.partitions.partition_change import Election, Goal, Rules, partition_change
from kraft_wire.metadata.brokers import BrokerRegistration
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.features.metadata_version import directory_assignment_supported
from kraft_wire.metadata.partitions.partition import (
    DIRECTORY_MIGRATING,
    DIRECTORY_UNASSIGNED,
    Partition,
    PartitionRef,
)
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from kraft_wire.controller.partitions.directory_owners import DirectoryOwners

UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"


class UsableBroker(NamedTuple):
    """A broker that may get new replicas: not shutting down, and not with cordoned directories only."""

    id: int
    rack: str | None
    fenced: bool


def is_active(registration: BrokerRegistration) -> bool:
    """Whether a broker may lead partitions and be in ISRs."""
    return not registration.fenced and not registration.in_controlled_shutdown


def check_broker_epoch(state: ControllerState, broker_id: int, broker_epoch: int) -> BrokerRegistration:
    """Return the registration of a broker.

    Raises ApiError(STALE_BROKER_EPOCH) if it is not registered, or is registered with another epoch.
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

    ``unavailable`` brokers are about to leave and can't lead. ``arriving`` brokers are about to be unfenced.
    """

    def __init__(
        self, state: ControllerState, *, unavailable: Collection[int] = (), arriving: Collection[int] = ()
    ) -> None:
        self.state = state
        self.metadata_version = state.metadata.features.metadata_version
        self.elr_enabled = state.metadata.features.elr_enabled
        self.directories_supported = directory_assignment_supported(self.metadata_version)
        self._leaving = state.leaving_broker_ids
        active = {broker.id for broker in state.metadata.brokers.values() if is_active(broker)}
        self.active = frozenset(active.union(arriving).difference(unavailable, self._leaving))
        self._min_isr: dict[Uuid, int] = {}
        self._unclean_election: dict[Uuid, bool] = {}

    @cached_property
    def directory_owners(self) -> DirectoryOwners:
        """The brokers of the log directories that are online."""
        from kraft_wire.controller.partitions.directory_owners import DirectoryOwners  # needs numpy

        metadata = self.state.metadata
        return DirectoryOwners.of(metadata.brokers.values(), metadata.partitions.columns.directory_numbers)

    def usable_brokers(self) -> list[UsableBroker]:
        """Return the brokers that may get new replicas.

        A broker that has stopped may, as a fenced one: only its session says that it is still shutting down
        (BrokerHeartbeatManager.usableBrokers).
        """
        return [
            UsableBroker(broker.id, broker.rack, broker.fenced or broker.id in self._leaving)
            for broker in self.state.metadata.brokers.values()
            if not self.state.sessions.is_shutting_down(broker.id) and not broker.is_cordoned
        ]

    def default_directory(self, broker_id: int) -> Uuid:
        """Return the log directory that is recorded for a new replica on this broker."""
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
        """Whether the broker is active and the directory of its replica is online."""
        if broker_id not in self.active:
            return False
        directory = partition.directory_of(broker_id)
        if directory is None:
            return False
        return self.state.metadata.brokers[broker_id].has_online_directory(directory)

    def allows_unclean_election(self, topic_id: Uuid) -> bool:
        """Return the topic's unclean.leader.election.enable."""
        allowed = self._unclean_election.get(topic_id)
        if allowed is None:
            allowed = self._topic_config(topic_id, UNCLEAN_ELECTION).lower() == "true"
            self._unclean_election[topic_id] = allowed
        return allowed

    def min_isr(self, topic_id: Uuid) -> int:
        """Return the topic's min.insync.replicas, at most its replication factor."""
        min_isr = self._min_isr.get(topic_id)
        if min_isr is None:
            first = self.state.metadata.partitions.get(topic_id, 0)
            configured = int(self._topic_config(topic_id, MIN_INSYNC_REPLICAS))
            min_isr = configured if first is None else min(configured, len(first.replicas))
            self._min_isr[topic_id] = min_isr
        return min_isr

    def partition(self, ref: PartitionRef) -> Partition:
        """Return a partition that a query found."""
        partition = self.state.metadata.partitions.get(ref.topic_id, ref.index)
        if partition is None:
            raise LookupError(
                f"a query found partition {ref.index} of topic {ref.topic_id}, which does not exist"
            )
        return partition

    def topic_name(self, topic_id: Uuid) -> str:
        """Return the name of a topic that has partitions."""
        topic = self.state.metadata.topics.by_id(topic_id)
        if topic is None:
            raise LookupError(f"there are partitions of topic {topic_id}, but there is no such topic")
        return topic.name

    def change(self, ref: PartitionRef, partition: Partition, goal: Goal) -> VersionedRecord | None:
        """Return the record that takes a partition to ``goal``, or None if nothing changes."""
        return partition_change(ref, partition, goal, self._rules(ref, partition))

    def online_election(self, topic_id: Uuid) -> Election:
        """Return the kind of election for a topic when brokers come and go."""
        return Election.UNCLEAN if self.allows_unclean_election(topic_id) else Election.ONLINE

    def topic_values(self, topic_names: Sequence[str], key: str) -> list[str]:
        """Return a configuration value of many topics, most of which have no values of their own."""
        layers = self.state.config_layers
        own = layers.dynamic.with_values(ResourceType.TOPIC, topic_names)
        common = effective_topic_config(layers, "", key)
        if not own:
            return [common] * len(topic_names)
        values = dict(zip(own, effective_topic_values(layers, own, key), strict=True))
        return [values.get(name, common) for name in topic_names]

    def _topic_config(self, topic_id: Uuid, key: str) -> str:
        return effective_topic_config(self.state.config_layers, self.topic_name(topic_id), key)

    def _rules(self, ref: PartitionRef, partition: Partition) -> Rules:
        return Rules(
            can_lead=lambda broker_id: self.can_lead(partition, broker_id),
            default_directory=self.default_directory,
            metadata_version=self.metadata_version,
            elr_enabled=self.elr_enabled,
            min_isr=self.min_isr(ref.topic_id) if self.elr_enabled else 1,
        )
