"""One segment of the log: its file and its two indexes."""

from __future__ import annotations

import os
from pathlib import Path

from kraft_wire.log.batch import BatchHeader
from kraft_wire.log.files import (
    INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    segment_file_name,
)
from kraft_wire.log.index import SegmentIndex
from kraft_wire.storage.batch_reader import read_batches
from kraft_wire.storage.disk import Disk

_PAGE_SIZE_BYTES = 4096
_MAX_RELATIVE_OFFSET = 2**31 - 1


class Segment:
    """A run of batches in one file.

    The indexes live in memory; their files are for Kafka's tools and controllers, are appended to without a
    flush, and are made anew from the batches whenever the segment is opened.
    """

    def __init__(self, folder: Path, base_offset: int, fd: int, disk: Disk) -> None:
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.size_bytes = 0
        self.first_timestamp: int | None = None
        self.index = SegmentIndex(base_offset)
        self.folder = folder
        self.path = folder / segment_file_name(base_offset)
        self.fd = fd
        self._disk = disk
        self._index_sizes = [0, 0]
        self._index_fds: list[int] = []

    @classmethod
    def create(cls, folder: Path, base_offset: int, disk: Disk) -> Segment:
        """A new, empty segment; its name is on stable storage. Raises DiskFailed."""
        segment = cls(folder, base_offset, disk.create(folder / segment_file_name(base_offset)), disk)
        segment.write_indexes()
        disk.flush_folder(folder)
        return segment

    @classmethod
    def open(cls, folder: Path, base_offset: int, disk: Disk, *, mode: int = os.O_RDWR) -> Segment:
        """A segment that is there, not looked into yet: feed ``note`` with its batches. Raises OSError."""
        fd = os.open(folder / segment_file_name(base_offset), mode | os.O_CLOEXEC)
        return cls(folder, base_offset, fd, disk)

    def file_size_bytes(self) -> int:
        return os.fstat(self.fd).st_size

    def note(self, header: BatchHeader) -> tuple[bytes, bytes]:
        """Take in that the next batch is in the file; returns what it adds to the indexes' files."""
        if self.first_timestamp is None:
            self.first_timestamp = header.max_timestamp
        entries = self.index.add(header.last_offset, header.max_timestamp, self.size_bytes)
        self.size_bytes += header.size_bytes
        self.end_offset = header.next_offset
        return entries

    def append(self, data: bytes, headers: list[BatchHeader]) -> None:
        """Write batches, given as their bytes and their headers, behind the last. Raises DiskFailed."""
        self._disk.write(self.fd, data, self.size_bytes, self.path)
        for header in headers:
            for which, entry in enumerate(self.note(header)):
                if entry:
                    self._append_to_index(which, entry)

    def should_roll(self, first: BatchHeader, size_bytes: int, limit_bytes: int, limit_ms: int) -> bool:
        """Whether what comes next belongs into a new segment (Kafka's LogSegment.shouldRoll)."""
        if not self.size_bytes:
            return False
        waited_ms = first.max_timestamp - (self.first_timestamp or 0)
        return (
            self.size_bytes + size_bytes > limit_bytes
            or waited_ms > limit_ms
            or first.last_offset - self.base_offset > _MAX_RELATIVE_OFFSET
        )

    def truncate_to(self, offset: int) -> None:
        """Drop the batch that holds ``offset`` and all behind it. Raises DiskFailed."""
        position = self.position_of(offset)
        self._disk.truncate(self.fd, position, self.path)
        self._disk.flush_data(self.fd, self.path)
        self._recount(offset, position)
        self.write_indexes()

    def position_of(self, offset: int) -> int:
        """Where the first batch begins that reaches ``offset``; the segment's size where none does."""
        start = self.index.position_before(offset)
        for position, batch in read_batches(self.fd, start, self.size_bytes, check_crc=False):
            if batch.header.last_offset >= offset:
                return position
        return self.size_bytes

    def _recount(self, offset: int, size_bytes: int) -> None:
        """Let the index, the end and the size be those of the first ``size_bytes``."""
        self.index.truncate_to(offset)
        self.size_bytes = self.index.last_indexed_position
        if not self.size_bytes:
            self.end_offset = self.base_offset
            self.first_timestamp = None
        for _, batch in read_batches(self.fd, self.size_bytes, size_bytes, check_crc=False):
            self.note(batch.header)

    def write_indexes(self) -> None:
        """Make the indexes' files say what the indexes say, where they don't. Raises DiskFailed."""
        for which, contents in enumerate((self.index.offset_file(), self.index.time_file())):
            path = self._index_path(which)
            if not path.exists() or path.read_bytes() != contents:
                fd = self._disk.create(path)
                try:
                    self._disk.write(fd, contents, 0, path)
                finally:
                    os.close(fd)
            self._index_sizes[which] = len(contents)

    def close_index(self) -> None:
        """Nothing will be appended: let the time index end with the largest timestamp. Raises DiskFailed."""
        entry = self.index.close()
        if entry:
            self._append_to_index(1, entry)
        while self._index_fds:
            os.close(self._index_fds.pop())

    def _append_to_index(self, which: int, entry: bytes) -> None:
        if not self._index_fds:
            self._index_fds = [os.open(self._index_path(n), os.O_WRONLY | os.O_CLOEXEC) for n in (0, 1)]
        self._disk.write(self._index_fds[which], entry, self._index_sizes[which], self._index_path(which))
        self._index_sizes[which] += len(entry)

    def _index_path(self, which: int) -> Path:
        suffix = (INDEX_SUFFIX, TIME_INDEX_SUFFIX)[which]
        return self.folder / segment_file_name(self.base_offset, suffix)

    def clear_behind_end(self) -> None:
        """Let the rest of the file's last block be zeros, on the disk as well, once it is flushed.

        Bytes that were written and not flushed before a power cut may be there, although the file ends before
        them: they would come back with the next bytes that are written and not flushed. Raises DiskFailed.
        """
        self._disk.write(self.fd, bytes(-self.size_bytes % _PAGE_SIZE_BYTES), self.size_bytes, self.path)
        self._disk.truncate(self.fd, self.size_bytes, self.path)

    def flush(self) -> None:
        """Every batch is on stable storage when this returns. Raises DiskFailed."""
        self._disk.flush_data(self.fd, self.path)

    def close(self) -> None:
        """Let go of the files."""
        while self._index_fds:
            os.close(self._index_fds.pop())
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def remove(self) -> None:
        """Close and delete every file of the segment; the folder is flushed. Raises DiskFailed."""
        self.close()
        for suffix in SEGMENT_SUFFIXES:
            self._disk.remove(self.folder / segment_file_name(self.base_offset, suffix))
        self._disk.flush_folder(self.folder)
