"""The metadata log on disk: segments behind one interface."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kraft_wire.log.batch import Batch, BatchHeader, read_header
from kraft_wire.log.epochs import FILE_NAME as EPOCH_CHECKPOINT
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.files import LOG_SUFFIX, parse_segment_file_name
from kraft_wire.log.recovery import Covered, Floor, believed, committed_end
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.storage.batch_reader import CHUNK_SIZE_BYTES, read_batches, read_range
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.durable_floor import DurableFloor
from kraft_wire.storage.errors import OffsetBelowStart
from kraft_wire.storage.recovery import TornTail, recover
from kraft_wire.storage.segment import Segment
from kraft_wire.storage.tail_cache import TailCache

MIB = 1024 * 1024


class LogConfig(msgspec.Struct, frozen=True):
    """Kafka's metadata.log.segment.bytes and metadata.log.segment.ms; how much of the log's end stays in
    memory."""

    segment_bytes: int = 1024 * MIB
    segment_ms: int = 7 * 24 * 3600 * 1000
    tail_cache_bytes: int = 4 * MIB


DEFAULT_LOG_CONFIG = LogConfig()


class MetadataLog:
    """Record batches in files, append only.

    One thread owns the log. Two things may go on in others meanwhile: ``flush`` and iterating ``batches``.
    Whatever fails while writing raises DiskFailed, then and ever after.
    """

    def __init__(
        self,
        folder: Path,
        segments: list[Segment],
        epochs: EpochCache,
        disk: Disk,
        floor: DurableFloor,
        config: LogConfig,
    ) -> None:
        self.folder = folder
        self.epochs = epochs
        self.torn_tail: TornTail | None = None
        self.voters: VotersRecord | None = None
        """The last ones that the log named when it was opened."""
        self.start_offset = segments[0].base_offset
        self.flushed_offset = segments[-1].end_offset
        self.quorum_epoch = 0
        self.committed_offset = 0
        """What is below it is committed, by all that this folder knows; it may lag far behind."""
        self._segments = segments
        self._disk = disk
        self._floor = floor
        self._config = config
        self._tail = TailCache(config.tail_cache_bytes)
        self._flushing = threading.Lock()
        self._files = threading.Lock()

    @classmethod
    def open(
        cls,
        folder: Path,
        disk: Disk,
        *,
        config: LogConfig = DEFAULT_LOG_CONFIG,
        quorum_epoch: int | None = None,
        empty_start_offset: int = 0,
        covered: Covered | None = None,
    ) -> MetadataLog:
        """Read and check all that is there, and make sure that it is on stable storage.

        ``quorum_epoch`` is the leader epoch in quorum-state, None where there is no such file. A folder
        without segments begins at ``empty_start_offset``. ``covered`` is what the
        snapshots hold. Raises CorruptLog and changes nothing where more
        than a torn tail is wrong; OSError; DiskFailed.
        """
        floor = DurableFloor(folder, disk)
        known = believed(floor.found, quorum_epoch)
        try:
            base_offsets = _base_offsets(folder)
            if not base_offsets:
                Segment.create(folder, empty_start_offset, disk).close()
                base_offsets = [empty_start_offset]
            recovered = recover(
                folder,
                base_offsets,
                disk,
                durable_floor=known.offset,
                max_epoch=quorum_epoch,
                covered=covered,
            )
        except BaseException:
            floor.close()
            raise
        log = cls(folder, recovered.segments, recovered.epochs, disk, floor, config)
        log.torn_tail = recovered.torn_tail
        log.voters = recovered.voters
        # The floor's is the last trace of an epoch where quorum-state is missing and the log is empty.
        known_epoch = 0 if floor.found is None else floor.found.quorum_epoch
        log.quorum_epoch = known_epoch if quorum_epoch is None else quorum_epoch
        log.committed_offset = committed_end(known, log.end_offset)
        try:
            log._settle()
        except BaseException:
            log._close_files()
            raise
        return log

    def _settle(self) -> None:
        """Flush what was found, and write anew what is derived from it and says something else."""
        for segment in self._segments:
            if segment is not self._segments[-1]:
                segment.index.close()
            else:
                segment.clear_behind_end()
            segment.write_indexes()
            segment.flush()
        path = self.folder / EPOCH_CHECKPOINT
        if not path.exists() or path.read_bytes() != self.epochs.text().encode():
            self._write_epochs()
        self._write_floor(flush=True)

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._segments[-1].end_offset

    @property
    def size_bytes(self) -> int:
        """The size of all segments."""
        return sum(segment.size_bytes for segment in self._segments)

    # --- writing

    def append(self, batches: Sequence[bytes]) -> None:
        """Write whole batches, contiguous from ``end_offset`` on, in one go; ``flush`` makes them count.

        Raises ValueError for batches that cannot come next, before anything is written.
        """
        headers = self._headers(batches)
        size_bytes = sum(map(len, batches))
        active = self._segments[-1]
        if active.should_roll(headers[0], size_bytes, self._config.segment_bytes, self._config.segment_ms):
            active = self._roll()
        active.append(b"".join(batches), headers)
        for header, data in zip(headers, batches, strict=True):
            self._tail.add(header.base_offset, header.last_offset, data)
        if headers[-1].leader_epoch != self.epochs.latest_epoch:
            for header in headers:
                self.epochs.assign(header.leader_epoch, header.base_offset)
            self._write_epochs()

    def _headers(self, batches: Sequence[bytes]) -> list[BatchHeader]:
        next_offset = self.end_offset
        epoch = self.epochs.latest_epoch or 0
        headers = []
        for data in batches:
            header = read_header(data, 0)
            if header is None or header.size_bytes != len(data):
                raise ValueError(f"{len(data)} bytes at offset {next_offset} are not one whole batch")
            if header.base_offset != next_offset or header.leader_epoch < epoch:
                raise ValueError(
                    f"a batch of epoch {header.leader_epoch} at offset {header.base_offset} cannot follow "
                    f"epoch {epoch} that ends at {next_offset}"
                )
            next_offset, epoch = header.next_offset, header.leader_epoch
            headers.append(header)
        if not headers:
            raise ValueError("nothing to append")
        return headers

    def _roll(self) -> Segment:
        """Begin a new segment; the one before is on stable storage first, so that only the last can be
        torn."""
        active = self._segments[-1]
        active.flush()
        active.close_index()
        rolled = Segment.create(self.folder, active.end_offset, self._disk)
        self._segments.append(rolled)
        return rolled

    def flush(self) -> int:
        """Wait until everything appended so far is on stable storage; returns the offset behind it.

        May run in another thread while the owner goes on appending and reading.
        """
        with self._flushing:
            end_offset = self.end_offset
            self._segments[-1].flush()
            self.flushed_offset = end_offset
            self._write_floor()
            return end_offset

    def _write_floor(self, *, flush: bool = False) -> None:
        floor = Floor(self.flushed_offset, self.quorum_epoch, self.committed_offset)
        self._floor.write(floor, flush=flush)

    def _write_epochs(self) -> None:
        self._disk.replace(self.folder / EPOCH_CHECKPOINT, self.epochs.text().encode())

    def note_quorum_epoch(self, epoch: int) -> None:
        """quorum-state says ``epoch`` from now on."""
        with self._flushing:
            self.quorum_epoch = epoch
            self._write_floor()

    def note_committed(self, offset: int) -> None:
        """What is below is committed; remembered with the next flush."""
        self.committed_offset = offset

    # --- reading

    def read(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one that holds ``offset`` on, all of them below ``end_offset``.

        About ``max_bytes``, but at least one batch; empty at the end. Raises OffsetBelowStart.
        """
        if offset < self.start_offset:
            raise OffsetBelowStart(offset, self.start_offset)
        end_offset = min(end_offset, self.end_offset)
        if offset >= end_offset:
            return b""
        cached = self._tail.read(offset, end_offset, max_bytes)
        if cached is not None:
            return cached
        with self._files:
            segment = self._segment_of(offset)
            start = segment.index.position_before(offset)
            return read_range(segment.fd, start, segment.size_bytes, offset, end_offset, max_bytes)

    def batches(
        self, offset: int, end_offset: int | None = None, chunk_size_bytes: int = CHUNK_SIZE_BYTES
    ) -> Iterator[Batch]:
        """Every batch from the one that holds ``offset`` on, below ``end_offset`` (the end as it is now).

        Reads a chunk at a time, so that a long log never is in memory as a whole. Raises OffsetBelowStart,
        CorruptBatch, OSError.
        """
        end = self.end_offset if end_offset is None else min(end_offset, self.end_offset)
        while offset < end:
            for batch in self._chunk(offset, chunk_size_bytes):
                if batch.header.last_offset >= end:
                    return
                if batch.header.last_offset >= offset:
                    yield batch
                    offset = batch.header.next_offset

    def _chunk(self, offset: int, size_bytes: int) -> list[Batch]:
        """Some batches, the one that holds ``offset`` among them."""
        if offset < self.start_offset:
            raise OffsetBelowStart(offset, self.start_offset)
        chunk: list[Batch] = []
        with self._files:
            segment = self._segment_of(offset)
            start = segment.index.position_before(offset)
            for position, batch in read_batches(segment.fd, start, segment.size_bytes):
                chunk.append(batch)
                if position - start >= size_bytes and batch.header.last_offset >= offset:
                    break
        return chunk

    def _segment_of(self, offset: int) -> Segment:
        number = bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1
        return self._segments[number]

    # --- forgetting

    def truncate_to(self, offset: int) -> int:
        """Drop the batch that holds ``offset`` and all behind it; returns the new end.

        That it ends there, and all that remains, is on stable storage then. Raises OffsetBelowStart.
        """
        if offset < self.start_offset:
            raise OffsetBelowStart(offset, self.start_offset)
        if offset >= self.end_offset:
            return self.flush()
        with self._flushing, self._files:
            self._lower_floor(offset)
            while self._segments[-1].base_offset >= offset and len(self._segments) > 1:
                self._segments.pop().remove()
            # Flushes the whole file; the segments before it were flushed when it was begun.
            self._segments[-1].truncate_to(offset)
            self.flushed_offset = self.end_offset
            self._write_floor()
        self._tail.truncate_to(self.end_offset)
        if self.epochs.truncate_from_end(self.end_offset):
            self._write_epochs()
        return self.end_offset

    def _lower_floor(self, offset: int) -> None:
        """The floor goes down before the log does."""
        self.flushed_offset = min(self.flushed_offset, offset)
        self.committed_offset = min(self.committed_offset, offset)
        self._write_floor(flush=True)

    def delete_before(self, offset: int) -> bool:
        """Let the log start at ``offset`` and delete the segments wholly below; tells whether there were any.

        A snapshot must cover what goes. Restarted, the log starts where its first segment does.
        """
        offset = min(offset, self.end_offset)
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        with self._flushing, self._files:
            keep = bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1
            for segment in self._segments[:keep]:
                segment.remove()
            del self._segments[:keep]
        if self.epochs.truncate_from_start(offset):
            self._write_epochs()
        return keep > 0

    def reset_to(self, offset: int) -> None:
        """Drop everything and begin anew at ``offset``, the end of a snapshot that was installed."""
        with self._flushing, self._files:
            self._lower_floor(0)
            while self._segments:
                self._segments.pop().remove()
            self._segments.append(Segment.create(self.folder, offset, self._disk))
            self.start_offset = self.flushed_offset = offset
            self._write_floor(flush=True)
        self._tail = TailCache(self._config.tail_cache_bytes)
        self.epochs = EpochCache()
        self._write_epochs()

    def close(self) -> None:
        """Flush, let the indexes end properly, close the files. Raises DiskFailed, with the files closed."""
        try:
            self.flush()
            self._segments[-1].close_index()
            self._write_floor(flush=True)
        finally:
            self._close_files()

    def _close_files(self) -> None:
        with self._flushing, self._files:
            for segment in self._segments:
                segment.close()
            self._floor.close()


def _base_offsets(folder: Path) -> list[int]:
    names = (parse_segment_file_name(path.name) for path in folder.iterdir())
    return sorted(base_offset for base_offset, suffix in filter(None, names) if suffix == LOG_SUFFIX)
