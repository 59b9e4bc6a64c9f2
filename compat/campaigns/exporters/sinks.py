"""Read what the sinks have: JSON lines, Parquet files, a lake, a topic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from compat.campaigns.exporters.rules import Exported
from compat.harness import clients
from kraft_wire.lake.records import LakeRecords
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.tabular.record_rows import rows_of_batches


def lines_in(folder: Path) -> Iterator[Exported]:
    """Yield the records of all files, in the order of their writing. A torn line at the end isn't one."""
    paths = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    for path in paths:
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield _exported(msgspec.json.decode(line))


def rows_in(folder: Path) -> Iterator[Exported]:
    """Yield the rows of all files, in the order of their names."""
    for path in sorted(folder.glob("[!.]*.parquet")):
        for row in pq.read_table(path, columns=["offset", "index", "type", "data"]).to_pylist():
            yield _exported({**row, "data": msgspec.json.decode(row["data"])})


def records_in(lake: Path, cluster: str) -> Iterator[Exported]:
    """Yield the rows of a lake in the order of the log, without NoOpRecords."""
    for row in rows_of_batches(LakeRecords(str(lake), cluster).batches()):
        if row.type != NoOpRecord.NAME:
            yield _exported({**row._asdict(), "index": 0, "data": msgspec.json.decode(row.json)})


def messages_in(bootstrap: str, topic: str) -> list[Exported]:
    """Return the messages of a topic, in their order."""
    return [_exported(msgspec.json.decode(value)) for value in clients.consume(bootstrap, topic, 1)]


def _exported(fields: dict[str, Any]) -> Exported:
    return Exported(fields["offset"], fields["index"], fields["type"], msgspec.json.encode(fields["data"]))
