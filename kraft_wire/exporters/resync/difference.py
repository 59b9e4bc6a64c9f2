"""Tell how a state differs from an earlier one, as records: what is gone, and what is new or has changed.

Both are the records of a snapshot, so that what hasn't changed has the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from kraft_wire.exporters.records import ExportRecord, removal_record, type_and_version
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.access_control_entry_record import AccessControlEntryRecord
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord
from kraft_wire.protocol.messages.config_record import ConfigRecord
from kraft_wire.protocol.messages.delegation_token_record import DelegationTokenRecord
from kraft_wire.protocol.messages.feature_level_record import FeatureLevelRecord
from kraft_wire.protocol.messages.register_broker_record import RegisterBrokerRecord
from kraft_wire.protocol.messages.register_controller_record import RegisterControllerRecord
from kraft_wire.protocol.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraft_wire.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraft_wire.protocol.messages.remove_topic_record import RemoveTopicRecord
from kraft_wire.protocol.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.messages.unregister_broker_record import UnregisterBrokerRecord
from kraft_wire.protocol.messages.unregister_controller_record import UnregisterControllerRecord
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record

Identity = tuple[object, ...]


def difference(before: Iterable[ExportRecord], after: Iterable[ExportRecord]) -> list[ExportRecord]:
    """Return the records that make the earlier state the later one: first those that remove something, then
    the later state's own."""
    gone = {record.value for record in before}
    kept: set[bytes] = set()
    changed: list[ExportRecord] = []
    kept_configs: list[ExportRecord] = []
    last: ExportRecord | None = None
    for record in after:
        last = record
        if record.value not in gone:
            changed.append(record)
            continue
        kept.add(record.value)
        if record.type == ConfigRecord.NAME:
            kept_configs.append(record)
    if last is None:
        return []
    left = {_identity(record.message) for record in changed}
    removed = [thing for thing in _things(sorted(gone - kept)) if _identity(thing) not in left]
    removals = [_REMOVALS[type(thing)](thing) for thing in removed]
    return [
        *(removal_record(message, last, place) for place, message in enumerate(removals)),
        *changed,
        *_of_successors(removed, kept_configs),
    ]


def _of_successors(removed: Iterable[Message], configs: Iterable[ExportRecord]) -> Iterator[ExportRecord]:
    """Yield the configurations of topics whose names had others before, as they have now: they were removed
    with those."""
    names = {thing.name for thing in removed if isinstance(thing, TopicRecord)}
    for record in configs if names else ():
        config = record.message
        assert isinstance(config, ConfigRecord), "its type says so"
        if config.resource_type == ResourceType.TOPIC and config.resource_name in names:
            yield record


def _things(values: Iterable[bytes]) -> Iterator[Message]:
    """Yield the records that set something that can be removed. Partitions go with their topics, and control
    records aren't of the metadata."""
    for value in values:
        name, _ = type_and_version(value)
        if name in _REMOVABLE:
            yield decode_metadata_record(value)[0]


def _identity(message: Message | None) -> Identity | None:
    """Return the thing that a record sets; None if the record says something else."""
    identify = _IDENTITIES.get(type(message)) if message is not None else None
    return None if message is None or identify is None else (message.NAME, *identify(message))


def _entity(record: ClientQuotaRecord) -> Identity:
    return tuple(sorted({part.entity_type: part.entity_name for part in record.entity}.items()))


_IDENTITIES: Final[dict[type[Message], Callable[[Any], Identity]]] = {
    TopicRecord: lambda record: (record.topic_id,),
    ConfigRecord: lambda record: (record.resource_type, record.resource_name, record.name),
    RegisterBrokerRecord: lambda record: (record.broker_id,),
    RegisterControllerRecord: lambda record: (record.controller_id,),
    FeatureLevelRecord: lambda record: (record.name,),
    ClientQuotaRecord: lambda record: (_entity(record), record.key),
    AccessControlEntryRecord: lambda record: (record.id,),
    UserScramCredentialRecord: lambda record: (record.name, record.mechanism),
    DelegationTokenRecord: lambda record: (record.token_id,),
}

_REMOVALS: Final[dict[type[Message], Callable[[Any], Message]]] = {
    TopicRecord: lambda record: RemoveTopicRecord(record.topic_id),
    ConfigRecord: lambda record: ConfigRecord(record.resource_type, record.resource_name, record.name, None),
    RegisterBrokerRecord: lambda record: UnregisterBrokerRecord(record.broker_id, record.broker_epoch),
    RegisterControllerRecord: lambda record: UnregisterControllerRecord(record.controller_id),
    FeatureLevelRecord: lambda record: FeatureLevelRecord(record.name, 0),
    ClientQuotaRecord: lambda record: ClientQuotaRecord(record.entity, record.key, 0.0, True),
    AccessControlEntryRecord: lambda record: RemoveAccessControlEntryRecord(record.id),
    UserScramCredentialRecord: lambda record: RemoveUserScramCredentialRecord(record.name, record.mechanism),
    DelegationTokenRecord: lambda record: RemoveDelegationTokenRecord(record.token_id),
}

_REMOVABLE: Final = frozenset(record_class.NAME for record_class in _REMOVALS)
