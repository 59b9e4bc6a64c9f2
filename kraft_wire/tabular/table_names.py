"""Name the tables of records. Doesn't import Arrow, so that a name can be checked quickly."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import METADATA_RECORDS
from kraft_wire.protocol.registry import message_class

RECORDS: Final = "records"
"""The table of all records, whatever their type."""
CORRUPT: Final = "corrupt"
"""The table of damaged places in a log."""


def table_names() -> list[str]:
    """Return ``records``, ``corrupt``, and one table for each type of record: ``partition_change`` holds
    PartitionChangeRecords."""
    return [RECORDS, CORRUPT, *sorted(_record_classes())]


def record_class(table: str) -> type[Message]:
    """Return the type of the records in a typed table."""
    return _record_classes()[table]


def record_tables() -> dict[str, str]:
    """Return the typed table of each type of record."""
    return {found.NAME: table for table, found in _record_classes().items()}


@cache
def _record_classes() -> dict[str, type[Message]]:
    return {_table_name(name): message_class(name) for name in METADATA_RECORDS.values()}


def _table_name(record_name: str) -> str:
    """PartitionChangeRecord -> partition_change."""
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", record_name.removesuffix("Record"))
    return words.lower()
