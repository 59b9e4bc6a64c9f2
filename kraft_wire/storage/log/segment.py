"""Keep one segment of the log: its file and its two indexes."""

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
from kraft_wire.storage.disk import Disk, identity_of
from kraft_wire.storage.log.batch_reader import read_batches

GONE = (
    "if it was deleted, restore its folder from a copy; without one, a controller with peers fetches what it "
    "lost from the leader, and one that is alone has lost these records"
)
_PAGE_SIZE_BYTES = 4096
_MAX_RELATIVE_OFFSET = 2**31 - 1


class Segment:
    """A run of batches in one file.

    The indexes live in memory. Their files are for Kafka's tools and controllers: they are appended to
    without a flush, and rebuilt from the batches whenever the segment is opened.
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
        self._identity = identity_of(fd)
        self._disk = disk
        self._index_paths = [
            folder / segment_file_name(base_offset, suffix) for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX)
        ]
        self._index_sizes = [0, 0]
        self._index_fds: list[int] = []

    @classmethod
    def create(cls, folder: Path, base_offset: int, disk: Disk) -> Segment:
        """Create an empty segment and flush the folder. Raises DiskFailed."""
        segment = cls(folder, base_offset, disk.create(folder / segment_file_name(base_offset)), disk)
        segment.write_indexes()
        disk.flush_folder(folder)
        return segment

    @classmethod
    def open(cls, folder: Path, base_offset: int, disk: Disk, *, mode: int = os.O_RDWR) -> Segment:
        """Open an existing segment without reading it: call ``note`` with each of its batches. Raises
        OSError."""
        fd = os.open(folder / segment_file_name(base_offset), mode | os.O_CLOEXEC)
        return cls(folder, base_offset, fd, disk)

    def file_size_bytes(self) -> int:
        return os.fstat(self.fd).st_size

    def note(self, header: BatchHeader) -> tuple[bytes, bytes]:
        """Add the next batch in the file to the indexes; returns what it adds to their files."""
        if self.first_timestamp is None:
            self.first_timestamp = header.max_timestamp
        entries = self.index.add(header.last_offset, header.max_timestamp, self.size_bytes)
        self.size_bytes += header.size_bytes
        self.end_offset = header.next_offset
        return entries

    def append(self, data: bytes, headers: list[BatchHeader]) -> None:
        """Write batches, given as bytes and headers, at the end. Raises DiskFailed."""
        self._disk.write(self.fd, data, self.size_bytes, self.path)
        for header in headers:
            for which, entry in enumerate(self.note(header)):
                if entry:
                    self._append_to_index(which, entry)

    def should_roll(self, first: BatchHeader, size_bytes: int, limit_bytes: int, limit_ms: int) -> bool:
        """Whether the next batches belong in a new segment (Kafka's LogSegment.shouldRoll)."""
        if not self.size_bytes:
            return False
        waited_ms = first.max_timestamp - (self.first_timestamp or 0)
        return (
            self.size_bytes + size_bytes > limit_bytes
            or waited_ms > limit_ms
            or first.last_offset - self.base_offset > _MAX_RELATIVE_OFFSET
        )

    def truncate_to(self, offset: int) -> None:
        """Delete the batch that holds ``offset`` and everything after it. Raises DiskFailed."""
        position = self.position_of(offset)
        self._disk.truncate(self.fd, position, self.path)
        self._disk.flush_data(self.fd, self.path)
        self._recount(offset, position)
        self.write_indexes()

    def position_of(self, offset: int) -> int:
        """Return where the first batch begins that reaches ``offset``; the segment's size if there is
        none."""
        start = self.index.position_before(offset)
        for position, batch in read_batches(self.fd, start, self.size_bytes, check_crc=False):
            if batch.header.last_offset >= offset:
                return position
        return self.size_bytes

    def _recount(self, offset: int, size_bytes: int) -> None:
        """Rebuild index, end offset and size from the first ``size_bytes``."""
        self.index.truncate_to(offset)
        self.size_bytes = self.index.last_indexed_position
        if not self.size_bytes:
            self.end_offset = self.base_offset
            self.first_timestamp = None
        for _, batch in read_batches(self.fd, self.size_bytes, size_bytes, check_crc=False):
            self.note(batch.header)

    def write_indexes(self) -> None:
        """Write the indexes' files if they don't match the indexes. Raises DiskFailed."""
        for which, contents in enumerate((self.index.offset_file(), self.index.time_file())):
            path = self._index_paths[which]
            if not path.exists() or path.read_bytes() != contents:
                fd = self._disk.create(path)
                try:
                    self._disk.write(fd, contents, 0, path)
                finally:
                    os.close(fd)
            self._index_sizes[which] = len(contents)

    def close_index(self) -> None:
        """End the time index with the largest timestamp, as nothing more will be appended. Raises
        DiskFailed."""
        entry = self.index.close()
        if entry:
            self._append_to_index(1, entry)
        while self._index_fds:
            os.close(self._index_fds.pop())

    def _append_to_index(self, which: int, entry: bytes) -> None:
        if not self._index_fds:
            self._index_fds = [os.open(path, os.O_WRONLY | os.O_CLOEXEC) for path in self._index_paths]
        self._disk.write(self._index_fds[which], entry, self._index_sizes[which], self._index_paths[which])
        self._index_sizes[which] += len(entry)

    def zero_after_end(self) -> None:
        """Fill the rest of the file's last block with zeros, on the disk as well once it is flushed.

        Bytes that were written and not flushed before a power cut may be there, although the file ends before
        them: they would come back with the next bytes that are written and not flushed. Raises DiskFailed.
        """
        self._disk.write(self.fd, bytes(-self.size_bytes % _PAGE_SIZE_BYTES), self.size_bytes, self.path)
        self._disk.truncate(self.fd, self.size_bytes, self.path)

    def flush(self) -> None:
        """Wait until every batch is on stable storage, in a file that is still there. Raises DiskFailed."""
        self._disk.flush_data(self.fd, self.path)
        self.check_present()

    def is_present(self) -> bool:
        """Whether the file is still there under its name. Raises DiskFailed."""
        return self._disk.is_present(self.path, self._identity)

    def check_present(self) -> None:
        """Raise FileGone if the file is not there any more under its name."""
        self._disk.check_present(self.path, self._identity, GONE)

    def close(self) -> None:
        """Close the files."""
        while self._index_fds:
            os.close(self._index_fds.pop())
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def remove(self) -> None:
        """Close and delete every file of the segment, and flush the folder. Raises DiskFailed."""
        self.close()
        for suffix in SEGMENT_SUFFIXES:
            self._disk.remove(self.folder / segment_file_name(self.base_offset, suffix))
        self._disk.flush_folder(self.folder)
