"""Write files so that they stay written: whole writes, flushed files and folders, and no write after a
failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kraft_wire.storage.errors import DiskFailed, FileGone

TEMPORARY_SUFFIX = ".tmp"

FileIdentity = tuple[int, int]
"""Device and inode of a file: the same name may belong to another file later."""


def identity_of(fd: int) -> FileIdentity:
    """Return the identity of an open file. Raises OSError."""
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


class Disk:
    """The one way to change a folder.

    The first failure of a write, a flush, a rename or the like is kept, and every later call raises it
    (DiskFailed): after a failed flush the kernel may report success for data that is lost.
    """

    def __init__(self) -> None:
        self._failure: DiskFailed | None = None

    @property
    def failure(self) -> DiskFailed | None:
        return self._failure

    @contextmanager
    def _latched(self, path: Path, what: str) -> Iterator[None]:
        self.check()
        try:
            yield
        except OSError as error:
            raise self._failed(path, what, error) from error

    def _failed(self, path: Path, what: str, error: OSError) -> DiskFailed:
        self._failure = DiskFailed(path, what, error)
        return self._failure

    def check(self) -> None:
        """Raise DiskFailed if anything failed before."""
        if self._failure is not None:
            raise self._failure

    def check_present(self, path: Path, identity: FileIdentity | None, advice: str) -> None:
        """Raise FileGone unless there is a file of this name and, if given, identity. ``advice`` says what to
        do about a deleted one. Raises DiskFailed if the folder can't be read."""
        if not self.is_present(path, identity):
            gone = next((folder for folder in reversed(path.parents) if not folder.exists()), path)
            self._failure = self._failure or FileGone(gone, advice)
            raise self._failure

    def is_present(self, path: Path, identity: FileIdentity | None) -> bool:
        """Whether there is a file of this name and, if given, identity. Raises DiskFailed."""
        with self._latched(path, "a look at it"):
            try:
                status = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                return False
        return identity in (None, (status.st_dev, status.st_ino))

    def write(self, fd: int, data: bytes, position: int, path: Path) -> None:
        """Write all of ``data`` at ``position``, in one system call unless the kernel takes less at once."""
        self.check()
        try:
            written = os.pwrite(fd, data, position)
        except OSError as error:
            raise self._failed(path, "a write", error) from error
        if written < len(data):
            self.write(fd, data[written:], position + written, path)

    def truncate(self, fd: int, size_bytes: int, path: Path) -> None:
        with self._latched(path, "truncation"):
            os.ftruncate(fd, size_bytes)

    def flush_data(self, fd: int, path: Path) -> None:
        """Wait until the file's bytes and its length are on stable storage."""
        with self._latched(path, "the flush"):
            os.fdatasync(fd)

    def flush_folder(self, folder: Path) -> None:
        """Wait until files that were created, renamed or removed in the folder stay so."""
        with self._latched(folder, "the folder's flush"):
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def create(self, path: Path, mode: int = 0o644) -> int:
        """Create a file and open it for reading and writing. The folder isn't flushed."""
        with self._latched(path, "creation"):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)

    def make_folder(self, folder: Path) -> None:
        """Create a folder and its parents, and flush each folder that got a new entry."""
        missing = [folder, *folder.parents]
        missing = missing[: next((n for n, path in enumerate(missing) if path.exists()), len(missing))]
        for path in reversed(missing):
            with self._latched(path, "creation"):
                path.mkdir(exist_ok=True)
            self.flush_folder(path.parent)

    def remove(self, path: Path) -> None:
        """Remove a file, which may be missing already. The folder isn't flushed."""
        with self._latched(path, "removal"):
            path.unlink(missing_ok=True)

    def rename(self, path: Path, to: Path) -> None:
        """Rename a file within its folder, replacing any file of that name, and flush the folder."""
        with self._latched(path, f"renaming it to {to.name}"):
            path.rename(to)
        self.flush_folder(to.parent)

    def replace(self, path: Path, data: bytes) -> None:
        """Give a small file new contents. Readers see the old or the new contents, also after a crash."""
        self.rename(self._write_temporary(path, data, flush=True), path)

    def replace_derived(self, path: Path, data: bytes) -> None:
        """Give a small file new contents without waiting for the disk. After a power cut it may be old or
        empty, so it must be one that can be made again."""
        temporary = self._write_temporary(path, data, flush=False)
        with self._latched(temporary, f"renaming it to {path.name}"):
            temporary.rename(path)

    def _write_temporary(self, path: Path, data: bytes, *, flush: bool) -> Path:
        temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
        fd = self.create(temporary)
        try:
            self.write(fd, data, 0, temporary)
            if flush:
                self.flush_data(fd, temporary)
        finally:
            os.close(fd)
        return temporary


def read_at(fd: int, position: int, size_bytes: int) -> bytes:
    """Return ``size_bytes`` from ``position`` on, or fewer if the file ends before. Raises OSError."""
    data = os.pread(fd, size_bytes, position)
    while len(data) < size_bytes:
        more = os.pread(fd, size_bytes - len(data), position + len(data))
        if not more:
            break
        data += more
    return data
