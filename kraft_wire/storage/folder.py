"""Check the identity of a node's folders, lock them, and prepare the metadata partition inside."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from kraft_wire.log.errors import MalformedFile
from kraft_wire.log.files import (
    CLUSTER_METADATA_TOPIC_ID,
    LOG_SUFFIX,
    META_PROPERTIES,
    OBSERVER,
    PARTITION_FOLDER,
    PARTITION_METADATA,
    MetaProperties,
    parse_meta_properties,
    parse_partition_metadata,
    partition_metadata_text,
)
from kraft_wire.storage.disk import TEMPORARY_SUFFIX, Disk, FileIdentity, identity_of
from kraft_wire.storage.errors import CorruptFile, FolderLocked, NotFormatted, WrongFolder

_RESTORE_IDENTITY = (
    "restore it from a copy, or write it again with version=1, cluster.id as on the other nodes, node.id as "
    "in the configuration, and the directory.id that the voters know this node by"
)
META_PROPERTIES_MISSING = f"is missing, but there is a metadata log: {_RESTORE_IDENTITY}"
LOCK = ".lock"
_FLOCK = struct.Struct("hhqqi4x")
"""Linux's struct flock: type, whence, start, length, process."""

LEFTOVER_SUFFIXES = (".part", ".deleted", TEMPORARY_SUFFIX)
"""Suffixes of files that a crash leaves while they are created or removed, by kraft-wire or by Java."""


class Folder:
    """The metadata folder, locked until ``close``."""

    def __init__(
        self,
        path: Path,
        properties: MetaProperties,
        locks: ExitStack,
        lock_files: Mapping[Path, FileIdentity],
        disk: Disk,
        rebuilt: list[Path],
    ) -> None:
        self.path = path
        self.properties = properties
        self.disk = disk
        self.rebuilt = rebuilt
        """Files that were damaged and were rebuilt, which always have the same contents."""
        self._locks = locks
        self._lock_files = lock_files

    @property
    def partition_path(self) -> Path:
        """The folder of segments, snapshots and quorum-state."""
        return self.path / PARTITION_FOLDER

    def check_files(self) -> None:
        """Raise FileGone if a lock or a meta.properties was deleted or moved. May run in another thread."""
        for lock, identity in self._lock_files.items():
            self.disk.check_present(
                lock, identity, "if it was deleted, make sure that no other process works on the folder"
            )
            self.disk.check_present(
                lock.with_name(META_PROPERTIES), None, f"if it was deleted, {_RESTORE_IDENTITY}"
            )

    def close(self) -> None:
        """Unlock the folders for other processes."""
        self._locks.close()


def open_folder(
    metadata_dir: Path,
    *,
    node_id: int,
    cluster_id: str | None = None,
    log_dirs: Sequence[Path] = (),
    when_locked: Callable[[], None] | None = None,
) -> Folder:
    """Check and lock the folders of a node, and create the metadata partition's folder if it is missing.

    ``log_dirs`` are the node's other folders. Without ``cluster_id``, any cluster is accepted, if it is the
    same in all folders. A damaged partition.metadata is rebuilt, because its contents are always the same.
    ``when_locked`` is called before that; what it raises is passed on, and unlocks the folders.
    Raises NotFormatted, WrongFolder, FolderLocked, CorruptFile.
    """
    disk = Disk()
    paths = list(dict.fromkeys([metadata_dir, *log_dirs]))
    found = {path: read_meta_properties(path) for path in paths}
    for path, properties in found.items():
        expected_cluster = cluster_id if cluster_id is not None else found[metadata_dir].cluster_id
        check_identity(path, properties, expected_cluster, node_id)
    with ExitStack() as locks:
        lock_files: dict[Path, FileIdentity] = {}
        for path in paths:
            fd = _lock(path / LOCK)
            locks.callback(os.close, fd)
            lock_files[path / LOCK] = identity_of(fd)
        if when_locked is not None:
            when_locked()
        rebuilt = _open_partition(metadata_dir / PARTITION_FOLDER, disk)
        return Folder(metadata_dir, found[metadata_dir], locks.pop_all(), lock_files, disk, rebuilt)


