"""Records to export."""

from __future__ import annotations

from kraft_wire.exporters.records import ExportRecord, type_and_version
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.metadata_record import encode_metadata_record


def exported(message: Message, offset: int = 0, *, index: int = 0) -> ExportRecord:
    """Return a message at its highest version as a record to export."""
    return of_value(encode_metadata_record(message, message.MAX_VERSION), offset, index=index)


def of_value(value: bytes, offset: int = 0, *, index: int = 0) -> ExportRecord:
    """Return a record with these bytes."""
    return ExportRecord(offset, index, 3, 1_700_000_000_000, value, *type_and_version(value))
