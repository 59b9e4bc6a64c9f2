"""Fetch a snapshot of a live quorum.

It is fetched completely before it is used: two controllers may have different bytes for the same snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from kraft_wire.client.errors import CorruptAnswer, SnapshotGone
from kraft_wire.client.live_log import SNAPSHOT_GONE
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.log.batch import Batch, split_batches
from kraft_wire.log.errors import BadSnapshot, CorruptBatch
from kraft_wire.log.snapshot import SnapshotId, checked_batches

PIECE_BYTES: Final = 8 * 1024 * 1024
PAGE_BYTES: Final = 1024 * 1024


def snapshot_batches(
    quorum: QuorumClient, snapshot_id: SnapshotId, piece_bytes: int = PIECE_BYTES
) -> Iterator[bytes]:
    """Iterate over the snapshot's batches, some at a time, after verifying every checksum, the header and the
    footer.

    Memory doesn't grow with the snapshot. Raises SnapshotGone, CorruptAnswer, OSError for the disk, and what
    ``QuorumClient`` raises.
    """
    with TemporaryFile(prefix="kraft-wire-") as file:
        _fetch(quorum, snapshot_id, piece_bytes, file)
        file.seek(0)
        try:
            yield from _pages(checked_batches(_batches(file)))
        except (CorruptBatch, BadSnapshot) as error:
            position = error.position if isinstance(error, CorruptBatch) else 0
            raise _corrupt(quorum, snapshot_id, position, str(error)) from None


def _fetch(quorum: QuorumClient, snapshot_id: SnapshotId, piece_bytes: int, file: BinaryIO) -> None:
    position, size_bytes, source = 0, 1, None
    while position < size_bytes:
        answer = quorum.fetch_snapshot(snapshot_id, position, piece_bytes, final=SNAPSHOT_GONE)
        if source not in (None, quorum.answered_by):
            # A new leader's file may be another one: start again.
            position, source = 0, None
            file.seek(0)
            file.truncate()
            continue
        if answer.error:
            raise SnapshotGone(snapshot_id, str(quorum.answered_by))
        if answer.position != position or not answer.data:
            reason = (
                f"asked for byte {position}, received {len(answer.data)} bytes from byte {answer.position} on"
            )
            raise _corrupt(quorum, snapshot_id, position, reason)
        file.write(answer.data)
        position, size_bytes, source = position + len(answer.data), answer.size_bytes, quorum.answered_by


def _corrupt(quorum: QuorumClient, snapshot_id: SnapshotId, position: int, reason: str) -> CorruptAnswer:
    """The error's offset is the last one that the snapshot covers: offsets within it have no meaning."""
    name = f"snapshot {snapshot_id.end_offset}-{snapshot_id.epoch}"
    address = str(quorum.answered_by)
    return CorruptAnswer(address, position, snapshot_id.end_offset - 1, f"{name}: {reason}")


def _batches(file: BinaryIO) -> Iterator[Batch]:
    data = b""
    while piece := file.read(PAGE_BYTES):
        data += piece
        batches, end = split_batches(data)
        yield from batches
        data = data[end:]
    if data:
        raise BadSnapshot(f"{len(data)} bytes follow the last complete batch")


def _pages(batches: Iterator[Batch]) -> Iterator[bytes]:
    page: list[bytes] = []
    size_bytes = 0
    for batch in batches:
        page.append(batch.data)
        size_bytes += len(batch.data)
        if size_bytes >= PAGE_BYTES:
            yield b"".join(page)
            page, size_bytes = [], 0
    if page:
        yield b"".join(page)
