"""Snapshots: their ids, their file names, and the batches that make one (KIP-630).

A snapshot file is a run of record batches with offsets from 0, all carrying the epoch of the snapshot's id:
one control batch (header, then kraft.version and the voters where there are any), data batches, one control
batch with the footer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kraft_wire.log.batch import (
    HEADER_SIZE_BYTES,
    MAX_BATCH_SIZE_BYTES,
    RECORD_OVERHEAD_BYTES,
    Batch,
    encode_batch,
    split_batches,
)
from kraft_wire.log.control import ControlType, control_types, encode_control_batch
from kraft_wire.log.errors import BadSnapshot
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord

SUFFIX = ".checkpoint"
PARTIAL_SUFFIX = ".checkpoint.part"
DELETED_SUFFIX = ".checkpoint.deleted"
RECORDS_PER_BATCH = 1024

_STEM = re.compile(r"([0-9]{20})-([0-9]{10})")


class SnapshotId(NamedTuple):
    """What a snapshot covers: every record below ``end_offset``, the last of them of ``epoch``."""

    end_offset: int
    epoch: int


BOOTSTRAP_SNAPSHOT_ID = SnapshotId(0, 0)
"""The checkpoint that format writes. It is read locally and never served to anybody."""


def snapshot_file_name(snapshot_id: SnapshotId, suffix: str = SUFFIX) -> str:
    """The name of the snapshot's file, such as 00000000000000000305-0000000003.checkpoint."""
    return f"{snapshot_id.end_offset:020d}-{snapshot_id.epoch:010d}{suffix}"


def parse_snapshot_file_name(name: str, suffix: str = SUFFIX) -> SnapshotId | None:
    """The id in a snapshot's file name; None where the name is not one."""
    match = _STEM.fullmatch(name.removesuffix(suffix)) if name.endswith(suffix) else None
    return None if match is None else SnapshotId(int(match[1]), int(match[2]))


def encode_snapshot(
    snapshot_id: SnapshotId,
    control: Sequence[Message],
    values: Iterable[bytes],
    last_contained_log_timestamp_ms: int,
    now_ms: int,
) -> Iterator[bytes]:
    """The batches of a snapshot, in the order of the file.

    ``control`` follows the header (KRaftVersionRecord, VotersRecord, or nothing); ``values`` are encoded
    metadata records. Batches hold up to 1,024 records and 8 MiB. Raises BatchTooLarge for a single record
    above that.
    """
    epoch = snapshot_id.epoch
    header = SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp_ms)
    yield encode_control_batch(0, epoch, now_ms, [header, *control])
    offset = 1 + len(control)
    for chunk in _chunks(values):
        yield encode_batch(offset, epoch, now_ms, chunk)
        offset += len(chunk)
    yield encode_control_batch(offset, epoch, now_ms, [SnapshotFooterRecord()])


def _chunks(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    size_bytes = HEADER_SIZE_BYTES
    for value in values:
        size_bytes += len(value) + RECORD_OVERHEAD_BYTES
        if chunk and (len(chunk) == RECORDS_PER_BATCH or size_bytes > MAX_BATCH_SIZE_BYTES):
            yield chunk
            chunk = []
            size_bytes = HEADER_SIZE_BYTES + len(value) + RECORD_OVERHEAD_BYTES
        chunk.append(value)
    if chunk:
        yield chunk


def checked_batches(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Pass a snapshot's batches through while checking that they are a whole snapshot.

    Offsets run from 0 without a gap; the header comes first, the footer last, neither anywhere else. Raises
    BadSnapshot, at the end of the iteration for what is missing there.
    """
    next_offset = 0
    ended = False
    for batch in batches:
        if ended:
            raise BadSnapshot(f"there are records behind the footer, at offset {batch.header.base_offset}")
        if batch.header.base_offset != next_offset:
            raise BadSnapshot(f"offset {batch.header.base_offset} follows where {next_offset} is due")
        ended = check_marks(batch, first=next_offset == 0)
        next_offset = batch.header.next_offset
        yield batch
    if not ended:
        raise BadSnapshot(f"ends at offset {next_offset} without a footer" if next_offset else "is empty")


def check_marks(batch: Batch, *, first: bool) -> bool:
    """Whether the footer ends this batch. Raises BadSnapshot where header or footer are missing or out of
    place."""
    marks = control_types(batch) if batch.header.is_control else []
    if first and marks[:1] != [ControlType.SNAPSHOT_HEADER]:
        raise BadSnapshot("does not begin with a header")
    if ControlType.SNAPSHOT_HEADER in marks[1 if first else 0 :]:
        raise BadSnapshot(f"has a second header in the batch at offset {batch.header.base_offset}")
    if ControlType.SNAPSHOT_FOOTER in marks[:-1]:
        raise BadSnapshot(f"has records behind the footer, in the batch at offset {batch.header.base_offset}")
    return marks[-1:] == [ControlType.SNAPSHOT_FOOTER]


def verify_snapshot(data: bytes) -> list[Batch]:
    """The batches of a snapshot held in memory, every checksum and mark checked.

    Raises CorruptBatch or BadSnapshot.
    """
    batches, consumed = split_batches(data)
    whole = list(checked_batches(batches))
    if consumed != len(data):
        raise BadSnapshot(f"{len(data) - consumed} bytes follow the last whole batch")
    return whole
