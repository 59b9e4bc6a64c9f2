"""Keep a copy of a node's folder as it was before a plan of recovery changed it.

The copy gets its final name when all of it is on stable storage. A file inside says of which folder it is,
and for which plan: only such a copy is taken for the one that an earlier attempt made.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import msgspec

from kraft_wire.log.files import META_PROPERTIES, PARTITION_FOLDER
from kraft_wire.raft.recovery.plan import Plan, RecoveryError
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.folder import read_meta_properties

COPY_MARK: Final = "copy-before-recovery"


class CopyMark(msgspec.Struct, frozen=True):
    """The contents of the file ``COPY_MARK``."""

    plan: str
    node_id: int
    directory_id: str


class FolderCopy:
    """The copy of a folder at ``path``, which may be there or not."""

    def __init__(self, metadata_dir: Path, path: Path, plan: Plan) -> None:
        properties = read_meta_properties(metadata_dir)
        self.path = path
        self._metadata_dir = metadata_dir
        self._mark = CopyMark(plan.hash, properties.node_id, str(properties.directory_id))

    @property
    def is_there(self) -> bool:
        """Whether an earlier attempt made the copy."""
        try:
            return (self.path / COPY_MARK).read_bytes() == msgspec.json.encode(self._mark)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def check(self) -> None:
        """Raise RecoveryError if something else has the copy's place, or if that is inside the folder."""
        if self._metadata_dir.resolve() in self.path.resolve().parents:
            raise RecoveryError(f"{self.path} is inside {self._metadata_dir}: keep the copy somewhere else")
        if os.path.lexists(self.path) and not self.is_there:
            raise RecoveryError(
                f"{self.path} exists, and isn't the copy that this plan made of {self._metadata_dir}: keep "
                "the copy somewhere else, with --backup"
            )
        if not self.path.parent.is_dir():
            raise RecoveryError(
                f"there is no folder {self.path.parent} for the copy: make it, or name another"
            )

    def make(self) -> None:
        """Copy meta.properties and the metadata partition, unless an earlier attempt did. The caller has the
        folder's lock. Raises what ``check`` raises, DiskFailed, OSError."""
        self.check()
        if self.is_there:
            return
        disk = Disk()
        unfinished = self.path.with_name(f"{self.path.name}.{self._mark.plan[:12]}.unfinished")
        if unfinished.exists():
            shutil.rmtree(unfinished)
        disk.make_folder(unfinished / PARTITION_FOLDER)
        partition = self._metadata_dir / PARTITION_FOLDER
        for source in (self._metadata_dir / META_PROPERTIES, *partition.iterdir()):
            _copy(source, unfinished / source.relative_to(self._metadata_dir), disk)
        disk.flush_folder(unfinished / PARTITION_FOLDER)
        disk.replace(unfinished / COPY_MARK, msgspec.json.encode(self._mark))
        disk.rename(unfinished, self.path)


def _copy(source: Path, to: Path, disk: Disk) -> None:
    shutil.copy2(source, to)
    fd = os.open(to, os.O_RDONLY)
    try:
        disk.flush_data(fd, to)
    finally:
        os.close(fd)
