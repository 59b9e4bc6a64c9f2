"""Write the state as the records of a snapshot, in the order in which Java writes them.

The finalized metadata.version decides on the records (org.apache.kafka.image.writer.ImageWriterOptions).
Within each kind the order is fixed, by name or by id, so that equal states give equal snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraft_wire.metadata.acls import Acl
from kraft_wire.metadata.brokers import BrokerRegistration
from kraft_wire.metadata.controllers import ControllerRegistration
from kraft_wire.metadata.errors import UnwritableMetadata
from kraft_wire.metadata.features import metadata_version
from kraft_wire.metadata.features.supported import level_records
from kraft_wire.metadata.partitions.partition import DIRECTORY_MIGRATING, Partition, PartitionRef
from kraft_wire.metadata.scram import ScramCredential
from kraft_wire.metadata.state import MetadataState
from kraft_wire.metadata.tokens import DelegationToken
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.access_control_entry_record import AccessControlEntryRecord
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.delegation_token_record import DelegationTokenRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.producer_ids_record import ProducerIdsRecord
from kraft_wire.protocol.messages.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from kraft_wire.protocol.messages.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from kraft_wire.protocol.uuid import Uuid

VersionedRecord = tuple[Message, int]


def snapshot_records(state: MetadataState) -> Iterator[VersionedRecord]:
    """Yield the records, with their versions, whose replay builds the same state.

    The state must not change before the iterator is exhausted. Raises UnwritableMetadata if the finalized
    metadata.version can't express something, if none is finalized, or if a metadata transaction is open.
    """
    level = state.features.metadata_version
    if level == 0:
        raise UnwritableMetadata("everything, since no metadata.version is finalized", "0")
    if state.in_transaction:
        raise UnwritableMetadata(
            "what the open metadata transaction may still undo", metadata_version.name_of(level)
        )
    yield from level_records(state.features.levels)
    yield from _registrations(state, level)
    yield from _topics(state, level)
    yield from _configs(state)
    yield from _quotas(state)
    if state.producer_ids.has_allocated:
        yield ProducerIdsRecord(-1, -1, state.producer_ids.next_producer_id), 0
    yield from _acls(state)
    yield from _scram(state, level)
    yield from _tokens(state, level)


def broker_record(broker: BrokerRegistration, level: int) -> VersionedRecord:
    """Return a broker's registration as one record of this metadata.version."""
    if broker.is_migrating_zk_broker:
        _require(
            metadata_version.migration_supported(level), "that a broker is migrating from ZooKeeper", level
        )
    if broker.directories:
        _require(
            metadata_version.directory_assignment_supported(level), "the log directories of a broker", level
        )
    if broker.cordoned_directories is not None:
        _require(
            metadata_version.cordoned_dirs_supported(level), "the cordoned log directories of a broker", level
        )
    record = RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            BrokerEndpoint(at.name, at.host, at.port, at.security_protocol) for at in broker.listeners
        ],
        features=[BrokerFeature(name, *broker.features[name]) for name in sorted(broker.features)],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=broker.directories,
        cordoned_log_dirs=broker.cordoned_directories,
    )
    return record, metadata_version.register_broker_record_version(level)


def controller_record(controller: ControllerRegistration, level: int) -> VersionedRecord:
    """Return a controller's registration as one record of this metadata.version."""
    _require(
        metadata_version.controller_registration_supported(level), "the registration of a controller", level
    )
    record = RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=[
            ControllerEndpoint(at.name, at.host, at.port, at.security_protocol) for at in controller.listeners
        ],
        features=[
            ControllerFeature(name, *controller.features[name]) for name in sorted(controller.features)
        ],
    )
    return record, metadata_version.register_controller_record_version(level)


