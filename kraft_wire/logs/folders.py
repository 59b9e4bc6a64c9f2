"""Find metadata logs below folders, and list the files of each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from glob import escape, iglob
from pathlib import Path

import msgspec

from kraft_wire.log.errors import LogError
from kraft_wire.log.files import LOG_SUFFIX, META_PROPERTIES, PARTITION_FOLDER, parse_segment_file_name
from kraft_wire.log.recovery import Floor, trusted_floor
from kraft_wire.log.snapshot import SnapshotId, parse_snapshot_file_name
from kraft_wire.logs.open_segment import SegmentFile
from kraft_wire.storage.folder import read_meta_properties
from kraft_wire.storage.log.durable_floor import read_floor
from kraft_wire.storage.quorum_state import read_election_state


class NoLogs(LogError):
    """A path without logs. The text says what was searched, and where."""


class UnknownCluster(LogError):
    """Logs that can't be told apart. The text says where they are, and what to do."""


class LogFolder(msgspec.Struct, frozen=True):
    """The files of a log in one node's folder.

    ``segments`` and ``snapshots`` are in the order of their offsets, the snapshot of format left out.
    ``floor`` was read before the files were listed.
    """

    cluster: str
    path: str
    floor: Floor
    segments: tuple[SegmentFile, ...]
    snapshots: tuple[SnapshotId, ...]


def find_folders(patterns: Sequence[str]) -> list[Path]:
    """Return the folders of logs in or below folders, which may be given as globs.

    The paths are absolute, because tasks that read them may have another working directory. Raises NoLogs,
    OSError.
    """
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
    """Return an absolute glob. Characters of a glob in the working directory's own name are escaped."""
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
    """List the files of a log. Raises CorruptFile, OSError."""
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
    return trusted_floor(read_floor(path), None if state is None else state.leader_epoch)


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
    """Raise UnknownCluster if several folders seem to be of one cluster only because of their names."""
    unnamed = [path for path in paths if not (Path(path).parent / META_PROPERTIES).exists()]
    if unnamed and len(paths) > 1:
        others = ", ".join(sorted(set(paths) - {unnamed[0]}))
        raise UnknownCluster(
            f"{unnamed[0]}: only the folder's name identifies the cluster, and {others} has that name, too. "
            f"Copy each node's {META_PROPERTIES} beside its {PARTITION_FOLDER}, or give the folders around "
            "them different names"
        )


def _cluster_of(path: Path) -> str:
    """Return the cluster's id; without meta.properties, the name of the folder around."""
    if not (path.parent / META_PROPERTIES).exists():
        return path.parent.name
    return read_meta_properties(path.parent).cluster_id
