"""Convert Kafka's names to Python's."""

from __future__ import annotations

import builtins
import keyword
import re

_ACRONYM_THEN_WORD = re.compile(r"([A-Z]+)([A-Z][a-z])")
_WORD_THEN_CAPITAL = re.compile(r"([a-z0-9])([A-Z])")
_HEADER_CLASSES = {"ClassVar", "Field", "Message", "Structure", "UnknownTags", "Uuid"}
_HEADER_CONSTANTS = {
    "DECODE_FAULTS",
    "ENCODE_FAULTS",
    "NO_UNKNOWN_TAGS",
    "NULL_COUNT",
    "SHORT",
    "SIZES",
    "UUIDS",
}
_CLASS_CONSTANTS = {"NAME", "API_KEY", "KIND", "MIN_VERSION", "MAX_VERSION", "FLEXIBLE_FROM", "FIELDS"}
RESERVED_CLASS_NAMES = frozenset(dir(builtins)) | _HEADER_CLASSES | _HEADER_CONSTANTS | _CLASS_CONSTANTS
"""Names that generated modules use themselves, and that a struct can't have."""
RESERVED_LOCAL_NAMES = frozenset(
    {
        "array_readers",
        "array_writers",
        "bytes_of",
        "check_count",
        "decode_message_carefully",
        "encode_message_carefully",
        "long_array",
        "long_count",
        "long_size",
        "long_string",
        "msgspec",
        "nullable_string_readers",
        "read_byte_strings",
        "read_compact_byte_strings",
        "read_compact_strings",
        "read_compact_uuids",
        "read_numbers",
        "read_strings",
        "read_unknown_tags",
        "read_uuids",
        "refuse",
        "refuse_position",
        "row_reader",
        "skip_long_size",
        "string_readers",
        "string_size",
        "string_writers",
        "struct",
        "use_compiled",
        "uvarint",
        "write_byte_strings",
        "write_compact_byte_strings",
        "write_compact_strings",
        "write_compact_uuids",
        "write_long_array",
        "write_numbers",
        "write_strings",
        "write_tags",
        "write_uuids",
    }
)
"""Modules and functions that generated modules import, and that a local variable can't hide."""
RESERVED_FIELD_NAMES = frozenset(
    {"decode", "decode_from", "encode", "encode_into", "from_json", "to_json", "unknown_tagged_fields"}
    | {"float", "msgspec", "staticmethod"}
)
"""Names that every message has already, and those that a generated class's body uses."""


def snake_case(name: str) -> str:
    """Convert ``ClusterId`` to ``cluster_id``, ``ISRList`` to ``isr_list``, ``KRaftVersion`` to
    ``kraft_version``."""
    name = name.replace("KRaft", "Kraft")
    name = _ACRONYM_THEN_WORD.sub(r"\1_\2", name)
    snake = _WORD_THEN_CAPITAL.sub(r"\1_\2", name).lower()
    return snake + "_" if keyword.iskeyword(snake) else snake


def field_name(name: str) -> str:
    """Return a field's name in snake_case; a name that every message has already gets an underscore:
    ``encode_``."""
    snake = snake_case(name)
    return snake + "_" if snake in RESERVED_FIELD_NAMES else snake


def json_name(name: str) -> str:
    """Return the key in Kafka's JSON form: the first letter in lower case."""
    return name[0].lower() + name[1:]
