"""Keep tables in a folder, and add each batch to it completely or not at all.

    TABLE/cluster=ID/part-00000012-000.parquet    rows that stay, written by batch 12
    TABLE/cluster=ID/open-00000012-000.parquet    rows that the next batch of the cluster replaces
    _kraft/staging/00000012-9f3c2a41/TABLE/...    files of batch 12, until it is complete
    _kraft/batches/00000012.json                  batch 12 is complete: files to move, and files to delete
    _kraft/checkpoint, _kraft/pending, _kraft/lock, _kraft/command
    _kraft/id                                     the id of this lake, wherever it is mounted

A batch is complete when its file in ``batches`` exists, by one rename. The moves and deletions in that file
are then done, and done again after a kill, until all are. Before that, everything is thrown away and written
again. Other readers of the tables ignore files whose names begin with an underscore.
"""

from __future__ import annotations

import fcntl
import glob
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Final, Self
from urllib.parse import unquote
from uuid import uuid4

import msgspec

from kraft_wire.lake.flushing import flush, flush_tree
from kraft_wire.log.errors import LogError
from kraft_wire.storage.disk import Disk

PART: Final = "part"
"""Rows that stay. Every other part of a cluster's table is replaced as a whole."""
OPEN: Final = "open"
PART_COLUMN: Final = "kraft_part"
CLUSTER_FOLDER: Final = "cluster="
"""The prefix of the folders of a table's clusters. Delta has a folder of its own beside them, which also
holds Parquet."""
PENDING: Final = "_kraft/pending"
"""A hidden table with the records of metadata transactions that are still open."""

_HOME: Final = "_kraft"
_ID: Final = f"{_HOME}/id"
BATCHES: Final = f"{_HOME}/batches"
STAGING: Final = f"{_HOME}/staging"
_KEPT_MARKERS: Final = 2
_UNFINISHED: Final = "_temporary"
"""A folder for the output of Spark's running tasks; some tasks finish after their job."""
_STAGED: Final = re.compile(rf"{PART_COLUMN}=(?P<part>.+)")


Announce = Callable[[Collection[str], Collection[str]], None]


class LakeError(LogError):
    """A target that can't be used, or doesn't match its source."""


class Marker(msgspec.Struct):
    """A complete batch. ``moves`` and ``deletes`` are paths below the target; ``ends`` are the last offsets
    in the tables, by cluster."""

    batch: int
    ends: dict[str, int]
    moves: list[tuple[str, str]]
    deletes: list[str]


