"""Convert values consumed from __cluster_metadata to the form in which kafka-dump-log prints records."""

from __future__ import annotations

import struct

from compat.harness.kafka.tools import MetadataRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record

LENGTH = struct.Struct(">i")


def split_values(consumed: bytes) -> list[bytes]:
    """Split the output of ``kcat`` with ``kcat.LENGTH_PREFIXED`` into values."""
    values = []
    position = 0
    while position < len(consumed):
        (size,) = LENGTH.unpack_from(consumed, position)
        position += LENGTH.size
        values.append(consumed[position : position + size])
        position += size
    return values


def describe_record(value: bytes) -> MetadataRecord:
    """Decode one record, under the names that kafka-dump-log uses."""
    record, version = decode_metadata_record(value)
    return MetadataRecord(kafka_name(record.NAME), version, record.to_json(version))


def kafka_name(record_type: str) -> str:
    """Return the name that kafka-dump-log uses: FEATURE_LEVEL_RECORD for FeatureLevelRecord."""
    words = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in record_type)
    return words.lstrip("_")
