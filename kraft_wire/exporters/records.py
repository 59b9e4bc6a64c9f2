"""Hold the records that are exported. A record is decoded only when somebody looks into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from kraft_wire.log.batch import Batch, iter_records
from kraft_wire.log.control import CONTROL_RECORD_VERSION, decode_control_record
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import DecodeError, ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import METADATA_RECORDS
from kraft_wire.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.metadata_record import (
    FRAME_VERSION,
    decode_metadata_record,
    encode_metadata_record,
)
from kraft_wire.protocol.own_messages.resync import Resync
from kraft_wire.protocol.varint import VarintTooLong, read_uvarint

UNKNOWN: Final = "Unknown"
"""The type of a record that this release has no name for."""
UNKNOWN_VERSION: Final = -1
RESYNC_INDEX: Final = -1
FIRST_REMOVAL_INDEX: Final = -2
NO_EPOCH: Final = -1


class ExportRecord(msgspec.Struct, gc=False):
    """One committed record.

    The log has one record at each offset, and its ``index`` is 0. The records of a snapshot, which are the
    state at its end, all have the offset before that end; ``index`` counts them from 1. A ``Resync`` comes
    before them, with the index -1, if the exporter has missed records; then, with the indexes -2, -3 and so
    on, what removes things that are gone, if that is known. ``timestamp_ms`` is in milliseconds
    since the Unix epoch. ``value`` is the record as it lies in the log. A record that this release can't
    decode has a ``problem``, and no ``message``. If it ``has_change``, ``before`` and ``after`` are what it
    is about (``changes.py``).
    """

    offset: int
    index: int
    epoch: int
    timestamp_ms: int
    value: bytes
    type: str
    version: int
    is_decoded: bool = False
    decoded: Message | None = None
    why_not: str = ""
    has_change: bool = False
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None

    def note_change(self, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        """Note what the record is about, before and after it; None if there is no such thing then."""
        self.has_change, self.before, self.after = True, before, after

    @property
    def message(self) -> Message | None:
        """The decoded record; None if it can't be decoded."""
        if not self.is_decoded:
            self.is_decoded = True
            try:
                self.decoded, _ = decode_metadata_record(self.value)
            except ProtocolError as error:
                self.why_not = str(error)
        return self.decoded

    @property
    def problem(self) -> str:
        """The reason for which the record can't be decoded; "" if it can."""
        return self.why_not if self.message is None else ""

    @property
    def data(self) -> dict[str, Any] | None:
        """The record in Kafka's own JSON form; None if it can't be decoded."""
        message = self.message
        return None if message is None else message.to_json(self.version)

    def id_in(self, cluster: str) -> str:
        """Return the id that the record has each time it is exported: cluster/offset/index."""
        return f"{cluster}/{self.offset}/{self.index}"


class ExportBatch(msgspec.Struct, frozen=True):
    """Records to export, in the order of the log. There is at least one.

    A snapshot's records come in several batches. If it is exported again, all of them come again.
    ``ends_snapshot``: this is the last one.
    """

    cluster: str
    records: Sequence[ExportRecord]
    ends_snapshot: bool = False

    @property
    def first_offset(self) -> int:
        return self.records[0].offset

    @property
    def last_offset(self) -> int:
        return self.records[-1].offset


def log_records(batch: Batch) -> Iterator[ExportRecord]:
    """Yield the records of a batch of the log. Raises CorruptBatch."""
    epoch, is_control = batch.header.leader_epoch, batch.header.is_control
    for record in iter_records(batch):
        if is_control:
            message, problem = _control(record)
            yield _of_control(record.offset, 0, epoch, record.timestamp, record.value, message, problem)
        else:
            kind, version = type_and_version(record.value)
            yield ExportRecord(record.offset, 0, epoch, record.timestamp, record.value, kind, version)


def snapshot_records(
    batch: Batch, snapshot_id: SnapshotId, timestamp_ms: int, first_index: int
) -> Iterator[ExportRecord]:
    """Yield the records of a batch of a snapshot, without its header and footer. Raises CorruptBatch."""
    offset, epoch = snapshot_id.end_offset - 1, snapshot_id.epoch
    index = first_index
    for record in iter_records(batch):
        if batch.header.is_control:
            message, problem = _control(record)
            if isinstance(message, SnapshotHeaderRecord | SnapshotFooterRecord):
                continue
            yield _of_control(offset, index, epoch, timestamp_ms, record.value, message, problem)
        else:
            kind, version = type_and_version(record.value)
            yield ExportRecord(offset, index, epoch, timestamp_ms, record.value, kind, version)
        index += 1


def resync_record(resync: Resync, timestamp_ms: int) -> ExportRecord:
    """Return the record that says which offsets are missing before the ones that follow. No leader wrote it,
    so it has no epoch."""
    offset = max(0, resync.to - 1)
    return ExportRecord(
        offset, RESYNC_INDEX, NO_EPOCH, timestamp_ms, b"", Resync.NAME, Resync.MAX_VERSION, True, resync
    )


def removal_record(message: Message, last: ExportRecord, place: int) -> ExportRecord:
    """Return a record that removes something which a snapshot, whose last record is given, doesn't have any
    more. ``place`` counts them from 0."""
    version = message.MAX_VERSION
    return ExportRecord(
        last.offset,
        FIRST_REMOVAL_INDEX - place,
        last.epoch,
        last.timestamp_ms,
        encode_metadata_record(message, version),
        message.NAME,
        version,
        True,
        message,
    )


def type_and_version(value: bytes) -> tuple[str, int]:
    """Return the type and the version of a metadata record, from its first bytes alone. UNKNOWN and
    UNKNOWN_VERSION stand for what this release can't read."""
    if len(value) > 2 and value[0] == FRAME_VERSION and value[1] < 0x80 and value[2] < 0x80:
        return METADATA_RECORDS.get(value[1], UNKNOWN), value[2]
    try:
        frame_version, position = read_uvarint(value, 0)
        api_key, position = read_uvarint(value, position)
        version, _ = read_uvarint(value, position)
    except (IndexError, VarintTooLong):
        return UNKNOWN, UNKNOWN_VERSION
    if frame_version != FRAME_VERSION:
        return UNKNOWN, UNKNOWN_VERSION
    return METADATA_RECORDS.get(api_key, UNKNOWN), version


def _control(record: Any) -> tuple[Message | None, str]:
    try:
        return decode_control_record(record), ""
    except (CorruptBatch, DecodeError) as error:
        return None, str(error)


def _of_control(
    offset: int,
    index: int,
    epoch: int,
    timestamp_ms: int,
    value: bytes,
    message: Message | None,
    problem: str,
) -> ExportRecord:
    kind = UNKNOWN if message is None else message.NAME
    version = UNKNOWN_VERSION if message is None else CONTROL_RECORD_VERSION
    return ExportRecord(offset, index, epoch, timestamp_ms, value, kind, version, True, message, problem)
