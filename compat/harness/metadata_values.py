"""Values of __cluster_metadata as a consumer gets them, in the form in which Kafka's dump prints them."""

from __future__ import annotations

import struct

from compat.harness.tools import MetadataRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record

LENGTH = struct.Struct(">i")


def split_values(consumed: bytes) -> list[bytes]:
    """The values in the output of ``kcat`` with ``kcat.LENGTH_PREFIXED``."""
    values = []
    position = 0
    while position < len(consumed):
        (size,) = LENGTH.unpack_from(consumed, position)
        position += LENGTH.size
        values.append(consumed[position : position + size])
        position += size
    return values


def describe_record(value: bytes) -> MetadataRecord:
    """One record under the names that kafka-dump-log uses."""
    record, version = decode_metadata_record(value)
    return MetadataRecord(kafka_name(record.NAME), version, record.to_json(version))


def kafka_name(record_type: str) -> str:
    """As kafka-dump-log names it: FEATURE_LEVEL_RECORD for FeatureLevelRecord."""
    words = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in record_type)
    return words.lstrip("_")
