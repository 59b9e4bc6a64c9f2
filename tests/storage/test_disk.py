"""Writing: short writes are completed, replaced files are whole, and the first failure is final."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kraft_wire.storage.disk import Disk, read_at
from kraft_wire.storage.errors import DiskFailed
from kraft_wire.storage.log.metadata_log import LogConfig
from tests.storage.storage_samples import all_bytes, data_batch, epoch_batches, open_log

INPUT_OUTPUT_ERROR = OSError(errno.EIO, os.strerror(errno.EIO))


def failing(*_: object) -> int:
    raise INPUT_OUTPUT_ERROR


@pytest.fixture
def disk() -> Disk:
    return Disk()


def test_a_short_write_goes_on(disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_pwrite = os.pwrite
    calls: list[int] = []

    def short_pwrite(fd: int, data: bytes, position: int) -> int:
        calls.append(position)
        return real_pwrite(fd, bytes(data)[:3], position)

    monkeypatch.setattr(os, "pwrite", short_pwrite)
    fd = disk.create(tmp_path / "file")
    disk.write(fd, b"0123456789", 2, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"\x00\x000123456789"
    assert calls == [2, 5, 8, 11]


def test_a_short_read_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    real_pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, position: real_pread(fd, min(size, 4), position))
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    assert read_at(fd, 1, 8) == b"12345678"
    assert read_at(fd, 1, 100) == b"123456789"
    assert read_at(fd, 10, 5) == b""
    os.close(fd)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the calls that change files or flush them, in order."""
    steps: list[str] = []

    def noting(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            steps.append(name)
            return real(*arguments)

        return call

    for name in ("pwrite", "fdatasync", "fsync"):
        monkeypatch.setattr(os, name, noting(name, getattr(os, name)))
    monkeypatch.setattr(Path, "rename", noting("rename", Path.rename))
    return steps


def test_a_file_is_replaced_at_once_and_flushed(disk: Disk, tmp_path: Path, steps: list[str]) -> None:
    (tmp_path / "file").write_bytes(b"old and longer")
    disk.replace(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert steps == ["pwrite", "fdatasync", "rename", "fsync"]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_derived_file_is_replaced_without_a_flush(disk: Disk, tmp_path: Path, steps: list[str]) -> None:
    (tmp_path / "file").write_bytes(b"old and longer")
    disk.replace_derived(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert steps == ["pwrite", "rename"]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_rename_of_a_derived_file_fails_for_good(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", failing)
        with pytest.raises(DiskFailed, match="renaming it to file"):
            disk.replace_derived(tmp_path / "file", b"new")
    with pytest.raises(DiskFailed):
        disk.replace_derived(tmp_path / "file", b"new")


def test_folders_are_made_with_their_parents(disk: Disk, tmp_path: Path) -> None:
    disk.make_folder(tmp_path / "a" / "b" / "c")
    disk.make_folder(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()


@pytest.mark.parametrize("call", ["pwrite", "fdatasync", "fsync", "ftruncate"])
def test_the_first_failure_sticks(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "file"
    fd = disk.create(path)
    attempts: dict[str, Callable[[], object]] = {
        "pwrite": lambda: disk.write(fd, b"data", 0, path),
        "fdatasync": lambda: disk.flush_data(fd, path),
        "fsync": lambda: disk.flush_folder(tmp_path),
        "ftruncate": lambda: disk.truncate(fd, 0, path),
    }
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        with pytest.raises(DiskFailed, match="Input/output error") as first:
            attempts[call]()
        assert str(tmp_path) in str(first.value)
        assert first.value.errno == errno.EIO
    for attempt in attempts.values():
        with pytest.raises(DiskFailed) as later:
            attempt()
        assert later.value is first.value
    assert disk.failure is first.value
    with pytest.raises(DiskFailed):
        disk.check()


def test_a_failed_flush_is_never_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)
    log.append(epoch_batches(0, 1, [2]))
    assert log.flush() == 3
    log.append([data_batch(3, 1)])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing)
        with pytest.raises(DiskFailed):
            log.flush()
    assert log.flushed_offset == 3
    for attempt in (log.flush, lambda: log.append([data_batch(4, 1)])):
        with pytest.raises(DiskFailed):
            attempt()
    assert (log.end_offset, log.flushed_offset) == (4, 3)
    with pytest.raises(DiskFailed):
        log.truncate_to(1)
    assert log.read(0, 4, 10**6) == b"".join([*epoch_batches(0, 1, [2]), data_batch(3, 1)])
    with pytest.raises(DiskFailed):
        log.close()


def test_a_failed_write_does_not_move_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)
    log.append(epoch_batches(0, 1, [2]))
    monkeypatch.setattr(os, "pwrite", failing)
    with pytest.raises(DiskFailed):
        log.append([data_batch(3, 1)])
    assert log.end_offset == 3


def test_a_failed_flush_while_rolling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=100))
    log.append(epoch_batches(0, 1, [1]))
    monkeypatch.setattr(os, "fdatasync", failing)
    with pytest.raises(DiskFailed):
        log.append([data_batch(2, 1)])
    assert log.end_offset == 2
    assert all_bytes(log) == b"".join(epoch_batches(0, 1, [1]))
