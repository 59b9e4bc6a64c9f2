"""Encode and decode the values of __cluster_metadata: frame version, record id, record version, record.

This is Kafka's MetadataRecordSerde. All three prefixes are unsigned varints, and the frame version is always
1.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.protocol.errors import DecodeError, UnknownRecord
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.registry import metadata_record_class
from kraft_wire.protocol.varint import VarintTooLong, read_uvarint, uvarint

FRAME_VERSION: Final = 1
_NAME: Final = "MetadataRecord"
_HIGHEST: Final = 32767


def encode_metadata_record(record: Message, version: int) -> bytes:
    """Return a record's value at this version. Raises EncodeError or UnsupportedVersion."""
    out = [uvarint(FRAME_VERSION), uvarint(record.API_KEY), uvarint(version)]
    record.encode_into(out, version)
    return b"".join(out)


def decode_metadata_record(data: bytes) -> tuple[Message, int]:
    """Return the record in a value, and its version.

    Raises DecodeError, also for trailing bytes; UnknownRecord or UnsupportedVersion if the record may be one
    of a newer release.
    """
    # The common case: three prefixes of one byte each.
    if len(data) > 3 and data[0] == FRAME_VERSION and data[1] < 0x80 and data[2] < 0x80:
        key, version, pos = data[1], data[2], 3
    else:
        key, version, pos = _prefixes(data)
    try:
        record_class = metadata_record_class(key)
    except KeyError:
        raise UnknownRecord(_NAME, "type", 1, f"there is no record {key}") from None
    record, end = record_class.decode_from(data, version, pos)
    if end != len(data):
        raise DecodeError(record_class.NAME, "", end, f"{len(data) - end} bytes follow the record")
    return record, version


def _prefixes(data: bytes) -> tuple[int, int, int]:
    frame_version, pos = _prefix(data, 0, "frame version")
    if frame_version != FRAME_VERSION:
        raise UnknownRecord(_NAME, "frame version", 0, f"is {frame_version} instead of {FRAME_VERSION}")
    key, pos = _prefix(data, pos, "type")
    version, pos = _prefix(data, pos, "version")
    return key, version, pos


def _prefix(data: bytes, pos: int, what: str) -> tuple[int, int]:
    try:
        value, end = read_uvarint(data, pos)
    except IndexError:
        raise DecodeError(_NAME, what, pos, "the record ends here") from None
    except VarintTooLong as error:
        raise DecodeError(_NAME, what, pos, f"varint has {error}") from None
    if value > _HIGHEST:
        raise DecodeError(_NAME, what, pos, f"{value} is above {_HIGHEST}")
    return value, end