def read_meta_properties(folder: Path) -> MetaProperties:
    """Return the identity of a folder. Raises NotFormatted or CorruptFile."""
    path = folder / META_PROPERTIES
    try:
        return parse_meta_properties(path.read_text("latin-1"))
    except FileNotFoundError:
        if any((folder / PARTITION_FOLDER).glob(f"*{LOG_SUFFIX}")):
            raise CorruptFile(path, META_PROPERTIES_MISSING) from None
        raise NotFormatted(path) from None
    except MalformedFile as error:
        raise CorruptFile(path, error.reason) from None


def check_identity(folder: Path, properties: MetaProperties, cluster_id: str, node_id: int) -> None:
    """Raise WrongFolder if the folder belongs to another cluster or another node."""
    path = folder / META_PROPERTIES
    if properties.cluster_id != cluster_id:
        raise WrongFolder(
            path,
            f"the folder belongs to another cluster: its cluster.id is "
            f"{properties.cluster_id}, expected is {cluster_id}; correct log.dirs and metadata.log.dir",
        )
    if properties.node_id != node_id:
        raise WrongFolder(
            path,
            f"the folder belongs to another node: its node.id is {properties.node_id}, that of "
            f"the configuration is {node_id}; correct node.id, or log.dirs and metadata.log.dir",
        )


def check_role(folder: Path, *, is_observer: bool) -> None:
    """Raise WrongFolder if a formatted folder is that of a node of another role: one that only observes, or
    not."""
    marker = folder / PARTITION_FOLDER / OBSERVER
    if is_observer and not marker.exists():
        raise WrongFolder(
            folder / META_PROPERTIES,
            "the folder is that of a controller or broker; give `kraft-wire observe` a folder of its own",
        )
    if not is_observer and marker.exists():
        raise WrongFolder(
            marker, "the folder is that of an observer, which never votes; start it with `kraft-wire observe`"
        )


def _lock(path: Path) -> int:
    """Take both kinds of lock.

    Java's channels use POSIX record locks. One process can take such a lock twice; the other kind stops this
    process from opening the folder a second time.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise FolderLocked(path, holder_of_lock(path.parent)) from None
    return fd


def holder_of_lock(folder: Path) -> int | None:
    """Return the id of the process that works on the folder; None if there is none, or if it is this process.
    Never takes the lock."""
    try:
        fd = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    finally:
        os.close(fd)
    return None if kind == fcntl.F_UNLCK else pid


def _open_partition(path: Path, disk: Disk) -> list[Path]:
    """Prepare the partition's folder; returns the damaged files that were rebuilt."""
    disk.make_folder(path)
    metadata, text = path / PARTITION_METADATA, partition_metadata_text().encode()
    is_damaged = metadata.exists() and metadata.read_bytes().rstrip() != text
    if is_damaged or not metadata.exists():
        disk.replace(metadata, text)
    leftovers = [file for file in path.iterdir() if file.name.endswith(LEFTOVER_SUFFIXES)]
    for file in leftovers:
        disk.remove(file)
    if leftovers:
        disk.flush_folder(path)
    return [metadata] if is_damaged else []


def check_partition_metadata(path: Path) -> None:
    """Check the topic id in partition.metadata. Raises CorruptFile, WrongFolder, OSError."""
    try:
        topic_id = parse_partition_metadata(path.read_text("latin-1"))
    except MalformedFile as error:
        raise CorruptFile(path, error.reason) from None
    if topic_id != CLUSTER_METADATA_TOPIC_ID:
        raise WrongFolder(path, f"topic_id is {topic_id} and should be {CLUSTER_METADATA_TOPIC_ID}")
