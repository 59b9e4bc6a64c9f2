"""Keep the metadata log on disk, as segments with one interface."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kraft_wire.log.batch import Batch, BatchHeader, read_header
from kraft_wire.log.chain import header_problem
from kraft_wire.log.epochs import FILE_NAME as EPOCH_CHECKPOINT
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.files import LOG_SUFFIX, parse_segment_file_name
from kraft_wire.log.recovery import Floor, SnapshotCover, committed_end, trusted_floor
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import OffsetBelowStart
from kraft_wire.storage.log.batch_reader import CHUNK_SIZE_BYTES, read_batches, read_range
from kraft_wire.storage.log.durable_floor import DurableFloor
from kraft_wire.storage.log.log_recovery import TornTail, recover
from kraft_wire.storage.log.segment import Segment
from kraft_wire.storage.log.tail_cache import TailCache

MIB = 1024 * 1024


class LogConfig(msgspec.Struct, frozen=True):
    """Kafka's metadata.log.segment.bytes and metadata.log.segment.ms, and how much of the log's end is
    cached."""

    segment_bytes: int = 1024 * MIB
    segment_ms: int = 7 * 24 * 3600 * 1000
    tail_cache_bytes: int = 4 * MIB


DEFAULT_LOG_CONFIG = LogConfig()


class MetadataLog:
    """Record batches in files, append only.

    One thread owns the log. Only ``flush`` and the iteration of ``batches`` may run in other threads. After a
    failed write every call that writes raises DiskFailed.
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
        """The last VotersRecord in the log when it was opened."""
        self.start_offset = segments[0].base_offset
        self.flushed_offset = segments[-1].end_offset
        self.quorum_epoch = 0
        self.committed_offset = 0
        """Records below this offset are known to be committed. It may be much lower than the high
        watermark."""
        self._segments = segments
        self._below_start: list[Segment] = []
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
        covered: SnapshotCover | None = None,
    ) -> MetadataLog:
        """Read and check all files, and make sure that they are on stable storage.

        ``quorum_epoch`` is the leader epoch in quorum-state; None if there is no such file. A folder without
        segments begins at ``empty_start_offset``. ``covered`` is the part of the log that snapshots cover.
        Raises CorruptLog, with nothing changed, for anything worse than a torn tail; OSError; DiskFailed.
        """
        floor = DurableFloor(folder, disk)
        known = trusted_floor(floor.found, quorum_epoch)
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
        # If quorum-state is missing and the log is empty, only the floor still has an epoch.
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
        """Flush the files that were found, and rewrite derived files that don't match them."""
        for segment in self._segments:
            if segment is not self._segments[-1]:
                segment.index.close()
            else:
                segment.zero_after_end()
            segment.write_indexes()
            segment.flush()
        path = self.folder / EPOCH_CHECKPOINT
        if not path.exists() or path.read_bytes() != self.epochs.text().encode():
            self._write_epochs()
        self._write_floor(flush=True)

    @property
    def end_offset(self) -> int:
        """The log end offset: the offset of the next record."""
        return self._segments[-1].end_offset

    @property
    def size_bytes(self) -> int:
        """The size of all segments."""
        return sum(segment.size_bytes for segment in self._segments)

    # --- writing

    def append(self, batches: Sequence[bytes]) -> None:
        """Write whole batches, contiguous from ``end_offset`` on, at once. ``flush`` makes them durable.

        Raises ValueError, before anything is written, for batches that can't come next.
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
            self._assign_epochs(headers)

    def _assign_epochs(self, headers: Sequence[BatchHeader]) -> None:
        """Note where epochs begin.

        A failover doesn't wait until the disk has leader-epoch-checkpoint: it is made again when the log is
        opened, also by Java, which reads the whole log then. Only the first checkpoint is flushed: it shows
        that there were records, should all segments be lost. After a power cut a later one may be empty.
        """
        is_first = not self.epochs.entries
        for header in headers:
            self.epochs.assign(header.leader_epoch, header.base_offset)
        if is_first:
            self._write_epochs()
        else:
            self._replace_epochs()

    def _headers(self, batches: Sequence[bytes]) -> list[BatchHeader]:
        next_offset = self.end_offset
        epoch = self.epochs.latest_epoch
        headers = []
        for data in batches:
            header = read_header(data, 0)
            if header is None or header.size_bytes != len(data):
                raise ValueError(f"{len(data)} bytes at offset {next_offset} are not one whole batch")
            problem = header_problem(header, next_offset, epoch)
            if problem:
                raise ValueError(f"a batch can't be appended at offset {next_offset}: {problem}")
            next_offset, epoch = header.next_offset, header.leader_epoch
            headers.append(header)
        if not headers:
            raise ValueError("nothing to append")
        return headers

    def _roll(self) -> Segment:
        """Begin a new segment. The segment before is flushed first, so that only the last one can be torn."""
        active = self._segments[-1]
        active.flush()
        active.close_index()
        rolled = Segment.create(self.folder, active.end_offset, self._disk)
        self._segments.append(rolled)
        return rolled

    def flush(self) -> int:
        """Wait until everything appended so far is on stable storage; returns the offset after it.

        Then remove the files of deleted segments.

        May run in another thread while the owner appends and reads.
        """
        with self._flushing:
            end_offset = self.end_offset
            self._segments[-1].flush()
            self.flushed_offset = end_offset
            self._write_floor()
            self._remove_below_start()
            return end_offset

    def check_files(self) -> None:
        """Raise FileGone if somebody else deleted or moved a file that a restart needs. May run in another
        thread."""
        self._floor.check_present()
        for segment in list(self._segments):
            if not segment.is_present():
                self._check_segment(segment)

    def _check_segment(self, segment: Segment) -> None:
        """Raise FileGone, unless the log itself has removed the segment meanwhile."""
        with self._flushing, self._files:
            if segment in self._segments:
                segment.check_present()

    def _write_floor(self, *, flush: bool = False) -> None:
        floor = Floor(self.flushed_offset, self.quorum_epoch, self.committed_offset)
        self._floor.write(floor, flush=flush)

    def _write_epochs(self) -> None:
        self._disk.replace(self.folder / EPOCH_CHECKPOINT, self.epochs.text().encode())

    def _replace_epochs(self) -> None:
        self._disk.replace_derived(self.folder / EPOCH_CHECKPOINT, self.epochs.text().encode())

    def note_quorum_epoch(self, epoch: int) -> None:
        """Note that quorum-state has ``epoch`` from now on."""
        with self._flushing:
            self.quorum_epoch = epoch
            self._write_floor()

    def note_committed(self, offset: int) -> None:
        """Note that records below ``offset`` are committed. The next flush writes it down."""
        self.committed_offset = offset

    # --- reading

    def read(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        """Return whole batches from the one that holds ``offset`` on, all below ``end_offset``.

        Returns about ``max_bytes``, but at least one batch; nothing at the end. Raises OffsetBelowStart.
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
        """Yield every batch from the one that holds ``offset`` on, below ``end_offset`` or the end at this
        moment.

        Reads a chunk at a time, so that a long log is never in memory as a whole. Raises OffsetBelowStart,
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
        """Return some batches, among them the one that holds ``offset``."""
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

    # --- truncating and deleting

    def truncate_to(self, offset: int) -> int:
        """Delete the batch that holds ``offset`` and everything after it; returns the new end offset.

        The new end, and what remains, are on stable storage then. Raises OffsetBelowStart.
        """
        if offset < self.start_offset:
            raise OffsetBelowStart(offset, self.start_offset)
        if offset >= self.end_offset:
            return self.flush()
        with self._flushing, self._files:
            self._lower_floor(offset)
            while self._segments[-1].base_offset >= offset and len(self._segments) > 1:
                self._segments.pop().remove()
            # This flushes the whole file; earlier segments were flushed when it was created.
            self._segments[-1].truncate_to(offset)
            self.flushed_offset = self.end_offset
            self._write_floor()
        self._tail.truncate_to(self.end_offset)
        if self.epochs.truncate_from_end(self.end_offset):
            self._write_epochs()
        return self.end_offset

    def _lower_floor(self, offset: int) -> None:
        """Lower the floor before the log is truncated."""
        self.flushed_offset = min(self.flushed_offset, offset)
        self.committed_offset = min(self.committed_offset, offset)
        self._write_floor(flush=True)

    def delete_before(self, offset: int) -> bool:
        """Let the log start at ``offset``, without the segments that are wholly below it; returns whether
        there were any. The next flush removes their files, because that takes long on a busy disk.

        A snapshot must cover the deleted records. After a restart, the log starts where its first segment
        does.
        """
        offset = min(offset, self.end_offset)
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        with self._files:
            keep = bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1
            self._below_start += self._segments[:keep]
            del self._segments[:keep]
        if self.epochs.truncate_from_start(offset):
            self._replace_epochs()
        return keep > 0

    def _remove_below_start(self) -> None:
        """Remove the files of segments that the log has no more, the oldest first: what is left after a power
        cut must have no gap."""
        while self._below_start:
            self._below_start.pop(0).remove()

    def reset_to(self, offset: int) -> None:
        """Delete everything and start again, empty, at ``offset``, the end of a snapshot that was
        installed."""
        with self._flushing, self._files:
            self._lower_floor(0)
            self._remove_below_start()
            while self._segments:
                self._segments.pop().remove()
            self._segments.append(Segment.create(self.folder, offset, self._disk))
            self.start_offset = self.flushed_offset = offset
            self._write_floor(flush=True)
        self._tail = TailCache(self._config.tail_cache_bytes)
        self.epochs = EpochCache()
        self._write_epochs()

    def close(self) -> None:
        """Flush, complete the indexes, and close the files. Raises DiskFailed, with the files closed."""
        try:
            self.flush()
            self._segments[-1].close_index()
            self._write_floor(flush=True)
        finally:
            self._close_files()

    def _close_files(self) -> None:
        with self._flushing, self._files:
            for segment in (*self._below_start, *self._segments):
                segment.close()
            self._floor.close()


def _base_offsets(folder: Path) -> list[int]:
    names = (parse_segment_file_name(path.name) for path in folder.iterdir())
    return sorted(base_offset for base_offset, suffix in filter(None, names) if suffix == LOG_SUFFIX)
