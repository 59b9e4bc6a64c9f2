"""The steps of a script, but for those about the quorum.

A step is a value that can be written as JSON, so that a script that fails can be kept and played again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from compat.judges.behaviour.known import Known
from compat.judges.behaviour.quorum_steps import QuorumStep
from compat.judges.behaviour.step import TIMEOUT_MS, Place, Replicas, Step, directory, uuid_of
from kraft_wire.metadata.features.supported import supported_ranges
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import alter_client_quotas_request as quotas
from kraft_wire.protocol.messages import alter_configs_request as legacy
from kraft_wire.protocol.messages import alter_partition_reassignments_request as reassigned
from kraft_wire.protocol.messages import alter_partition_request as altered
from kraft_wire.protocol.messages import alter_user_scram_credentials_request as scram
from kraft_wire.protocol.messages import assign_replicas_to_dirs_request as assigned
from kraft_wire.protocol.messages import broker_registration_request as registered
from kraft_wire.protocol.messages import create_partitions_request as grown
from kraft_wire.protocol.messages import create_topics_request as created
from kraft_wire.protocol.messages import delete_topics_request as deleted
from kraft_wire.protocol.messages import describe_configs_request as described
from kraft_wire.protocol.messages import elect_leaders_request as elected
from kraft_wire.protocol.messages import incremental_alter_configs_request as incremental
from kraft_wire.protocol.messages import list_partition_reassignments_request as listed
from kraft_wire.protocol.messages import update_features_request as features
from kraft_wire.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.create_delegation_token_request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from kraft_wire.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kraft_wire.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kraft_wire.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kraft_wire.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraft_wire.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraft_wire.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kraft_wire.protocol.messages.unregister_controller_request import UnregisterControllerRequest

CAUGHT_UP: Final = 2**40
FIRST_WITH_OWNER: Final = 3
"""Since this version of CreateDelegationToken the owner is named."""
CONTROLLER_LISTENER: Final = 2
"""DescribeCluster's endpoint type of controllers."""


# Brokers.


