"""Encode and decode control records, which raft and snapshots write between the data records (Kafka's
ControlRecordType).

The key of a control record is the version of the key format (i16, 0) and the type (i16). The value is a
generated message at version 0, which repeats that version as its first field.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from struct import Struct
from typing import Final

from kraft_wire.log.batch import CONTROL, Batch, Record, encode_keyed_batch, iter_records
from kraft_wire.log.errors import CorruptBatch, NewerControlRecord
from kraft_wire.protocol.errors import DecodeError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord

CONTROL_RECORD_VERSION = 0
"""The version of every control record that Kafka 4.4.0 writes, although some schemas have a later one."""

KRAFT_VERSION: Final = "kraft.version"
"""The feature whose level is that of the last KRaftVersionRecord: from 1 on, the log has the voters."""
_KEY = Struct(">hh")


class ControlType(IntEnum):
    """The control records of a metadata log. Kafka's types 0 and 1 end transactions of producers and don't
    occur here."""

    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_CLASSES: dict[ControlType, type[Message]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_TYPES = {message_class: kind for kind, message_class in _CLASSES.items()}


def encode_control_batch(
    base_offset: int, leader_epoch: int, timestamp_ms: int, messages: Sequence[Message]
) -> bytes:
    """Return a control batch with one record for each message. Raises ValueError for a message that isn't a
    control record."""
    return encode_keyed_batch(
        base_offset,
        leader_epoch,
        timestamp_ms,
        [(_KEY.pack(0, _type_of(message)), message.encode(CONTROL_RECORD_VERSION)) for message in messages],
        attributes=CONTROL,
    )


def _type_of(message: Message) -> ControlType:
    kind = _TYPES.get(type(message))
    if kind is None:
        raise ValueError(f"{type(message).__name__} is not a control record")
    return kind


def control_type(record: Record) -> ControlType:
    """Return the type that a control record's key names. Raises CorruptBatch; NewerControlRecord for a type
    above those that are known."""
    if record.key is None or len(record.key) < _KEY.size:
        raise CorruptBatch(-1, record.offset, "the record's key is too short for a control record's")
    version, kind = _KEY.unpack_from(record.key)
    if version < 0:
        raise CorruptBatch(-1, record.offset, f"the control record's key has version {version}")
    try:
        return ControlType(kind)
    except ValueError:
        raised = NewerControlRecord if kind > max(ControlType) else CorruptBatch
        raise raised(-1, record.offset, f"control record type {kind} is unknown in metadata logs") from None


def control_types(batch: Batch) -> list[ControlType]:
    """Return the types of a control batch's records, in order. Raises CorruptBatch."""
    return [control_type(record) for record in iter_records(batch)]


def decode_control_record(record: Record) -> Message:
    """Return the message in a control record. Raises CorruptBatch if key or value can't be decoded."""
    message_class = _CLASSES[control_type(record)]
    try:
        return message_class.decode(record.value, CONTROL_RECORD_VERSION)
    except DecodeError as error:
        raise CorruptBatch(-1, record.offset, f"the control record's value: {error}") from error


def decode_control_batch(batch: Batch) -> list[Message]:
    """Return the messages of a control batch, in order. Raises CorruptBatch."""
    return [decode_control_record(record) for record in iter_records(batch)]


def starts_epoch(batch: Batch) -> bool:
    """Whether a leader starts its epoch with this batch: the first record is a LeaderChange."""
    first: Iterable[Record] = iter_records(batch) if batch.header.is_control else ()
    return any(control_type(record) is ControlType.LEADER_CHANGE for record in list(first)[:1])
