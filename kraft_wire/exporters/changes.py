"""Say what each record changes: what it is about, as it was before the record and as it is after it.

Both have the JSON form of the record that would make it so: a PartitionChangeRecord is shown with the whole
partition as a PartitionRecord. A state of the metadata goes along with the reading for that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kraft_wire.exporters.records import ExportRecord
from kraft_wire.metadata.errors import RecordTooNew, ReplayError
from kraft_wire.metadata.features.metadata_version import LATEST_TESTING
from kraft_wire.metadata.partitions.partition import PartitionRef
from kraft_wire.metadata.snapshot import (
    VersionedRecord,
    acl_record,
    broker_record,
    controller_record,
    partition_record,
    scram_record,
    token_record,
)
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import DecodeError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.access_control_entry_record import AccessControlEntryRecord
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.delegation_token_record import DelegationTokenRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.fence_broker_record import FenceBrokerRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.producer_ids_record import ProducerIdsRecord
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.messages.register_controller_record import RegisterControllerRecord
from kraft_wire.protocol.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraft_wire.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.messages.unfence_broker_record import UnfenceBrokerRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.messages.unregister_controller_record import UnregisterControllerRecord
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord

LEVEL: Final = LATEST_TESTING
"""The metadata.version of the shown records: it can express everything."""

_Image = dict[str, Any] | None
_CANNOT_APPLY: Final = (RecordTooNew, ReplayError, DecodeError)


class Changes:
    """The state that goes along. ``load`` returns the state below an offset.

    A record that this release can't apply ends it: what follows has no before and after. The exporters begin
    anew after the upgrade.
    """

    def __init__(self, load: Callable[[int], MetadataState]) -> None:
        self._load = load
        self._state: MetadataState | None = None
        self._next_offset = -1
        self._is_lost = False

    def begin_at(self, offset: int) -> None:
        """Go to an offset at which a batch begins."""
        if self._next_offset == offset or self._is_lost:
            return
        try:
            self._state = self._load(offset)
        except _CANNOT_APPLY:
            self._lose()
        self._next_offset = offset

    def end_at(self, offset: int) -> None:
        """Note that all records below this offset, at which a batch ends, were applied."""
        self._next_offset = offset

    def apply(self, record: ExportRecord, *, is_wanted: bool) -> None:
        """Apply the next record of the log, and note in it what it changes if it ``is_wanted``."""
        self._next_offset = -1  # until the end of the batch
        if self._state is None:
            return
        message = record.message
        if message is None:
            self._lose()
            return
        kind = _KINDS.get(type(message)) if is_wanted else None
        before = None if kind is None else _shown(kind(self._state, message))
        try:
            self._state.replay(message, record.offset)
        except _CANNOT_APPLY:
            self._lose()
            return
        if kind is not None:
            record.note_change(before, _shown(kind(self._state, message)))

    def _lose(self) -> None:
        self._state, self._is_lost = None, True


def _shown(found: VersionedRecord | None) -> _Image:
    return None if found is None else found[0].to_json(found[1])


def _newest(message: Message | None) -> VersionedRecord | None:
    return None if message is None else (message, message.MAX_VERSION)


# Each returns what a record is about as the state has it now; None if the state doesn't have it.


def _topic(state: MetadataState, record: Any) -> VersionedRecord | None:
    topic = state.topics.by_id(record.topic_id)
    return _newest(None if topic is None else TopicRecord(topic.name, topic.id))


def _partition(state: MetadataState, record: Any) -> VersionedRecord | None:
    partition = state.partitions.get(record.topic_id, record.partition_id)
    if partition is None:
        return None
    return partition_record(
        PartitionRef(record.topic_id, record.partition_id), partition, LEVEL, elr_enabled=True
    )


def _config(state: MetadataState, record: Any) -> VersionedRecord | None:
    value = state.configs.value(record.resource_type, record.resource_name, record.name)
    if value is None:
        return None
    return _newest(ConfigRecord(record.resource_type, record.resource_name, record.name, value))


def _broker(state: MetadataState, record: Any) -> VersionedRecord | None:
    id = record.id if isinstance(record, FenceBrokerRecord | UnfenceBrokerRecord) else record.broker_id
    broker = state.brokers.get(id)
    return None if broker is None else broker_record(broker, LEVEL)


def _controller(state: MetadataState, record: Any) -> VersionedRecord | None:
    controller = state.controllers.get(record.controller_id)
    return None if controller is None else controller_record(controller, LEVEL)


def _feature(state: MetadataState, record: Any) -> VersionedRecord | None:
    level = state.features.levels.get(record.name)
    return _newest(None if level is None else FeatureLevelRecord(record.name, level))


def _quota(state: MetadataState, record: Any) -> VersionedRecord | None:
    names = {part.entity_type: part.entity_name for part in record.entity}
    values = state.quotas.by_entity.get(tuple(sorted(names.items())), {})
    if record.key not in values:
        return None
    return _newest(ClientQuotaRecord(record.entity, record.key, values[record.key], False))


def _acl(state: MetadataState, record: Any) -> VersionedRecord | None:
    acl = state.acls.by_id.get(record.id)
    return None if acl is None else acl_record(record.id, acl)


def _scram(state: MetadataState, record: Any) -> VersionedRecord | None:
    credential = state.scram.by_user.get((record.name, record.mechanism))
    return None if credential is None else scram_record(record.name, record.mechanism, credential)


def _token(state: MetadataState, record: Any) -> VersionedRecord | None:
    token = state.tokens.by_id.get(record.token_id)
    return None if token is None else token_record(token)


def _producer_ids(state: MetadataState, record: Any) -> VersionedRecord | None:
    ids = state.producer_ids
    return _newest(ProducerIdsRecord(-1, -1, ids.next_producer_id) if ids.has_allocated else None)


_KINDS: Final[dict[type[Message], Callable[[MetadataState, Any], VersionedRecord | None]]] = {
    TopicRecord: _topic,
    RemoveTopicRecord: _topic,
    PartitionRecord: _partition,
    PartitionChangeRecord: _partition,
    ConfigRecord: _config,
    RegisterBrokerRecord: _broker,
    UnregisterBrokerRecord: _broker,
    FenceBrokerRecord: _broker,
    UnfenceBrokerRecord: _broker,
    BrokerRegistrationChangeRecord: _broker,
    RegisterControllerRecord: _controller,
    UnregisterControllerRecord: _controller,
    FeatureLevelRecord: _feature,
    ClientQuotaRecord: _quota,
    AccessControlEntryRecord: _acl,
    RemoveAccessControlEntryRecord: _acl,
    UserScramCredentialRecord: _scram,
    RemoveUserScramCredentialRecord: _scram,
    DelegationTokenRecord: _token,
    RemoveDelegationTokenRecord: _token,
    ProducerIdsRecord: _producer_ids,
}
"""What a record is about, by its type. Records of other types change nothing, or very many things."""
