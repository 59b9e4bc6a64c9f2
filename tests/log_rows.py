"""Rows of a log folder, read record by record: what the table ``records`` has to say of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from kraft_wire.log.batch import Batch, iter_records, split_batches
from kraft_wire.log.control import decode_control_record
from kraft_wire.log.files import PARTITION_FOLDER
from kraft_wire.log.snapshot import SnapshotId, snapshot_file_name
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.spark.record_rows import RecordRow
from kraft_wire.storage.folder import read_meta_properties


def log_batches(folder: Path) -> Iterator[Batch]:
    for segment in sorted((folder / PARTITION_FOLDER).glob("*.log")):
        yield from split_batches(segment.read_bytes())[0]


def log_rows(folder: Path) -> Iterator[RecordRow]:
    """The log's records, from its first offset on."""
    cluster = read_meta_properties(folder).cluster_id
    for batch in log_batches(folder):
        header = batch.header
        for offset, (message, version) in enumerate(_messages(batch), header.base_offset):
            yield _row(
                cluster, offset, header.leader_epoch, header.base_timestamp, False, message, version
            )


def snapshot_rows(folder: Path, snapshot_id: SnapshotId) -> Iterator[RecordRow]:
    """A snapshot's records, in its order."""
    cluster = read_meta_properties(folder).cluster_id
    batches, _ = split_batches((folder / PARTITION_FOLDER / snapshot_file_name(snapshot_id)).read_bytes())
    messages = [found for batch in batches for found in _messages(batch)]
    header = messages[0][0]
    assert isinstance(header, SnapshotHeaderRecord)
    timestamp_ms = header.last_contained_log_timestamp
    for message, version in messages:
        yield _row(
            cluster, snapshot_id.end_offset - 1, snapshot_id.epoch, timestamp_ms, True, message, version
        )


def _messages(batch: Batch) -> Iterator[tuple[Message, int]]:
    for record in iter_records(batch):
        if batch.header.is_control:
            yield decode_control_record(record), 0
        else:
            yield decode_metadata_record(record.value)


def _row(
    cluster: str,
    offset: int,
    epoch: int,
    timestamp_ms: int,
    in_snapshot: bool,
    message: Message,
    version: int,
) -> RecordRow:
    text = msgspec.json.encode(message.to_json(version)).decode()
    return RecordRow(cluster, offset, epoch, timestamp_ms, in_snapshot, message.NAME, version, text)
