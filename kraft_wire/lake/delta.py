"""Keep the lake's tables as Delta tables: a Delta log beside the Parquet files.

A commit lists the files that a table has from now on, so a reader of Delta sees a batch in a table completely
or not at all. Spark writes the files, and this module writes the log, so no jar is needed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.schema import Schema
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
from pyarrow.parquet import ParquetFile

from kraft_wire.lake.protocol import CLUSTER_FOLDER, cluster_of

PARTITIONED_BY: Final = "cluster"


def announce(target: Path, tables: Iterable[str], leaving: Collection[str] = ()) -> None:
    """Update the logs of some tables to the files that exist, except those that are ``leaving`` (paths below
    ``target``). Repeating it changes nothing."""
    for table in tables:
        _announce(target / table, {target / name for name in leaving})


def _announce(folder: Path, leaving: Collection[Path]) -> None:
    files = {
        str(file.relative_to(folder)): file
        for file in folder.glob(f"{CLUSTER_FOLDER}*/*.parquet")
        if file not in leaving
    }
    if not DeltaTable.is_deltatable(str(folder)):
        if files:
            adds = [_add(name, file) for name, file in sorted(files.items())]
            schema = Schema.from_arrow(_schema(next(iter(files.values()))))
            create_table_with_add_actions(str(folder), schema, adds, partition_by=[PARTITIONED_BY])
        return
    table = DeltaTable(str(folder))
    known = {unquote(path) for path in pa.table(table.get_add_actions())["path"].to_pylist()}
    adds = [_add(name, files[name]) for name in sorted(files.keys() - known)]
    now_ms = int(time.time() * 1000)
    removes = [RemoveAction(name, True, now_ms) for name in sorted(known - files.keys())]
    if adds or removes:
        if adds:
            _widen(table, _schema(files[adds[0].path]))
        table.create_write_transaction([*adds, *removes], "append", table.schema(), PARTITIONED_BY)


def _add(name: str, file: Path) -> AddAction:
    found = file.stat()
    with ParquetFile(file) as parquet:
        stats = json.dumps({"numRecords": parquet.metadata.num_rows})
    partition = {PARTITIONED_BY: cluster_of(file.parent.name)}
    return AddAction(name, found.st_size, partition, int(found.st_mtime * 1000), True, stats)


def _schema(file: Path) -> pa.Schema:
    with ParquetFile(file) as parquet:
        written = parquet.schema_arrow
    return written.remove_metadata().append(pa.field(PARTITIONED_BY, pa.string()))


def _widen(table: DeltaTable, written: pa.Schema) -> None:
    """Add columns to a table: a newer version of kraft-wire may know more fields than the one that created
    the table."""
    names = {field.name for field in table.schema().fields}
    missing = [field for field in Schema.from_arrow(written).fields if field.name not in names]
    if missing:
        table.alter.add_columns(missing)
