"""Metadata logs on disk: which there are below some folders, and what files each of them has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from glob import escape, iglob
from pathlib import Path

import msgspec

from kraft_wire.log.errors import LogError
from kraft_wire.log.files import LOG_SUFFIX, META_PROPERTIES, PARTITION_FOLDER, parse_segment_file_name
from kraft_wire.log.recovery import Floor, believed
from kraft_wire.log.snapshot import SnapshotId, parse_snapshot_file_name
from kraft_wire.spark.open_segment import SegmentFile
from kraft_wire.storage.durable_floor import read_floor
from kraft_wire.storage.folder import read_meta_properties
from kraft_wire.storage.quorum_state import read_election_state


class NoLogs(LogError):
    """Nothing to read: what was looked for, and where."""


class UnknownCluster(LogError):
    """Logs that can't be told apart: where they are, and what to do."""


class LogFolder(msgspec.Struct, frozen=True):
    """The copy of a cluster's metadata log in one node's folder. ``segments`` are in the order of their
    offsets; ``snapshots`` too, without the one that format leaves. ``floor`` is what was known to be flushed
    and committed before the files were listed."""

    cluster: str
    path: str
    floor: Floor
    segments: tuple[SegmentFile, ...]
    snapshots: tuple[SnapshotId, ...]


def find_folders(patterns: Sequence[str]) -> list[Path]:
    """Where logs lie in or below folders, which may be given by globs: by whole paths, since tasks that read
    them may be in another folder. Raises NoLogs, OSError."""
    found: dict[Path, None] = {}
    for pattern in patterns:
        folders = list(_partition_folders(pattern))
        if not folders:
            raise NoLogs(
                f"no {PARTITION_FOLDER} in or below {pattern}: give a node's metadata folder, or one above"
            )
        found.update(dict.fromkeys(folders))
    return list(found)


def whole_pattern(pattern: str) -> str:
    """From the root on: what looks like a glob in the name of the folder that we are in is none."""
    given = Path(pattern).expanduser()
    return str(given if given.is_absolute() else Path(escape(str(Path.cwd())), given))


def _partition_folders(pattern: str) -> Iterator[Path]:
    for match in sorted(iglob(whole_pattern(pattern))):  # noqa: PTH207 - Path.glob takes no absolute pattern
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


def list_folder(path: Path) -> LogFolder:
    """Raises CorruptFile, OSError."""
    floor = _floor(path)
    names = sorted(file.name for file in path.iterdir())
    snapshots = filter(None, map(parse_snapshot_file_name, names))
    return LogFolder(
        _cluster_of(path),
        str(path),
        floor,
        tuple(_segments(path, names)),
        tuple(sorted(id for id in snapshots if id.end_offset)),
    )


def _floor(path: Path) -> Floor:
    state = read_election_state(path)
    return believed(read_floor(path), None if state is None else state.leader_epoch)


def _segments(path: Path, names: list[str]) -> Iterator[SegmentFile]:
    for name in names:
        parsed = parse_segment_file_name(name)
        if parsed is None or parsed[1] != LOG_SUFFIX:
            continue
        try:
            size_bytes = (path / name).stat().st_size
        except FileNotFoundError:
            continue  # a running controller trimmed it
        yield SegmentFile(str(path / name), parsed[0], size_bytes)


def check_named(paths: Sequence[str]) -> None:
    """Whether these folders, which seem to be of one cluster, say so themselves. Raises UnknownCluster."""
    unnamed = [path for path in paths if not (Path(path).parent / META_PROPERTIES).exists()]
    if unnamed and len(paths) > 1:
        others = ", ".join(sorted(set(paths) - {unnamed[0]}))
        raise UnknownCluster(
            f"{unnamed[0]}: whose log it is only the folder's name says, which stands for {others} as well. "
            f"Copy each node's {META_PROPERTIES} beside its {PARTITION_FOLDER}, or give the folders around "
            "them different names"
        )


def _cluster_of(path: Path) -> str:
    """The cluster's id; the name of the folder around where nothing says that."""
    if not (path.parent / META_PROPERTIES).exists():
        return path.parent.name
    return read_meta_properties(path.parent).cluster_id
