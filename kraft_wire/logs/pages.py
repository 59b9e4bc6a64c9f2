"""Read a piece of a file page by page, so that memory doesn't grow with the file."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_wire.columnar.page import Page
from kraft_wire.log.batch import BatchHeader
from kraft_wire.log.snapshot import SnapshotMarks
from kraft_wire.logs.open_segment import OpenSegment, SegmentFile, opened
from kraft_wire.logs.places import LogPlace, PlacedPage, SnapshotPlace
from kraft_wire.logs.ranges import DataLoss
from kraft_wire.logs.splits import FilePiece
from kraft_wire.logs.store import Damage
from kraft_wire.logs.walk import BatchWalk, Gap, Run, Spot
from kraft_wire.storage.errors import SegmentChanged
from kraft_wire.storage.log.batch_reader import CHUNK_SIZE_BYTES


def pages_of(piece: FilePiece, page_bytes: int = CHUNK_SIZE_BYTES) -> Iterator[PlacedPage | Damage]:
    """Yield the pages of a piece, and the damage in it, in order. Raises DataLoss, OSError."""
    try:
        with opened(SegmentFile(piece.path, piece.base_offset, piece.end)) as file:
            read = _log_pages if piece.snapshot is None else _snapshot_pages
            yield from read(piece, file, page_bytes)
    except SegmentChanged as error:
        asked = f"offsets from {piece.base_offset} on were to be read"
        raise DataLoss(piece.cluster, asked, str(error), "Read again from what there is now") from None


def _log_pages(piece: FilePiece, file: OpenSegment, page_bytes: int) -> Iterator[PlacedPage | Damage]:
    place = LogPlace(
        piece.cluster,
        piece.committed_end_offset,
        start_offset=piece.from_offset,
        end_offset=piece.to_offset,
    )
    walk = BatchWalk(
        file,
        Spot(piece.start, piece.base_offset),
        next_offset=piece.next_offset,
        stop_offset=piece.to_offset,
        durable_offset=piece.durable_offset,
        page_bytes=page_bytes,
    )
    for found in walk:
        if isinstance(found, Run):
            wanted = [each for each in found.batches if each[1].last_offset >= piece.from_offset]
            if wanted:
                yield _page(piece, found, wanted, place)
        elif found.resume_offset is None or found.resume_offset > piece.from_offset:
            yield Damage(piece.cluster, piece.path, *found)


def _snapshot_pages(piece: FilePiece, file: OpenSegment, page_bytes: int) -> Iterator[PlacedPage | Damage]:
    assert piece.snapshot is not None, "the piece is of a snapshot"
    end_offset, epoch = piece.snapshot.id
    place = LogPlace(piece.cluster, snapshot=SnapshotPlace(end_offset, epoch, piece.snapshot.timestamp_ms))
    marks = SnapshotMarks(epoch)
    start = Spot(piece.start, piece.base_offset)
    has_gap = False
    for found in BatchWalk(file, start, next_offset=piece.next_offset, marks=marks, page_bytes=page_bytes):
        if isinstance(found, Run):
            yield _page(piece, found, found.batches, place)
        else:
            has_gap = True
            yield _snapshot_damage(piece, found, end_offset)
    if piece.next_offset is None and not marks.has_footer and not has_gap:
        yield _snapshot_damage(
            piece, Gap(piece.end, end_offset, "the snapshot ends without a footer", None), end_offset
        )


def _snapshot_damage(piece: FilePiece, gap: Gap, end_offset: int) -> Damage:
    """Return the damage at the last offset that the snapshot covers: all rows of a snapshot have that
    offset."""
    return Damage(piece.cluster, piece.path, gap.position, end_offset - 1, gap.reason)


def _page(piece: FilePiece, run: Run, batches: list[tuple[int, BatchHeader]], place: LogPlace) -> PlacedPage:
    return PlacedPage(Page(run.data, batches), place, f"{piece.path}, from byte {run.position} on")