class Register(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """A broker registers, as its nth ``incarnation``. It lacks the feature ``without``, and knows
    metadata.version up to ``most``."""

    broker: int
    incarnation: int = 1
    dirs: tuple[int, ...] = (0,)
    dirs_of: int | None = None
    rack: str | None = None
    previous: Literal["none", "last", "wrong"] = "none"
    without: str = ""
    most: int | None = None
    wrong_cluster: bool = False
    zookeeper: bool = False

    def message(self, known: Known) -> Message:
        ranges = {name: bounds for name, bounds in supported_ranges().items() if name != self.without}
        if self.most is not None and "metadata.version" in ranges:
            ranges["metadata.version"] = (ranges["metadata.version"][0], self.most)
        owner = self.broker if self.dirs_of is None else self.dirs_of
        last = known.broker_epoch(self.broker)
        return registered.BrokerRegistrationRequest(
            broker_id=self.broker,
            cluster_id="another" if self.wrong_cluster else known.cluster_id,
            incarnation_id=uuid_of(2, self.broker, self.incarnation),
            listeners=[registered.Listener("PLAINTEXT", f"broker-{self.broker}", 9092, 0)],
            features=[registered.Feature(name, low, high) for name, (low, high) in ranges.items()],
            rack=self.rack,
            is_migrating_zk_broker=self.zookeeper,
            log_dirs=tuple(directory(owner, number) for number in self.dirs),
            previous_broker_epoch={"none": -1, "last": last, "wrong": last + 1}[self.previous],
        )


class Beat(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """A broker's heartbeat: with the epoch of the registration before the last one if it ``is_stale``."""

    broker: int
    fence: bool = False
    stop: bool = False
    is_behind: bool = False
    is_stale: bool = False
    offline: tuple[int, ...] = ()
    cordoned: tuple[int, ...] | None = None

    def message(self, known: Known) -> Message:
        cordoned = self.cordoned
        return BrokerHeartbeatRequest(
            broker_id=self.broker,
            broker_epoch=known.broker_epoch(self.broker, back=int(self.is_stale)),
            current_metadata_offset=0 if self.is_behind else CAUGHT_UP,
            want_fence=self.fence,
            want_shut_down=self.stop,
            offline_log_dirs=tuple(directory(self.broker, number) for number in self.offline),
            cordoned_log_dirs=None
            if cordoned is None
            else tuple(directory(self.broker, n) for n in cordoned),
        )


class Unregister(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Remove a broker's registration."""

    broker: int

    def message(self, known: Known) -> Message:
        return UnregisterBrokerRequest(self.broker)


class UnregisterController(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Remove a controller's registration."""

    controller: int

    def message(self, known: Known) -> Message:
        return UnregisterControllerRequest(self.controller)


class AllocateProducerIds(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """A broker asks for a block of producer ids."""

    broker: int
    is_stale: bool = False

    def message(self, known: Known) -> Message:
        return AllocateProducerIdsRequest(
            self.broker, known.broker_epoch(self.broker, back=int(self.is_stale))
        )


# Topics.


class NewTopic(msgspec.Struct, frozen=True, omit_defaults=True):
    """A topic to be created, with the brokers of each partition."""

    name: str
    assignments: tuple[Replicas, ...] = ()
    partitions: int = -1
    factor: int = -1
    configs: tuple[tuple[str, str | None], ...] = ()
    first_index: int = 0

    def creatable(self) -> created.CreatableTopic:
        return created.CreatableTopic(
            name=self.name,
            num_partitions=self.partitions,
            replication_factor=self.factor,
            assignments=[
                created.CreatableReplicaAssignment(index, replicas)
                for index, replicas in enumerate(self.assignments, self.first_index)
            ],
            configs=[created.CreatableTopicConfig(key, value) for key, value in self.configs],
        )


class CreateTopics(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Create topics."""

    topics: tuple[NewTopic, ...]
    validate_only: bool = False
    timeout_ms: int = TIMEOUT_MS

    @property
    def is_placed_by_chance(self) -> bool:
        """Whether the controller chooses brokers, if nothing is wrong."""
        return any(not topic.assignments for topic in self.topics)

    def message(self, known: Known) -> Message:
        creatable = [topic.creatable() for topic in self.topics]
        return created.CreateTopicsRequest(creatable, self.timeout_ms, self.validate_only)


class DeleteTopics(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Delete topics by name, or ``by_id``, which needs version 6."""

    names: tuple[str, ...]
    by_id: tuple[str, ...] = ()
    timeout_ms: int = TIMEOUT_MS

    def message(self, known: Known) -> Message:
        if self.version is not None and self.version < 6:
            return deleted.DeleteTopicsRequest([], self.names, self.timeout_ms)
        states = [deleted.DeleteTopicState(name) for name in self.names]
        states += [deleted.DeleteTopicState(None, known.topic_id(name)) for name in self.by_id]
        return deleted.DeleteTopicsRequest(states, timeout_ms=self.timeout_ms)


class CreatePartitions(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Add partitions to a topic. Without ``assignments`` the controller chooses brokers."""

    topic: str
    count: int
    assignments: tuple[Replicas, ...] | None = None
    validate_only: bool = False
    timeout_ms: int = TIMEOUT_MS

    def message(self, known: Known) -> Message:
        chosen = self.assignments
        given = None if chosen is None else [grown.CreatePartitionsAssignment(each) for each in chosen]
        topic = grown.CreatePartitionsTopic(self.topic, self.count, given)
        return grown.CreatePartitionsRequest([topic], self.timeout_ms, self.validate_only)


# Partitions.


class AlterPartition(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """The leader of a partition changes its ISR. Epochs are off by so much. ``stranger`` sends it instead of
    the leader. The members of the ISR are told with their epochs, or without (``is_unsure``)."""

    topic: str
    partition: int
    isr: Replicas
    leader_epoch: int = 0
    partition_epoch: int = 0
    recovered: bool = True
    stranger: int | None = None
    is_stale: bool = False
    is_unsure: bool = False
    wrong_id: bool = False

    def message(self, known: Known) -> Message:
        found = known.partition(self.topic, self.partition)
        leader, leader_epoch, epoch = (
            (0, 0, 0) if found is None else (found.leader, found.leader_epoch, found.partition_epoch)
        )
        sender = leader if self.stranger is None else self.stranger
        members = [
            altered.BrokerState(member, -1 if self.is_unsure else known.broker_epoch(member))
            for member in self.isr
        ]
        has_epochs = self.version is None or self.version >= 3
        data = altered.PartitionData(
            partition_index=self.partition,
            leader_epoch=leader_epoch + self.leader_epoch,
            new_isr=() if has_epochs else self.isr,
            new_isr_with_epochs=members if has_epochs else [],
            leader_recovery_state=0 if self.recovered else 1,
            partition_epoch=epoch + self.partition_epoch,
        )
        topic_id = uuid_of(3, 1) if self.wrong_id else known.topic_id(self.topic)
        return altered.AlterPartitionRequest(
            broker_id=sender,
            broker_epoch=known.broker_epoch(sender, back=int(self.is_stale)),
            topics=[altered.TopicData(topic_id, [data])],
        )


class ElectLeaders(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Elect leaders: preferred ones, or any replica (``unclean``). None is all partitions."""

    partitions: tuple[Place, ...] | None
    unclean: bool = False
    timeout_ms: int = TIMEOUT_MS

    def message(self, known: Known) -> Message:
        chosen = self.partitions
        topics = (
            None
            if chosen is None
            else [elected.TopicPartitions(topic, indexes) for topic, indexes in _by_topic(chosen).items()]
        )
        return elected.ElectLeadersRequest(int(self.unclean), topics, self.timeout_ms)


class Move(msgspec.Struct, frozen=True, omit_defaults=True):
    """The replicas that a partition is to have; None cancels."""

    topic: str
    partition: int
    replicas: Replicas | None


class Reassign(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Reassign partitions."""

    moves: tuple[Move, ...]
    keeps_factor: bool = False
    timeout_ms: int = TIMEOUT_MS

    def message(self, known: Known) -> Message:
        topics: dict[str, list[reassigned.ReassignablePartition]] = {}
        for move in self.moves:
            partition = reassigned.ReassignablePartition(move.partition, move.replicas)
            topics.setdefault(move.topic, []).append(partition)
        return reassigned.AlterPartitionReassignmentsRequest(
            self.timeout_ms,
            not self.keeps_factor,
            [reassigned.ReassignableTopic(topic, partitions) for topic, partitions in topics.items()],
        )


class ListReassignments(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """List the reassignments of some partitions, or all."""

    partitions: tuple[Place, ...] | None = None

    def message(self, known: Known) -> Message:
        chosen = self.partitions
        topics = (
            None
            if chosen is None
            else [
                listed.ListPartitionReassignmentsTopics(topic, indexes)
                for topic, indexes in _by_topic(chosen).items()
            ]
        )
        return listed.ListPartitionReassignmentsRequest(TIMEOUT_MS, topics)


class Assign(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """A broker says in which of its directories a replica is."""

    broker: int
    topic: str
    partition: int
    dir: int
    is_stale: bool = False

    def message(self, known: Known) -> Message:
        topic = assigned.TopicData(known.topic_id(self.topic), [assigned.PartitionData(self.partition)])
        return assigned.AssignReplicasToDirsRequest(
            self.broker,
            known.broker_epoch(self.broker, back=int(self.is_stale)),
            [assigned.DirectoryData(directory(self.broker, self.dir), [topic])],
        )


def _by_topic(places: Sequence[Place]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for topic, index in places:
        found[topic] = (*found.get(topic, ()), index)
    return found


# Configurations and clients.


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change of a key: SET 0, DELETE 1, APPEND 2, SUBTRACT 3."""

    key: str
    operation: int
    value: str | None


class AlterConfigs(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Change some keys of a resource."""

    kind: int
    name: str
    changes: tuple[Change, ...]
    validate_only: bool = False

    def message(self, known: Known) -> Message:
        changes = [incremental.AlterableConfig(each.key, each.operation, each.value) for each in self.changes]
        resource = incremental.AlterConfigsResource(self.kind, self.name, changes)
        return incremental.IncrementalAlterConfigsRequest([resource], self.validate_only)


class ReplaceConfigs(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Give a resource exactly these values."""

    kind: int
    name: str
    values: tuple[tuple[str, str], ...]
    validate_only: bool = False

    def message(self, known: Known) -> Message:
        values = [legacy.AlterableConfig(key, value) for key, value in self.values]
        resource = legacy.AlterConfigsResource(self.kind, self.name, values)
        return legacy.AlterConfigsRequest([resource], self.validate_only)


class DescribeConfigs(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Describe the keys of a resource."""

    kind: int
    name: str
    keys: tuple[str, ...] | None = None
    synonyms: bool = False
    documentation: bool = False

    def message(self, known: Known) -> Message:
        resource = described.DescribeConfigsResource(self.kind, self.name, self.keys)
        return described.DescribeConfigsRequest([resource], self.synonyms, self.documentation)


class AlterQuotas(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Set (or, with None, remove) quotas of an entity."""

    entity: tuple[tuple[str, str | None], ...]
    values: tuple[tuple[str, float | None], ...]
    validate_only: bool = False

    def message(self, known: Known) -> Message:
        entry = quotas.EntryData(
            [quotas.EntityData(kind, name) for kind, name in self.entity],
            [quotas.OpData(key, value or 0.0, remove=value is None) for key, value in self.values],
        )
        return quotas.AlterClientQuotasRequest([entry], self.validate_only)


class AlterScram(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Set (mechanism, iterations) or delete (mechanism) credentials of users."""

    upsertions: tuple[tuple[str, int, int], ...] = ()
    deletions: tuple[tuple[str, int], ...] = ()

    def message(self, known: Known) -> Message:
        return scram.AlterUserScramCredentialsRequest(
            [scram.ScramCredentialDeletion(name, mechanism) for name, mechanism in self.deletions],
            [
                scram.ScramCredentialUpsertion(name, mechanism, iterations, b"salt", b"salted password")
                for name, mechanism, iterations in self.upsertions
            ],
        )


class DescribeScram(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Ask for a user's credentials. Java's controller never answers a request for those of all users."""

    def message(self, known: Known) -> Message:
        return DescribeUserScramCredentialsRequest([UserName("ann")])


class CreateToken(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Make a delegation token for the user, or for another owner."""

    owner: str | None = None
    renewers: tuple[str, ...] = ()
    lifetime_ms: int = -1

    def message(self, known: Known) -> Message:
        renewers = [CreatableRenewers("User", name) for name in self.renewers]
        if self.version is not None and self.version < FIRST_WITH_OWNER:
            return CreateDelegationTokenRequest(renewers=renewers, max_lifetime_ms=self.lifetime_ms)
        return CreateDelegationTokenRequest(
            owner_principal_type=None if self.owner is None else "User",
            owner_principal_name=self.owner,
            renewers=renewers,
            max_lifetime_ms=self.lifetime_ms,
        )


class RenewToken(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Renew the token of a number."""

    token: int
    period_ms: int = -1

    def message(self, known: Known) -> Message:
        return RenewDelegationTokenRequest(known.hmac(self.token), self.period_ms)


class ExpireToken(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Expire the token of a number, at once with a negative period."""

    token: int
    period_ms: int = -1

    def message(self, known: Known) -> Message:
        return ExpireDelegationTokenRequest(known.hmac(self.token), self.period_ms)


class DescribeTokens(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Ask for all tokens."""

    def message(self, known: Known) -> Message:
        return DescribeDelegationTokenRequest(None)


# The cluster.


class UpdateFeatures(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Set levels of features: upgrade 1, safe downgrade 2, unsafe downgrade 3."""

    updates: tuple[tuple[str, int, int], ...]
    validate_only: bool = False

    def message(self, known: Known) -> Message:
        is_first = self.version == 0
        keys = [
            features.FeatureUpdateKey(name, level, is_first and kind > 1, 1 if is_first else kind)
            for name, level, kind in self.updates
        ]
        return features.UpdateFeaturesRequest(TIMEOUT_MS, keys, self.validate_only and not is_first)


class DescribeCluster(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Ask for the controllers."""

    of_brokers: bool = False

    def message(self, known: Known) -> Message:
        kind = 1 if self.of_brokers or self.version == 0 else CONTROLLER_LISTENER
        return DescribeClusterRequest(endpoint_type=kind)


class ApiVersions(Step, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """Ask for the APIs and features."""

    name: str = "judge"

    def message(self, known: Known) -> Message:
        return ApiVersionsRequest(client_software_name=self.name, client_software_version="1")


AnyStep = (
    Register
    | Beat
    | Unregister
    | UnregisterController
    | AllocateProducerIds
    | CreateTopics
    | DeleteTopics
    | CreatePartitions
    | AlterPartition
    | ElectLeaders
    | Reassign
    | ListReassignments
    | Assign
    | AlterConfigs
    | ReplaceConfigs
    | DescribeConfigs
    | AlterQuotas
    | AlterScram
    | CreateToken
    | RenewToken
    | ExpireToken
    | UpdateFeatures
    | DescribeCluster
    | DescribeScram
    | DescribeTokens
    | ApiVersions
    | QuorumStep
)
Script = tuple[AnyStep, ...]


def text_of(script: Sequence[AnyStep]) -> str:
    """Return a script with a step in each line."""
    return "".join(msgspec.json.encode(step).decode() + "\n" for step in script)


def script_of(text: str) -> Script:
    """Read what ``text_of`` has written."""
    return tuple(msgspec.json.decode(line, type=AnyStep) for line in text.splitlines() if line.strip())
