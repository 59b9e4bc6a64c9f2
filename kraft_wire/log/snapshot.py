"""Build and check snapshots: their ids, file names and batches (KIP-630).

The batches of a snapshot file have offsets from 0, and all have the epoch of the snapshot's id: one control
batch (the header; kraft.version and the voters, if there are any), data batches, one control batch with the
footer.
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
from kraft_wire.log.chain import offset_problem
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
    """The end of what a snapshot covers: every record below ``end_offset``; the last one is of ``epoch``."""

    end_offset: int
    epoch: int


BOOTSTRAP_SNAPSHOT_ID = SnapshotId(0, 0)
"""The checkpoint that format writes. It is read locally and never served."""


def snapshot_file_name(snapshot_id: SnapshotId, suffix: str = SUFFIX) -> str:
    """Return the name of the snapshot's file, such as 00000000000000000305-0000000003.checkpoint."""
    return f"{snapshot_id.end_offset:020d}-{snapshot_id.epoch:010d}{suffix}"


def parse_snapshot_file_name(name: str, suffix: str = SUFFIX) -> SnapshotId | None:
    """Return the id in a snapshot's file name; None for other names."""
    match = _STEM.fullmatch(name.removesuffix(suffix)) if name.endswith(suffix) else None
    return None if match is None else SnapshotId(int(match[1]), int(match[2]))


def encode_snapshot(
    snapshot_id: SnapshotId,
    control: Sequence[Message],
    values: Iterable[bytes],
    last_contained_log_timestamp_ms: int,
    now_ms: int,
) -> Iterator[bytes]:
    """Yield the batches of a snapshot, in the order of the file.

    ``control`` follows the header (KRaftVersionRecord, VotersRecord, or nothing); ``values`` are encoded
    metadata records. A batch holds up to 1,024 records and 8 MiB. Raises BatchTooLarge for a larger record.
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


def checked_batches(batches: Iterable[Batch], epoch: int | None = None) -> Iterator[Batch]:
    """Yield a snapshot's batches, and check that they make a whole snapshot.

    Offsets must run from 0 without a gap; ``SnapshotMarks`` checks the rest. ``epoch`` is the one in the
    snapshot's id, if it has an id. Raises BadSnapshot; for a missing footer at the end of the iteration.
    """
    marks = SnapshotMarks(epoch)
    next_offset = 0
    for batch in batches:
        problem = offset_problem(batch.header, next_offset)
        if problem:
            raise BadSnapshot(f"has a batch where offset {next_offset} should be: {problem}")
        marks.take(batch)
        next_offset = batch.header.next_offset
        yield batch
    if not marks.has_footer:
        raise BadSnapshot(f"ends at offset {next_offset} without a footer" if next_offset else "is empty")


class SnapshotMarks:
    """A check of the rules for snapshots only: the header comes first, the footer last, neither anywhere
    else, and all batches have the epoch of the snapshot's id."""

    def __init__(self, epoch: int | None) -> None:
        self.has_footer = False
        self._epoch = epoch

    def take(self, batch: Batch) -> None:
        """Check the next batch. Raises BadSnapshot."""
        offset, epoch = batch.header.base_offset, batch.header.leader_epoch
        if self._epoch is not None and epoch != self._epoch:
            raise BadSnapshot(f"has a batch of epoch {epoch} at offset {offset}, not of epoch {self._epoch}")
        if self.has_footer:
            raise BadSnapshot(f"has records after the footer, at offset {offset}")
        marks = control_types(batch) if batch.header.is_control else []
        is_first = offset == 0
        if is_first and marks[:1] != [ControlType.SNAPSHOT_HEADER]:
            raise BadSnapshot("does not begin with a header")
        if ControlType.SNAPSHOT_HEADER in marks[1 if is_first else 0 :]:
            raise BadSnapshot(f"has a second header in the batch at offset {offset}")
        if ControlType.SNAPSHOT_FOOTER in marks[:-1]:
            raise BadSnapshot(f"has records after the footer, in the batch at offset {offset}")
        self.has_footer = marks[-1:] == [ControlType.SNAPSHOT_FOOTER]


def verify_snapshot(data: bytes) -> list[Batch]:
    """Return the batches of a snapshot in memory, with every checksum checked, and that the snapshot is
    whole.

    Raises CorruptBatch or BadSnapshot.
    """
    batches, consumed = split_batches(data)
    whole = list(checked_batches(batches))
    if consumed != len(data):
        raise BadSnapshot(f"{len(data) - consumed} bytes follow the last whole batch")
    return whole
