"""Cutting damage out of a log. The bytes are kept aside, in ``NAME.corrupt-N`` beside the log, for good.

Every step leaves a folder on which the same can be done again: a crash between two of them loses nothing.
What was lost has to be remembered before (``remembered.py``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from kraft_wire.log.files import LOG_SUFFIX, SEGMENT_SUFFIXES, parse_segment_file_name, segment_file_name
from kraft_wire.log.recovery import Floor, Rest
from kraft_wire.storage.disk import TEMPORARY_SUFFIX, Disk, read_at
from kraft_wire.storage.durable_floor import DurableFloor
from kraft_wire.storage.errors import CorruptLog

ASIDE_MARK = ".corrupt-"
_CHUNK_SIZE_BYTES = 1024 * 1024


def aside_path(path: Path) -> Path:
    """Where to keep a damaged file: a name that is free."""
    paths = (path.with_name(f"{path.name}{ASIDE_MARK}{number}") for number in count(1))
    return next(aside for aside in paths if not aside.exists())


def set_aside(path: Path, disk: Disk) -> Path:
    """Rename a damaged file, so that nobody takes it for a good one; returns its new path. Raises
    DiskFailed."""
    aside = aside_path(path)
    disk.rename(path, aside)
    return aside


def cut_damage(folder: Path, damage: CorruptLog, disk: Disk) -> list[Path]:
    """Let the log end before the damage; returns the files that hold what was cut off. Raises DiskFailed,
    OSError."""
    first = damage.path
    kept: list[Path] = []
    if 0 < damage.position < first.stat().st_size:
        kept = [_copy_tail(first, damage.position, aside_path(first), disk)]
    _lower_floor(folder, damage.offset, disk)
    damaged = [
        path for path in segment_paths(folder) if path > first or (path == first and not damage.position)
    ]
    moved = _move_segments(damaged[::-1], disk)
    if damage.position:
        _truncate(first, damage.position, disk)
    return [*kept, *moved]


def begin_at(folder: Path, rest: Rest, disk: Disk) -> list[Path]:
    """Let the log begin where it is whole from; returns where what came before is kept. Raises DiskFailed,
    OSError.

    The rest of a segment has its own name, on stable storage, before anything goes. The lowest segments go
    first: what a crash leaves is the same log but for its beginning, and begins there again.
    """
    paths = segment_paths(folder)
    if rest.base_offset is None:
        return _move_segments(paths, disk)
    first = folder / segment_file_name(rest.offset)
    if rest.position:
        _copy_tail(folder / segment_file_name(rest.base_offset), rest.position, first, disk)
    return _move_segments([path for path in paths if path < first], disk)


def set_log_aside(folder: Path, disk: Disk) -> list[Path]:
    """Leave no segment; returns where they are now. Raises DiskFailed."""
    _lower_floor(folder, 0, disk)
    return _move_segments(segment_paths(folder)[::-1], disk)


def segment_paths(folder: Path) -> list[Path]:
    """The log's segments, in the order of their offsets."""
    names = ((parse_segment_file_name(path.name), path) for path in folder.iterdir())
    return sorted(path for name, path in names if name is not None and name[1] == LOG_SUFFIX)


def _lower_floor(folder: Path, offset: int, disk: Disk) -> None:
    floor = DurableFloor(folder, disk)
    try:
        if floor.found is not None:
            durable, epoch, committed = floor.found
            floor.write(Floor(min(offset, durable), epoch, min(offset, committed)), flush=True)
    finally:
        floor.close()


def _copy_tail(path: Path, position: int, copy: Path, disk: Disk) -> Path:
    """Keep what is at ``position`` and behind it under another name."""
    temporary = copy.with_name(copy.name + TEMPORARY_SUFFIX)
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        to = disk.create(temporary)
        try:
            for start in range(0, os.fstat(source).st_size - position, _CHUNK_SIZE_BYTES):
                disk.write(to, read_at(source, position + start, _CHUNK_SIZE_BYTES), start, temporary)
            disk.flush_data(to, temporary)
        finally:
            os.close(to)
    finally:
        os.close(source)
    disk.rename(temporary, copy)
    return copy


def _move_segments(paths: Sequence[Path], disk: Disk) -> list[Path]:
    """Keep segments aside that aren't empty, in this order; returns where, by their offsets. What lies beside
    them is made from them, and goes."""
    kept: list[Path] = []
    for path in paths:
        if path.stat().st_size:
            kept.append(set_aside(path, disk))
        name = parse_segment_file_name(path.name)
        assert name is not None, "only segments are moved"
        for suffix in SEGMENT_SUFFIXES:
            disk.remove(path.parent / segment_file_name(name[0], suffix))
        disk.flush_folder(path.parent)
    return sorted(kept)


def _truncate(path: Path, size_bytes: int, disk: Disk) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        disk.truncate(fd, size_bytes, path)
        disk.flush_data(fd, path)
    finally:
        os.close(fd)
