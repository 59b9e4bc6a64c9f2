"""Read rows of the table ``records`` from logs and snapshots that Java wrote."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa

from kraft_wire.columnar.page import Page
from kraft_wire.log.batch import Batch, split_batches
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.files import PARTITION_FOLDER
from kraft_wire.log.snapshot import SnapshotId, snapshot_file_name
from kraft_wire.logs.places import LogPlace, SnapshotPlace
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.tabular.record_rows import RecordRow, rows_of_batches
from kraft_wire.tabular.record_tables import record_batches

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
DATA = Path(__file__).parents[1]
NODE = DATA / "log/data/java-4.4.0" / PARTITION_FOLDER
"""The log of a controller without brokers: three epochs, two segments, mostly NoOpRecords."""
BUSY = DATA / "metadata/java-4.4.0"
"""The log of a controller with three brokers: one segment, one epoch, most record types."""


def log_batches(folder: Path) -> Iterator[Batch]:
    """Yield the batches of all segments in order."""
    for segment in sorted(folder.glob("*.log")):
        yield from split_batches(segment.read_bytes())[0]


def log_arrow(folder: Path) -> list[pa.RecordBatch]:
    return [
        batch
        for segment in sorted(folder.glob("*.log"))
        for batch in record_batches(Page.of(segment.read_bytes())[0], LogPlace(CLUSTER))
    ]


def snapshot_arrow(folder: Path, snapshot_id: SnapshotId) -> list[pa.RecordBatch]:
    data = (folder / snapshot_file_name(snapshot_id)).read_bytes()
    header = decode_control_batch(split_batches(data)[0][0])[0]
    assert isinstance(header, SnapshotHeaderRecord)
    place = SnapshotPlace(*snapshot_id, header.last_contained_log_timestamp)
    return record_batches(Page.of(data)[0], LogPlace(CLUSTER, snapshot=place))


@cache
def log_rows(folder: Path) -> tuple[RecordRow, ...]:
    return tuple(rows_of_batches(log_arrow(folder)))


@cache
def snapshot_rows(folder: Path, snapshot_id: SnapshotId) -> tuple[RecordRow, ...]:
    return tuple(rows_of_batches(snapshot_arrow(folder, snapshot_id)))
