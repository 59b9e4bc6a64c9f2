"""Reading a piece of a file page by page: memory doesn't grow with the file."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_wire.columnar.page import Page
from kraft_wire.log.batch import Batch
from kraft_wire.log.errors import BadSnapshot
from kraft_wire.log.snapshot import check_marks
from kraft_wire.spark.batch_walk import PAGE_BYTES, BatchWalk, Gap, Run
from kraft_wire.spark.log_splits import FilePiece
from kraft_wire.spark.log_store import Damage, PlacedPage
from kraft_wire.spark.open_segment import OpenSegment, SegmentChanged, SegmentFile, Spot, opened
from kraft_wire.spark.ranges import DataLoss
from kraft_wire.spark.record_tables import LogPlace, SnapshotPlace


def pages_of(piece: FilePiece, page_bytes: int = PAGE_BYTES) -> Iterator[PlacedPage | Damage]:
    """What is in a piece, in its order. Raises DataLoss, OSError."""
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
    assert piece.snapshot is not None, "it is one"
    end_offset, epoch = piece.snapshot.id
    place = LogPlace(piece.cluster, snapshot=SnapshotPlace(end_offset, epoch, piece.snapshot.timestamp_ms))
    marks = _SnapshotMarks(epoch)
    start = Spot(piece.start, piece.base_offset)
    has_gap = False
    for found in BatchWalk(file, start, next_offset=piece.next_offset, marks=marks, page_bytes=page_bytes):
        if isinstance(found, Run):
            yield _page(piece, found, found.batches, place)
        else:
            has_gap = True
            yield _snapshot_damage(piece, found, end_offset)
    if piece.next_offset is None and not marks.is_ended and not has_gap:
        yield _snapshot_damage(
            piece, Gap(piece.end, end_offset, "the snapshot ends without a footer", None), end_offset
        )


def _snapshot_damage(piece: FilePiece, gap: Gap, end_offset: int) -> Damage:
    """Offsets in a snapshot say nothing: all that is in it is at the last that it covers."""
    return Damage(piece.cluster, piece.path, gap.position, end_offset - 1, gap.reason)


class _SnapshotMarks:
    """Header and footer, and the epoch in the snapshot's name."""

    def __init__(self, epoch: int) -> None:
        self.is_ended = False
        self._epoch = epoch

    def take(self, batch: Batch) -> None:
        header = batch.header
        if header.leader_epoch != self._epoch:
            raise BadSnapshot(f"has a batch of epoch {header.leader_epoch}, not {self._epoch}")
        if self.is_ended:
            raise BadSnapshot("has records behind the footer")
        self.is_ended = check_marks(batch, first=header.base_offset == 0)


def _page(piece: FilePiece, run: Run, batches: list, place: LogPlace) -> PlacedPage:  # type: ignore[type-arg]
    return PlacedPage(Page(run.data, batches), place, f"{piece.path}, from byte {run.position} on")
