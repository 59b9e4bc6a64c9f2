"""Cut damage out of a log. The damaged bytes are kept for good, in ``NAME.corrupt-N`` beside the log.

After each step the same repair can be done again, so that a crash between two steps loses nothing. The loss
must have been recorded before (``vote_guards.py``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from kraft_wire.log.files import LOG_SUFFIX, SEGMENT_SUFFIXES, parse_segment_file_name, segment_file_name
from kraft_wire.log.recovery import Floor, ReadableTail
from kraft_wire.storage.disk import TEMPORARY_SUFFIX, Disk, read_at
from kraft_wire.storage.errors import CorruptLog
from kraft_wire.storage.log.durable_floor import DurableFloor

ASIDE_MARK = ".corrupt-"
LOWERED_MARK = ".lowered-"
"""In the names of files that were kept when a node's epoch was lowered."""
_CHUNK_SIZE_BYTES = 1024 * 1024


def aside_path(path: Path) -> Path:
    """Return a free name to keep a damaged file under."""
    paths = (path.with_name(f"{path.name}{ASIDE_MARK}{number}") for number in count(1))
    return next(aside for aside in paths if not aside.exists())


def set_aside(path: Path, disk: Disk) -> Path:
    """Rename a damaged file, so that nothing reads it; returns its new path. Raises DiskFailed."""
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


def start_log_at(folder: Path, rest: ReadableTail, disk: Disk) -> list[Path]:
    """Let the log begin with its readable tail; returns the files that hold what came before. Raises
    DiskFailed, OSError.

    The rest of a segment gets a file of its own, on stable storage, before anything is removed. The lowest
    segments are removed first: after a crash the log still has the same readable tail.
    """
    paths = segment_paths(folder)
    if rest.base_offset is None:
        return _move_segments(paths, disk)
    first = folder / segment_file_name(rest.offset)
    if rest.position:
        _copy_tail(folder / segment_file_name(rest.base_offset), rest.position, first, disk)
    return _move_segments([path for path in paths if path < first], disk)


def set_log_aside(folder: Path, disk: Disk) -> list[Path]:
    """Set all segments aside; returns their new paths. Raises DiskFailed."""
    _lower_floor(folder, 0, disk)
    return _move_segments(segment_paths(folder)[::-1], disk)


def segment_paths(folder: Path) -> list[Path]:
    """Return the log's segments, in the order of their offsets."""
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
    """Copy everything from ``position`` on to another file."""
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
    """Set segments aside that aren't empty, in this order, and delete their indexes; returns the new paths,
    by offset."""
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
