"""Metadata logs on disk: which there are below some folders, and what each of them holds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from glob import iglob
from pathlib import Path

import msgspec

from kraft_wire.log.errors import LogError
from kraft_wire.log.files import (
    LOG_SUFFIX,
    META_PROPERTIES,
    PARTITION_FOLDER,
    parse_meta_properties,
    parse_segment_file_name,
)
from kraft_wire.log.snapshot import SnapshotId, parse_snapshot_file_name


class NoLogs(LogError):
    """Nothing to read: what was looked for, and where."""


class SegmentFile(msgspec.Struct, frozen=True):
    """One file of a log, as large as it was when it was listed."""

    path: str
    base_offset: int
    size_bytes: int


class LogFolder(msgspec.Struct, frozen=True):
    """The copy of a cluster's metadata log in one node's folder. ``segments`` are in the order of their
    offsets; ``snapshots`` too."""

    cluster: str
    path: str
    segments: tuple[SegmentFile, ...]
    snapshots: tuple[SnapshotId, ...]

    @property
    def committed_end_offset(self) -> int | None:
        """Everything below is committed: a snapshot holds nothing else. None where there is none."""
        return self.snapshots[-1].end_offset if self.snapshots else None

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)


def find_logs(patterns: Sequence[str]) -> list[LogFolder]:
    """The logs in or below folders, which may be given by globs: of each cluster the copy that goes furthest.

    Raises NoLogs, MalformedFile, OSError.
    """
    found: dict[str, LogFolder] = {}
    for pattern in patterns:
        folders = [_folder(path) for path in _partition_folders(pattern)]
        if not folders:
            raise NoLogs(
                f"no {PARTITION_FOLDER} in or below {pattern}: give a node's metadata folder, or one above"
            )
        for folder in folders:
            other = found.get(folder.cluster)
            if other is None or _reach(folder) > _reach(other):
                found[folder.cluster] = folder
    return [found[cluster] for cluster in sorted(found)]


def _partition_folders(pattern: str) -> Iterator[Path]:
    for match in sorted(iglob(str(Path(pattern).expanduser()))):  # noqa: PTH207 - Path.glob takes no absolute pattern
        path = Path(match)
        if path.name == PARTITION_FOLDER:
            yield path
        elif (path / PARTITION_FOLDER).is_dir():
            yield path / PARTITION_FOLDER
        else:
            yield from _below(path)


def _below(path: Path) -> Iterator[Path]:
    for folder, names, _ in os.walk(path):
        names.sort()
        if PARTITION_FOLDER in names:
            names.remove(PARTITION_FOLDER)
            yield Path(folder) / PARTITION_FOLDER


def _folder(path: Path) -> LogFolder:
    names = sorted(file.name for file in path.iterdir())
    segments = [(path / name, parsed) for name in names if (parsed := parse_segment_file_name(name))]
    snapshots = filter(None, map(parse_snapshot_file_name, names))
    return LogFolder(
        _cluster_of(path),
        str(path),
        tuple(
            SegmentFile(str(file), base_offset, file.stat().st_size)
            for file, (base_offset, suffix) in segments
            if suffix == LOG_SUFFIX
        ),
        tuple(sorted(id for id in snapshots if id.end_offset)),
    )


def _cluster_of(path: Path) -> str:
    """The cluster's id; the name of the folder around where nothing says that."""
    try:
        return parse_meta_properties((path.parent / META_PROPERTIES).read_text("utf-8")).cluster_id
    except FileNotFoundError:
        return path.parent.name


def _reach(folder: LogFolder) -> tuple[int, int]:
    """Grows with how far a copy of the same log goes: its segments are the same bytes."""
    last = folder.segments[-1] if folder.segments else SegmentFile("", 0, 0)
    return last.base_offset, last.size_bytes
