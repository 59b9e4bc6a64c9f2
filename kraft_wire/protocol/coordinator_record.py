"""Encode and decode the records of the coordinators' topics, such as __consumer_offsets.

A record has a key and a value, each with a prefix. As in Kafka's CoordinatorRecordSerde, an int16 before the
key is the record's type, and one before the value is the value's version; a key only has version 0. A value
of null, a tombstone, deletes the key's entry. The record types of different coordinators overlap, so a reader
must know which coordinator's topic it reads.
"""

from __future__ import annotations

import struct
from typing import Final

from kraft_wire.protocol.errors import DecodeError, EncodeError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.registry import coordinator_record_classes

KEY_VERSION: Final = 0
_NAME: Final = "CoordinatorRecord"
_INT16: Final = struct.Struct(">h")


def encode_coordinator_key(key: Message) -> bytes:
    """Return a record's key with its type before it. Raises EncodeError, also for a message that is not a
    coordinator's key."""
    if key.KIND != "coordinator-key":
        raise EncodeError(key.NAME, "", "is not a coordinator's key")
    out = [_INT16.pack(key.API_KEY)]
    key.encode_into(out, KEY_VERSION)
    return b"".join(out)


def encode_coordinator_value(value: Message | None, version: int) -> bytes | None:
    """Return a record's value with its version before it; None, a tombstone, stays None.

    Raises EncodeError, also for a message that is not a coordinator's value, or UnsupportedVersion.
    """
    if value is None:
        return None
    if value.KIND != "coordinator-value":
        raise EncodeError(value.NAME, "", "is not a coordinator's value")
    out: list[bytes] = []
    value.encode_into(out, version)
    return b"".join((_INT16.pack(version), *out))


def decode_coordinator_record(
    coordinator: str, key: bytes, value: bytes | None
) -> tuple[Message, Message | None, int]:
    """Return a record's key, its value and the value's version; (key, None, -1) for a tombstone.

    ``coordinator`` is "group", "share" or "transaction". Bytes after either message are ignored, as in Java.
    Raises DecodeError, also for an unknown type, or UnsupportedVersion.
    """
    record_type = _prefix(key, "type")
    try:
        key_class, value_class = coordinator_record_classes(coordinator, record_type)
    except KeyError:
        raise DecodeError(_NAME, "type", 0, f"there is no {coordinator} record {record_type}") from None
    read_key, _ = key_class.decode_from(key, KEY_VERSION, _INT16.size)
    if value is None:
        return read_key, None, -1
    version = _prefix(value, "value version")
    read_value, _ = value_class.decode_from(value, version, _INT16.size)
    return read_key, read_value, version


def _prefix(data: bytes, what: str) -> int:
    if len(data) < _INT16.size:
        raise DecodeError(_NAME, what, 0, f"needs {_INT16.size} bytes, {len(data)} remain")
    found: int = _INT16.unpack_from(data)[0]
    return found
