"""Convert pieces of logs to rows of a table, as tasks do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa

from kraft_wire.log.errors import CorruptBatch, LogError
from kraft_wire.logs.places import PlacedPage
from kraft_wire.logs.store import Damage, LogStore, P
from kraft_wire.protocol.errors import DecodeError, UnsupportedVersion
from kraft_wire.spark.options import FAIL, Options
from kraft_wire.storage.errors import StorageError
from kraft_wire.tabular.record_tables import corrupt_batch
from kraft_wire.tabular.table_names import CORRUPT


class CorruptSegment(StorageError):
    """Bytes of a segment or a snapshot that are no batches. The text says what, where, and what to do."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(
            damage.path,
            f"{damage}. Read another node's folder, or restore this one from a copy; with corrupt=row the "
            f"damage is a row of table {CORRUPT}, and other tables continue after it",
        )
        self.damage = damage


class UnreadableRecords(LogError):
    """Batches with valid checksums whose records can't be decoded."""

    def __init__(self, source: str, error: Exception) -> None:
        super().__init__(source, error)
        self.source = source

    def __str__(self) -> str:
        return (
            f"{self.source}: {self.args[1]}. The records may be of a newer version of Kafka: read a typed "
            "table of other records, or update kraft-wire"
        )


def rows_of(
    store: LogStore[P], pieces: Iterable[P], options: Options, types: Collection[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table; of ``records`` only those of some types, if types are given.

    Raises CorruptSegment, UnreadableRecords, and what the store raises.
    """
    for piece in pieces:
        for found in store.pages(piece):
            if isinstance(found, PlacedPage):
                yield from _page_rows(found, options, types)
            elif options.corrupt == FAIL:
                raise CorruptSegment(found)
            elif options.table == CORRUPT:
                yield corrupt_batch(found, options.columns)


def _page_rows(found: PlacedPage, options: Options, types: Collection[str] | None) -> list[pa.RecordBatch]:
    if options.table == CORRUPT:
        return []
    try:
        return options.batches_of(found.page, found.place, types)
    except (CorruptBatch, DecodeError, UnsupportedVersion) as error:
        raise UnreadableRecords(found.source, error) from error