class Lake:
    """One target, which belongs to this process until it is closed.

    ``last_batch`` is the last complete batch, -1 before the first. ``announce`` is called with the changed
    tables and the files to be deleted, once all new files exist; it may be called again for the same batch.
    """

    def __init__(self, target: Path, announce: Announce | None = None) -> None:
        self.target = target
        self._announce = announce
        self._home = target / _HOME
        self._batches = target / BATCHES
        self._batches.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(target, "lock")
        self._staging = target / STAGING
        self.last_batch = -1
        self.ends: dict[str, int] = {}
        try:
            self._recover()
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Unlock the target."""
        self._lock.close()

    def identify(self) -> str:
        """Return an id, created on the first call, by which other processes can check that they see the same
        lake."""
        known = lake_id(self.target)
        if known is None:
            known = uuid4().hex
            Disk().replace(self.target / _ID, known.encode())
        return known

    def check_stream(self) -> None:
        """Raise LakeError unless Spark's checkpoint is that of the stream that wrote the tables: in another
        stream, the same batch number means other rows."""
        checkpoint = checkpoint_of(self.target)
        last_of_stream = max((int(file.name) for file in checkpoint.glob("commits/[0-9]*")), default=-1)
        begun = checkpoint / "offsets" / str(self.last_batch)
        if last_of_stream > self.last_batch or (self.last_batch >= 0 and not begun.exists()):
            raise LakeError(
                f"{self.target}: the last complete batch of the tables is {self.last_batch}, and that of the "
                f"stream in {checkpoint} is {last_of_stream}: they don't match. Restore both from one copy, "
                "or start over with an empty target"
            )

    def begin(self, batch: int) -> Path:
        """Return an empty folder for a batch's tables. No folder is used twice, because Spark's tasks may
        outlive the batch that started them."""
        self._staging = self.target / STAGING / f"{batch:08d}-{uuid4().hex[:8]}"
        shutil.rmtree(self.target / STAGING, ignore_errors=True)
        self._staging.mkdir(parents=True)
        return self._staging

    def files(self, table: str, clusters: Iterable[str], part: str = OPEN) -> list[Path]:
        """Return a part of some clusters' table, given by their folders' names."""
        folder = self.target / table
        return [
            file
            for cluster in clusters
            for file in sorted((folder / cluster).glob("*.parquet"), key=lambda path: by_number(path.name))
            if file.name.startswith(f"{part}-")
        ]

    def open_bytes(self, clusters: Iterable[str]) -> int:
        """Return the size of some clusters' open rows, in all tables."""
        folders = [folder for cluster in clusters for folder in self.target.glob(f"*/{glob.escape(cluster)}")]
        return sum(file.stat().st_size for folder in folders for file in folder.glob(f"{OPEN}-*.parquet"))

    def commit(
        self,
        batch: int,
        replaced: Mapping[str, Sequence[str]],
        ends: Mapping[str, int],
        folded: Iterable[Path] = (),
    ) -> list[Path]:
        """Make everything that was staged the batch, and flush it. Returns the new files.

        ``replaced`` names tables whose open rows in these clusters' folders are replaced. The rows of
        ``folded`` files are among the staged ones. Raises LakeError.
        """
        moves = self._moves(batch)
        stale = [*self._replaced_files(replaced), *self._replaced_parts(moves), *folded]
        deletes = sorted({str(file.relative_to(self.target)) for file in stale})
        flush_tree(self._home)
        self._check_alone()
        self._write(Marker(batch, {**self.ends, **ends}, moves, deletes))
        self._publish(self._read(batch))
        return [self.target / to for _, to in moves]

    def _replaced_files(self, replaced: Mapping[str, Sequence[str]]) -> Iterator[Path]:
        """Yield the open rows of these tables in these clusters' folders."""
        for table, clusters in replaced.items():
            yield from self.files(table, clusters)

    def _replaced_parts(self, moves: Sequence[tuple[str, str]]) -> Iterator[Path]:
        """Yield the files of each part that a batch replaces as a whole. Only rows that stay are added to."""
        for folder, part in {_place(to) for _, to in moves}:
            if part != PART:
                yield from (self.target / folder).glob(f"{part}-*.parquet")

    def _moves(self, batch: int) -> list[tuple[str, str]]:
        staging = self._staging
        counts: dict[tuple[Path, str], int] = {}
        moves = []
        for file in sorted(staging.rglob("*.parquet")):
            staged = file.relative_to(staging)
            if _UNFINISHED in staged.parts:
                continue
            folder, part = _unstaged(staged.parent)
            number = counts.get((folder, part), 0)
            counts[folder, part] = number + 1
            to = folder / f"{part}-{batch:08d}-{number:03d}.parquet"
            moves.append((str(file.relative_to(self.target)), str(to)))
        return moves

    def _write(self, marker: Marker) -> None:
        Disk().replace(self._marker(marker.batch), msgspec.json.encode(marker))

    def _read(self, batch: int) -> Marker:
        path = self._marker(batch)
        try:
            return msgspec.json.decode(path.read_bytes(), type=Marker)
        except msgspec.DecodeError as error:
            raise LakeError(f"{path}: {error}; restore it, or start over with an empty target") from None

    def _publish(self, marker: Marker) -> None:
        """Do what a marker says. Can be repeated until the next batch begins."""
        for source, to in marker.moves:
            path = self.target / to
            path.parent.mkdir(parents=True, exist_ok=True)
            staged = self.target / source
            if staged.exists():
                staged.rename(path)
            elif not path.exists():
                raise LakeError(
                    f"{path}: the file is missing, but batch {marker.batch} wrote it; restore it, or start "
                    "over with an empty target"
                )
        flush(self._changed_folders(marker))
        if self._announce is not None:
            self._announce(_tables(marker), marker.deletes)
        for name in marker.deletes:
            self.target.joinpath(name).unlink(missing_ok=True)
        shutil.rmtree(self.target / STAGING, ignore_errors=True)
        for path in self._markers()[:-_KEPT_MARKERS]:
            path.unlink()
        self.last_batch, self.ends = marker.batch, marker.ends

    def _changed_folders(self, marker: Marker) -> set[Path]:
        """Return the folders with new files, and the folders around these."""
        folders = {self.target.joinpath(to).parent for _, to in marker.moves}
        return folders | {folder.parent for folder in folders} | {self.target}

    def _recover(self) -> None:
        complete = self._markers()
        if complete:
            self._publish(self._read(int(complete[-1].stem)))
        shutil.rmtree(self.target / STAGING, ignore_errors=True)

    def _markers(self) -> list[Path]:
        """Return the markers that are left, the last batch's last."""
        return sorted(self._batches.glob("*.json"), key=lambda path: by_number(path.name))

    def _check_alone(self) -> None:
        """Raise LakeError if another process has written a batch, or deleted what was staged: a lock can be
        lost on a network's file system."""
        newest = max((int(path.stem) for path in self._batches.glob("*.json")), default=-1)
        if newest != self.last_batch or not self._staging.is_dir():
            raise LakeError(
                f"{self.target}: another process writes there, too: the last batch is {newest}, and this "
                f"process wrote {self.last_batch}. Stop one of them"
            )

    def _marker(self, batch: int) -> Path:
        return self._batches / f"{batch:08d}.json"


