"""Keep snapshots on disk, in ``END_OFFSET-EPOCH.checkpoint`` files beside the log's segments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kraft_wire.log.batch import Batch, record_values
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.errors import BadSnapshot, CorruptBatch, NewerControlRecord
from kraft_wire.log.snapshot import (
    BOOTSTRAP_SNAPSHOT_ID,
    PARTIAL_SUFFIX,
    SnapshotId,
    checked_batches,
    parse_snapshot_file_name,
    snapshot_file_name,
)
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.storage.disk import Disk, read_at
from kraft_wire.storage.errors import CorruptSnapshot, NewerSnapshot
from kraft_wire.storage.log.batch_reader import read_batches

CORRUPT_SUFFIX = ".checkpoint.corrupt"
"""The suffix of a damaged snapshot that was set aside. Neither kraft-wire nor Java reads it; the bytes are
kept."""

LEGACY_BOOTSTRAP = "bootstrap.checkpoint"
"""The file in the metadata folder with the bootstrap records, as Kafka before 4.4 wrote it."""

GONE = (
    "if it was deleted, restore it from a copy; without one, the controller starts only if the log or its "
    "peers have what the snapshot held"
)
_READ_ONLY = 0o400


class SnapshotWriter:
    """A snapshot that is being written: ``append`` its bytes, then ``finish`` or ``abandon`` it."""

    def __init__(self, folder: Path, snapshot_id: SnapshotId, disk: Disk) -> None:
        self.snapshot_id = snapshot_id
        self.size_bytes = 0
        self._path = folder / snapshot_file_name(snapshot_id)
        self._partial = folder / snapshot_file_name(snapshot_id, PARTIAL_SUFFIX)
        self._disk = disk
        self._fd = disk.create(self._partial)

    def append(self, data: bytes) -> None:
        """Write bytes at the end. Raises DiskFailed."""
        self._disk.write(self._fd, data, self.size_bytes, self._partial)
        self.size_bytes += len(data)

    def open_reader(self) -> SnapshotReader:
        """Return a reader of what was written so far, for another thread: it stays readable after
        ``abandon``."""
        return SnapshotReader(os.dup(self._fd), self.snapshot_id, self._partial, self.size_bytes, self._disk)

    def finish(self) -> int:
        """Flush the snapshot, give it its name, and return its size. Raises DiskFailed."""
        os.fchmod(self._fd, _READ_ONLY)
        self._disk.flush_data(self._fd, self._partial)
        self._close()
        self._disk.rename(self._partial, self._path)
        return self.size_bytes

    def abandon(self) -> None:
        """Delete the file, even after the disk failed: an unfinished snapshot must not fill the disk. Raises
        OSError."""
        self._close()
        self._partial.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class SnapshotReader:
    """A snapshot that another thread reads, unfinished or not. It stays readable when it is deleted, because
    it has a file descriptor of its own."""

    def __init__(self, fd: int, snapshot_id: SnapshotId, path: Path, size_bytes: int, disk: Disk) -> None:
        self.id = snapshot_id
        self.path = path
        self.size_bytes = size_bytes
        self._fd = fd
        self._disk = disk

    def batches(self) -> Iterator[Batch]:
        """Yield every batch, with checksums, header and footer checked. Raises CorruptSnapshot, OSError."""
        return _checked(self._fd, self.size_bytes, self.path, self.id.epoch)

    def flush(self) -> None:
        """Wait until the file is on stable storage. Raises DiskFailed."""
        self._disk.flush_data(self._fd, self.path)

    def close(self) -> None:
        os.close(self._fd)


def write_snapshot(folder: Path, snapshot_id: SnapshotId, chunks: Iterable[bytes], disk: Disk) -> int:
    """Write a whole snapshot and flush it; returns its size. Raises DiskFailed.

    Needs no SnapshotStore, so that a helper process can call it; ``SnapshotStore.add`` adds it to the store.
    """
    writer = SnapshotWriter(folder, snapshot_id, disk)
    try:
        for chunk in chunks:
            writer.append(chunk)
        return writer.finish()
    except BaseException:
        writer.abandon()
        raise


class SnapshotStore:
    """The snapshots of a folder. A file stays open once it was read, until the snapshot is deleted or the
    store closed."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        self.folder = folder
        self._disk = disk
        self._fds: dict[SnapshotId, int] = {}
        found = (parse_snapshot_file_name(path.name) for path in folder.iterdir())
        self._ids = sorted(snapshot_id for snapshot_id in found if snapshot_id is not None)

    @property
    def ids(self) -> list[SnapshotId]:
        """All snapshots, the bootstrap one included, ascending by end offset and epoch."""
        return list(self._ids)

    @property
    def latest(self) -> SnapshotId | None:
        return self._ids[-1] if self._ids else None

    @property
    def earliest(self) -> SnapshotId | None:
        return self._ids[0] if self._ids else None

    def path(self, snapshot_id: SnapshotId) -> Path:
        return self.folder / snapshot_file_name(snapshot_id)

    def size_bytes(self, snapshot_id: SnapshotId) -> int:
        """Return the file's size. Raises OSError."""
        return os.fstat(self._open(snapshot_id)).st_size

    def read(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        """Return up to ``max_bytes`` of the file; fewer only at its end. Raises OSError."""
        return read_at(self._open(snapshot_id), position, max_bytes)

    def batches(self, snapshot_id: SnapshotId) -> Iterator[Batch]:
        """Yield every batch, with checksums, header and footer checked. Raises CorruptSnapshot, OSError."""
        fd, size_bytes = self._open(snapshot_id), self.size_bytes(snapshot_id)
        return _checked(fd, size_bytes, self.path(snapshot_id), snapshot_id.epoch)

    def verify(self, snapshot_id: SnapshotId) -> None:
        """Read all batches. Raises CorruptSnapshot, OSError."""
        for _ in self.batches(snapshot_id):
            pass

    def open_reader(self, snapshot_id: SnapshotId) -> SnapshotReader:
        """Return a reader for another thread: the snapshot stays readable when it is deleted. Raises
        OSError."""
        fd = os.dup(self._open(snapshot_id))
        path, size_bytes = self.path(snapshot_id), self.size_bytes(snapshot_id)
        return SnapshotReader(fd, snapshot_id, path, size_bytes, self._disk)

    def problem_of(self, snapshot_id: SnapshotId) -> CorruptSnapshot | None:
        """Return what is wrong with a snapshot; None if it is whole. NewerSnapshot is no damage. Raises
        OSError."""
        try:
            self.verify(snapshot_id)
        except CorruptSnapshot as error:
            return error
        return None

    def control(self, snapshot_id: SnapshotId) -> list[Message]:
        """Return the messages of the first batch: header, kraft.version, voters. Raises CorruptSnapshot."""
        return decode_control_batch(next(self.batches(snapshot_id)))

    def last_contained_log_timestamp_ms(self, snapshot_id: SnapshotId) -> int:
        """Return when the last record that the snapshot covers was appended. Raises CorruptSnapshot."""
        header = self.control(snapshot_id)[0]
        assert isinstance(header, SnapshotHeaderRecord), "checked by batches()"
        return header.last_contained_log_timestamp

    def create(self, snapshot_id: SnapshotId) -> SnapshotWriter:
        """Start a new snapshot; ``add`` it when it is finished. Raises DiskFailed."""
        return SnapshotWriter(self.folder, snapshot_id, self._disk)

    def add(self, snapshot_id: SnapshotId) -> None:
        """Add a finished snapshot to the store."""
        if snapshot_id not in self._ids:
            self._ids = sorted([*self._ids, snapshot_id])

    def write(self, snapshot_id: SnapshotId, chunks: Iterable[bytes]) -> int:
        """Write a whole snapshot and add it to the store; returns its size. Raises DiskFailed."""
        size_bytes = write_snapshot(self.folder, snapshot_id, chunks, self._disk)
        self.add(snapshot_id)
        return size_bytes

    def check_latest_present(self) -> None:
        """Raise FileGone if the newest snapshot is not there any more. May run in another thread: the newest
        one is never deleted by the node."""
        if self._ids:
            self._disk.check_present(self.path(self._ids[-1]), None, GONE)

    def delete(self, snapshot_id: SnapshotId) -> None:
        """Delete a snapshot. Raises DiskFailed.

        Nobody waits for the disk: a snapshot that is there again after a power cut is deleted again.
        """
        self._forget(snapshot_id)
        self._disk.remove(self.path(snapshot_id))

    def set_aside(self, snapshot_id: SnapshotId) -> Path:
        """Rename a damaged snapshot so that nothing loads it; returns its new path. Raises DiskFailed."""
        self._forget(snapshot_id)
        aside = self.folder / snapshot_file_name(snapshot_id, CORRUPT_SUFFIX)
        self._disk.rename(self.path(snapshot_id), aside)
        return aside

    def close(self) -> None:
        for snapshot_id in list(self._fds):
            os.close(self._fds.pop(snapshot_id))

    def _open(self, snapshot_id: SnapshotId) -> int:
        fd = self._fds.get(snapshot_id)
        if fd is None:
            fd = self._fds[snapshot_id] = os.open(self.path(snapshot_id), os.O_RDONLY | os.O_CLOEXEC)
        return fd

    def _forget(self, snapshot_id: SnapshotId) -> None:
        self._ids = [other for other in self._ids if other != snapshot_id]
        fd = self._fds.pop(snapshot_id, None)
        if fd is not None:
            os.close(fd)


def bootstrap_values(snapshots: SnapshotStore, metadata_dir: Path) -> list[bytes] | None:
    """Return the encoded records that format left for the first leader of an empty log.

    They are in the 0-0 snapshot; if it has none, in ``bootstrap.checkpoint``, as Kafka before 4.4 wrote them.
    Returns None if there is neither file, and an empty list if one was damaged, so that no other records take
    their place. Raises CorruptSnapshot.
    """
    values: list[bytes] | None = None
    if BOOTSTRAP_SNAPSHOT_ID in snapshots.ids:
        values = _data_values(snapshots.batches(BOOTSTRAP_SNAPSHOT_ID))
    legacy = metadata_dir / LEGACY_BOOTSTRAP
    if not values and legacy.exists():
        try:
            values = read_legacy_bootstrap(legacy)
        except CorruptSnapshot as error:
            text = f"{error.problem}. Restore it from a copy, such as that of another controller"
            raise CorruptSnapshot(legacy, text) from error
    damaged = snapshots.folder / snapshot_file_name(BOOTSTRAP_SNAPSHOT_ID, CORRUPT_SUFFIX)
    return [] if values is None and damaged.exists() else values


def read_legacy_bootstrap(path: Path) -> list[bytes]:
    """Return the encoded records in a ``bootstrap.checkpoint``. Raises CorruptSnapshot, OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _data_values(_checked(fd, os.fstat(fd).st_size, path, None))
    finally:
        os.close(fd)


def _data_values(batches: Iterable[Batch]) -> list[bytes]:
    return [value for batch in batches if not batch.header.is_control for value in record_values(batch)]


def _checked(fd: int, size_bytes: int, path: Path, epoch: int | None) -> Iterator[Batch]:
    try:
        yield from checked_batches((batch for _, batch in read_batches(fd, 0, size_bytes)), epoch)
    except NewerControlRecord as error:
        raise NewerSnapshot(path, error.offset, error.reason) from error
    except (CorruptBatch, BadSnapshot) as error:
        raise CorruptSnapshot(path, str(error)) from error