def partition_record(
    ref: PartitionRef, partition: Partition, level: int, *, elr_enabled: bool
) -> VersionedRecord:
    """Return a partition as one record of this metadata.version. If ELR isn't finalized, its ELR is left
    out."""
    directories = partition.directories
    if not metadata_version.directory_assignment_supported(level):
        known = any(directory != DIRECTORY_MIGRATING for directory in directories)
        _require(not known, "the directories of a partition's replicas", level)
        directories = ()
    record = PartitionRecord(
        partition_id=ref.index,
        topic_id=ref.topic_id,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing_replicas,
        adding_replicas=partition.adding_replicas,
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=directories,
        eligible_leader_replicas=(partition.elr or None) if elr_enabled else None,
        last_known_elr=(partition.last_known_elr or None) if elr_enabled else None,
    )
    return record, metadata_version.partition_record_version(level)


def acl_record(acl_id: Uuid, acl: Acl) -> VersionedRecord:
    """Return an ACL as its record."""
    record = AccessControlEntryRecord(
        id=acl_id,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
    return record, 0


def scram_record(name: str, mechanism: int, secret: ScramCredential) -> VersionedRecord:
    """Return a user's credential for a mechanism as its record."""
    record = UserScramCredentialRecord(
        name, mechanism, secret.salt, secret.stored_key, secret.server_key, secret.iterations
    )
    return record, 0


def token_record(token: DelegationToken) -> VersionedRecord:
    """Return a delegation token as its record."""
    record = DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=token.renewers,
        issue_timestamp=token.issue_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        expiration_timestamp=token.expiration_timestamp_ms,
        token_id=token.token_id,
    )
    return record, 0


def _registrations(state: MetadataState, level: int) -> Iterator[VersionedRecord]:
    for _, broker in sorted(state.brokers.items()):
        yield broker_record(broker, level)
    for _, controller in sorted(state.controllers.items()):
        yield controller_record(controller, level)


def _topics(state: MetadataState, level: int) -> Iterator[VersionedRecord]:
    elr_enabled = state.features.elr_enabled
    for topic in sorted(state.topics, key=lambda topic: topic.name):
        yield TopicRecord(topic.name, topic.id), 0
        for index, partition in state.partitions.indexed(topic.id):
            yield partition_record(PartitionRef(topic.id, index), partition, level, elr_enabled=elr_enabled)


def _configs(state: MetadataState) -> Iterator[VersionedRecord]:
    for kind, name in sorted(state.configs.resources()):
        values = state.configs.get(kind, name)
        for key in sorted(values):
            yield ConfigRecord(kind, name, key, values[key]), 0


def _quotas(state: MetadataState) -> Iterator[VersionedRecord]:
    quotas = state.quotas.by_entity
    for entity in sorted(
        quotas, key=lambda entity: [(kind, name is None, name or "") for kind, name in entity]
    ):
        parts = [EntityData(kind, name) for kind, name in entity]
        for key in sorted(quotas[entity]):
            yield ClientQuotaRecord(parts, key, quotas[entity][key], False), 0


def _acls(state: MetadataState) -> Iterator[VersionedRecord]:
    for acl_id in sorted(state.acls.by_id):
        yield acl_record(acl_id, state.acls.by_id[acl_id])


def _scram(state: MetadataState, level: int) -> Iterator[VersionedRecord]:
    credentials = state.scram.by_user
    _require(not credentials or metadata_version.scram_supported(level), "SCRAM credentials", level)
    for name, mechanism in sorted(credentials, key=lambda key: (key[1], key[0])):
        yield scram_record(name, mechanism, credentials[name, mechanism])


def _tokens(state: MetadataState, level: int) -> Iterator[VersionedRecord]:
    tokens = state.tokens.by_id
    _require(not tokens or metadata_version.delegation_tokens_supported(level), "delegation tokens", level)
    for _, token in sorted(tokens.items()):
        yield token_record(token)


def _require(possible: bool, what: str, level: int) -> None:
    if not possible:
        raise UnwritableMetadata(what, metadata_version.name_of(level))
