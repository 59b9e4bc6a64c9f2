"""A snapshot of a live quorum: fetched as a whole before anything of it is used, as no two controllers need
have the same bytes of it."""

from __future__ import annotations

from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from kraft_wire.client.errors import CorruptAnswer, SnapshotGone
from kraft_wire.client.live_log import SNAPSHOT_GONE
from kraft_wire.client.quorum import Quorum
from kraft_wire.log.batch import Batch, split_batches
from kraft_wire.log.errors import BadSnapshot, CorruptBatch
from kraft_wire.log.snapshot import SnapshotId, checked_batches

PIECE_BYTES: Final = 8 * 1024 * 1024
PAGE_BYTES: Final = 1024 * 1024


def snapshot_batches(
    quorum: Quorum, snapshot_id: SnapshotId, piece_bytes: int = PIECE_BYTES
) -> Iterator[bytes]:
    """The snapshot's batches, some at a time; every checksum is looked at, and whether header and footer are
    there. Memory doesn't grow with the snapshot. Raises SnapshotGone, CorruptAnswer, OSError for the disk,
    and what ``Quorum`` raises."""
    with TemporaryFile(prefix="kraft-wire-") as file:
        _fetch(quorum, snapshot_id, piece_bytes, file)
        file.seek(0)
        try:
            yield from _pages(checked_batches(_batches(file)))
        except (CorruptBatch, BadSnapshot) as error:
            position = error.position if isinstance(error, CorruptBatch) else 0
            raise _corrupt(quorum, snapshot_id, position, str(error)) from None


def _fetch(quorum: Quorum, snapshot_id: SnapshotId, piece_bytes: int, file: BinaryIO) -> None:
    position, size_bytes, source = 0, 1, None
    while position < size_bytes:
        answer = quorum.fetch_snapshot(snapshot_id, position, piece_bytes, final=SNAPSHOT_GONE)
        if source not in (None, quorum.answered_by):
            # Another leader's file may end before this position.
            position, source = 0, None
            file.seek(0)
            file.truncate()
            continue
        if answer.error:
            raise SnapshotGone(snapshot_id, str(quorum.answered_by))
        if answer.position != position or not answer.data:
            reason = f"{len(answer.data)} bytes from byte {answer.position} on came"
            raise _corrupt(quorum, snapshot_id, position, reason)
        file.write(answer.data)
        position, size_bytes, source = position + len(answer.data), answer.size_bytes, quorum.answered_by


def _corrupt(quorum: Quorum, snapshot_id: SnapshotId, position: int, reason: str) -> CorruptAnswer:
    """Offsets in a snapshot say nothing: all that is in it is at the last that it covers."""
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
        raise BadSnapshot(f"{len(data)} bytes follow the last whole batch")


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
