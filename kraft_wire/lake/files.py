"""List the files of a lake's tables as of its newest complete batch.

While the pipeline moves a batch into place, or after it was killed meanwhile, old files exist beside the new
ones that replace them. The batch's marker says which files count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from kraft_wire.lake.protocol import BATCHES, Marker, by_number
from kraft_wire.log.errors import LogError

CLUSTER_FOLDERS: Final = ds.partitioning(pa.schema([("cluster", pa.string())]), flavor="hive")
_TRIES: Final = 10


def dataset_of(files: Sequence[str], below: str, filesystem: FileSystem | None = None) -> ds.Dataset:
    """Return a dataset of a table's files ``below`` a folder, with the column ``cluster`` from their folders'
    names."""
    return ds.dataset(
        list(files),
        filesystem=filesystem,
        format="parquet",
        partitioning=CLUSTER_FOLDERS,
        partition_base_dir=below,
    )


class Restless(LogError):
    """A lake that changes faster than its files can be listed."""


class LakeFiles:
    """The files below the folder or address that the pipeline writes to.

    Without markers, as in a copy of the tables alone, all files count. Raises OSError, Restless,
    pyarrow.ArrowInvalid.
    """

    def __init__(self, target: str, tables: Sequence[str]) -> None:
        if "://" in target:
            self._filesystem, self._target = FileSystem.from_uri(target)
        else:
            self._filesystem, self._target = LocalFileSystem(), str(Path(target).resolve())
        self._files = self._look(tables)

    def files(self, table: str) -> list[str]:
        """Return a table's paths in the file system."""
        return self._files[table]

    def dataset(self, table: str) -> ds.Dataset | None:
        """Return a table's dataset; None if it has no files."""
        if not self._files[table]:
            return None
        return dataset_of(self._files[table], self._target, self._filesystem)

    def _look(self, tables: Sequence[str]) -> dict[str, list[str]]:
        for _ in range(_TRIES):
            newest = self._newest_marker()
            found = {table: self._parquet_files(table) for table in tables}
            if newest == self._newest_marker():
                return found if newest is None else self._as_of(newest, found)
        raise Restless(f"{self._target}: its tables change all the time; try again")

    def _as_of(self, marker_path: str, found: dict[str, list[str]]) -> dict[str, list[str]]:
        with self._filesystem.open_input_stream(marker_path) as stream:
            marker = msgspec.json.decode(stream.read(), type=Marker)
        deleted = {self._path(name) for name in marker.deletes}
        moves = [(self._path(source), self._path(to)) for source, to in marker.moves]
        for table, files in found.items():
            there = set(files)
            own = f"{self._path(table)}/"
            waiting = [source for source, to in moves if to.startswith(own) and to not in there]
            found[table] = sorted((there - deleted).union(waiting))
        return found

    def _newest_marker(self) -> str | None:
        markers = (path for path in self._paths_below(BATCHES) if path.endswith(".json"))
        return max(markers, key=by_number, default=None)

    def _parquet_files(self, table: str) -> list[str]:
        """List Parquet files as Spark does: without folders that begin with an underscore, such as Delta's
        log."""
        own = len(self._path(table))
        paths = self._paths_below(table)
        return [path for path in paths if path.endswith(".parquet") and "/_" not in path[own:]]

    def _paths_below(self, folder: str) -> Iterable[str]:
        selector = FileSelector(self._path(folder), allow_not_found=True, recursive=True)
        return [info.path for info in self._filesystem.get_file_info(selector) if info.type == FileType.File]

    def _path(self, name: str) -> str:
        return f"{self._target}/{name}"