@contextmanager
def one_command(target: Path) -> Iterator[None]:
    """Make sure that only one command fills a target, wherever its batches are applied. Raises LakeError."""
    target.joinpath(_HOME).mkdir(parents=True, exist_ok=True)
    with _locked(target, "command"):
        yield


def _locked(target: Path, name: str) -> TextIOWrapper:
    """Lock a file for this process until it is closed. Raises LakeError."""
    lock = target.joinpath(_HOME, name).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise LakeError(f"{target}: another pipeline writes there; stop it, or choose another") from None
    return lock


def checkpoint_of(target: Path) -> Path:
    """Return the folder of the stream's checkpoint."""
    return target / _HOME / "checkpoint"


def lake_id(target: Path) -> str | None:
    """Return the id that ``Lake.identify`` created; None if there is no lake."""
    try:
        return target.joinpath(_ID).read_text()
    except FileNotFoundError:
        return None


def cluster_of(folder: str) -> str:
    """Return the cluster of a folder, whose name Spark may have escaped."""
    return unquote(folder.removeprefix(CLUSTER_FOLDER))


def visible_tables(target: Path) -> list[str]:
    """Return the tables for readers."""
    return sorted(folder.name for folder in target.iterdir() if folder.is_dir() and folder.name[0] != "_")


def by_number(name: str) -> tuple[int, str]:
    """Return a key that orders names by the numbers in them, which may have more digits than they are filled
    up to."""
    return len(name), name


def _tables(marker: Marker) -> list[str]:
    """Return the visible tables that a batch has changed."""
    changed = [to for _, to in marker.moves] + marker.deletes
    return sorted({name.partition(os.sep)[0] for name in changed if name[0] != "_"})


def _unstaged(folder: Path) -> tuple[Path, str]:
    """TABLE/cluster=ID/kraft_part=open -> (TABLE/cluster=ID, open)."""
    match = _STAGED.fullmatch(folder.name)
    return (folder.parent, match["part"]) if match else (folder, PART)


def _place(name: str) -> tuple[str, str]:
    """TABLE/cluster=ID/2026-01-00000012-000.parquet -> (TABLE/cluster=ID, 2026-01)."""
    folder, _, file = name.rpartition(os.sep)
    return folder, file.rsplit("-", 2)[0]
