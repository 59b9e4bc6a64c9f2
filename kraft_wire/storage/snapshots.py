"""Snapshots on disk: ``END_OFFSET-EPOCH.checkpoint`` files beside the log's segments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kraft_wire.log.batch import Batch, record_values
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.errors import BadSnapshot, CorruptBatch
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
from kraft_wire.storage.batch_reader import read_batches
from kraft_wire.storage.disk import Disk, read_at
from kraft_wire.storage.errors import CorruptSnapshot

CORRUPT_SUFFIX = ".checkpoint.corrupt"
"""What becomes of a snapshot that turned out bad: neither we nor Java take it for one, and the bytes stay."""

LEGACY_BOOTSTRAP = "bootstrap.checkpoint"
"""Where Kafka before 4.4 put the bootstrap records: in the metadata folder itself."""

_READ_ONLY = 0o400


class SnapshotWriter:
    """A snapshot in the making: append its bytes, then ``finish``; or ``abandon`` it."""

    def __init__(self, folder: Path, snapshot_id: SnapshotId, disk: Disk) -> None:
        self.snapshot_id = snapshot_id
        self.size_bytes = 0
        self._path = folder / snapshot_file_name(snapshot_id)
        self._partial = folder / snapshot_file_name(snapshot_id, PARTIAL_SUFFIX)
        self._disk = disk
        self._fd = disk.create(self._partial)

    def append(self, data: bytes) -> None:
        """Raises DiskFailed."""
        self._disk.write(self._fd, data, self.size_bytes, self._partial)
        self.size_bytes += len(data)

    def open_reader(self) -> SnapshotReader:
        """What was written so far, for another thread: it stays readable when this is abandoned."""
        return SnapshotReader(os.dup(self._fd), self.snapshot_id, self._partial, self.size_bytes, self._disk)

    def finish(self) -> int:
        """The snapshot has its name and is on stable storage when this returns its size. Raises
        DiskFailed.
        """
        os.fchmod(self._fd, _READ_ONLY)
        self._disk.flush_data(self._fd, self._partial)
        self._close()
        self._disk.rename(self._partial, self._path)
        return self.size_bytes

    def abandon(self) -> None:
        """Remove what there is, even from a disk that failed: one that is full must not be filled further by
        what nobody will finish. Raises OSError.
        """
        self._close()
        self._partial.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class SnapshotReader:
    """A snapshot for another thread than the store's: one that isn't finished, or that may be deleted
    meanwhile. It has a file descriptor of its own."""

    def __init__(self, fd: int, snapshot_id: SnapshotId, path: Path, size_bytes: int, disk: Disk) -> None:
        self.id = snapshot_id
        self.path = path
        self.size_bytes = size_bytes
        self._fd = fd
        self._disk = disk

    def batches(self) -> Iterator[Batch]:
        """Every batch, checksums and marks checked on the way. Raises CorruptSnapshot, OSError."""
        return _checked(self._fd, self.size_bytes, self.path, self.id.epoch)

    def flush(self) -> None:
        """Raises DiskFailed."""
        self._disk.flush_data(self._fd, self.path)

    def close(self) -> None:
        os.close(self._fd)


def write_snapshot(folder: Path, snapshot_id: SnapshotId, chunks: Iterable[bytes], disk: Disk) -> int:
    """Write a whole snapshot; returns its size. It is on stable storage then. Raises DiskFailed.

    Needs no SnapshotStore, so that a helper process can do it; the store is told by ``SnapshotStore.add``.
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
    """The snapshots of a folder. Files stay open once they were read, until deleted or closed."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        self.folder = folder
        self._disk = disk
        self._fds: dict[SnapshotId, int] = {}
        found = (parse_snapshot_file_name(path.name) for path in folder.iterdir())
        self._ids = sorted(snapshot_id for snapshot_id in found if snapshot_id is not None)

    @property
    def ids(self) -> list[SnapshotId]:
        """Every snapshot, the bootstrap one included, ascending by end offset and epoch."""
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
        """Raises OSError."""
        return os.fstat(self._open(snapshot_id)).st_size

    def read(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        """Up to ``max_bytes`` of the file, fewer only at its end. Raises OSError."""
        return read_at(self._open(snapshot_id), position, max_bytes)

    def batches(self, snapshot_id: SnapshotId) -> Iterator[Batch]:
        """Every batch, checksums and marks checked on the way. Raises CorruptSnapshot, OSError."""
        fd, size_bytes = self._open(snapshot_id), self.size_bytes(snapshot_id)
        return _checked(fd, size_bytes, self.path(snapshot_id), snapshot_id.epoch)

    def verify(self, snapshot_id: SnapshotId) -> None:
        """Read it all. Raises CorruptSnapshot, OSError."""
        for _ in self.batches(snapshot_id):
            pass

    def open_reader(self, snapshot_id: SnapshotId) -> SnapshotReader:
        """For another thread: it stays readable when the snapshot is deleted. Raises OSError."""
        fd = os.dup(self._open(snapshot_id))
        path, size_bytes = self.path(snapshot_id), self.size_bytes(snapshot_id)
        return SnapshotReader(fd, snapshot_id, path, size_bytes, self._disk)

    def problem_of(self, snapshot_id: SnapshotId) -> CorruptSnapshot | None:
        """What is wrong with it; None where it is whole. Raises OSError."""
        try:
            self.verify(snapshot_id)
        except CorruptSnapshot as error:
            return error
        return None

    def control(self, snapshot_id: SnapshotId) -> list[Message]:
        """The messages of the first batch: header, kraft.version, voters. Raises CorruptSnapshot."""
        return decode_control_batch(next(self.batches(snapshot_id)))

    def last_contained_log_timestamp_ms(self, snapshot_id: SnapshotId) -> int:
        """When the last record that it covers was appended. Raises CorruptSnapshot."""
        header = self.control(snapshot_id)[0]
        assert isinstance(header, SnapshotHeaderRecord), "checked by batches()"
        return header.last_contained_log_timestamp

    def create(self, snapshot_id: SnapshotId) -> SnapshotWriter:
        """Begin a new snapshot; ``add`` it once it is finished. Raises DiskFailed."""
        return SnapshotWriter(self.folder, snapshot_id, self._disk)

    def add(self, snapshot_id: SnapshotId) -> None:
        """Take note of a snapshot that was finished."""
        if snapshot_id not in self._ids:
            self._ids = sorted([*self._ids, snapshot_id])

    def write(self, snapshot_id: SnapshotId, chunks: Iterable[bytes]) -> int:
        """Write a whole snapshot and take note of it; returns its size. Raises DiskFailed."""
        size_bytes = write_snapshot(self.folder, snapshot_id, chunks, self._disk)
        self.add(snapshot_id)
        return size_bytes

    def delete(self, snapshot_id: SnapshotId) -> None:
        """Raises DiskFailed."""
        self._forget(snapshot_id)
        self._disk.remove(self.path(snapshot_id))
        self._disk.flush_folder(self.folder)

    def set_aside(self, snapshot_id: SnapshotId) -> Path:
        """Rename a bad snapshot so that nobody loads it; returns its new path. Raises DiskFailed."""
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
    """The encoded records that format left for the first leader of an empty log.

    The records of the 0-0 snapshot; where it has none, those of ``bootstrap.checkpoint``, as Kafka before 4.4
    left them; None where there is neither file, and empty where one was damaged, so that nobody takes
    something else for them. Raises CorruptSnapshot.
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
    """The encoded records in a ``bootstrap.checkpoint``. Raises CorruptSnapshot, OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _data_values(_checked(fd, os.fstat(fd).st_size, path, None))
    finally:
        os.close(fd)


def _data_values(batches: Iterable[Batch]) -> list[bytes]:
    return [value for batch in batches if not batch.header.is_control for value in record_values(batch)]


def _checked(fd: int, size_bytes: int, path: Path, epoch: int | None) -> Iterator[Batch]:
    """``epoch`` is that of the snapshot, which all its batches have: no checksum covers it."""
    try:
        for batch in checked_batches(batch for _, batch in read_batches(fd, 0, size_bytes)):
            header = batch.header
            if epoch is not None and header.leader_epoch != epoch:
                raise BadSnapshot(
                    f"the batch at offset {header.base_offset} says epoch {header.leader_epoch}, not {epoch}"
                )
            yield batch
    except (CorruptBatch, BadSnapshot) as error:
        raise CorruptSnapshot(path, str(error)) from error
