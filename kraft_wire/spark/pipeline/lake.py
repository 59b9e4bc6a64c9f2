"""The folder that the tables are kept in, and how a batch gets into it as a whole.

    TABLE/cluster=ID/part-00000012-000.parquet    rows that stay: batch 12 wrote them
    TABLE/cluster=ID/open-00000012-000.parquet    rows that the next batch with any news replaces
    _kraft/staging/00000012-9f3c2a41/TABLE/...    what batch 12 writes, until it is complete
    _kraft/batches/00000012.json                  batch 12 is complete: which file goes where, and which go
    _kraft/checkpoint, _kraft/pending, _kraft/lock, _kraft/command
    _kraft/id                                     of this lake, wherever it is mounted

A batch counts from the moment that its file in ``batches`` is there, by one rename. What that file says is
done, and done again after a kill, until all is where it belongs; before it, all is thrown away and written
again. Whoever reads the tables without us sees no file whose name begins with an underscore.
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

from kraft_wire.log.errors import LogError
from kraft_wire.spark.pipeline.flushing import flush, flush_tree
from kraft_wire.storage.disk import Disk

PART: Final = "part"
"""Rows that stay. Every other part of a cluster's table is replaced as a whole."""
OPEN: Final = "open"
PART_COLUMN: Final = "kraft_part"
CLUSTER_FOLDER: Final = "cluster="
"""How the names of folders of a table begin. Delta has one of its own there, with Parquet in it too."""
PENDING: Final = "_kraft/pending"
"""A hidden table: records of metadata transactions that were still open."""

_HOME: Final = "_kraft"
_ID: Final = f"{_HOME}/id"
BATCHES: Final = f"{_HOME}/batches"
STAGING: Final = f"{_HOME}/staging"
_KEPT_MARKERS: Final = 2
_UNFINISHED: Final = "_temporary"
"""Where Spark's tasks write until their job is over; some come too late for that."""
_STAGED: Final = re.compile(rf"{PART_COLUMN}=(?P<part>.+)")


Announce = Callable[[Collection[str], Collection[str]], None]


class LakeError(LogError):
    """The target can't be used, or doesn't go with its source."""


class Marker(msgspec.Struct):
    """A complete batch. ``moves`` and ``deletes`` are paths below the target; ``ends`` says for every cluster
    which offset its tables have been brought up to."""

    batch: int
    ends: dict[str, int]
    moves: list[tuple[str, str]]
    deletes: list[str]


class Lake:
    """One target, which belongs to this process until it is left.

    ``last_batch`` is the last complete one, -1 before the first. ``announce`` is told of the tables that have
    changed, and of files that are about to go, when all new files are there; it may be told again.
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
        """Let others have it."""
        self._lock.close()

    def identify(self) -> str:
        """An id, given when it is asked for first, by which others can tell that they see the same lake."""
        known = lake_id(self.target)
        if known is None:
            known = uuid4().hex
            Disk().replace(self.target / _ID, known.encode())
        return known

    def check_stream(self) -> None:
        """Raises LakeError where Spark's checkpoint isn't that of the stream which has written the tables: it
        counts batches, and a number would stand for other rows."""
        checkpoint = checkpoint_of(self.target)
        told = max((int(file.name) for file in checkpoint.glob("commits/[0-9]*")), default=-1)
        begun = checkpoint / "offsets" / str(self.last_batch)
        if told > self.last_batch or (self.last_batch >= 0 and not begun.exists()):
            raise LakeError(
                f"{self.target}: the last complete batch of the tables is {self.last_batch}, and that of the "
                f"stream in {checkpoint} is {told}: they don't belong together. Restore both from one copy, "
                "or start over with an empty target"
            )

    def begin(self, batch: int) -> Path:
        """An empty folder for a batch's tables. Spark's tasks may outlive whoever has started them: nobody
        else ever gets the same one."""
        self._staging = self.target / STAGING / f"{batch:08d}-{uuid4().hex[:8]}"
        shutil.rmtree(self.target / STAGING, ignore_errors=True)
        self._staging.mkdir(parents=True)
        return self._staging

    def files(self, table: str, clusters: Iterable[str], part: str = OPEN) -> list[Path]:
        """A part of some clusters' table, by their folders' names."""
        folder = self.target / table
        return [
            file
            for cluster in clusters
            for file in sorted((folder / cluster).glob("*.parquet"))
            if file.name.startswith(f"{part}-")
        ]

    def open_bytes(self, clusters: Iterable[str]) -> int:
        """How large the open rows of some clusters are, in all tables."""
        folders = [folder for cluster in clusters for folder in self.target.glob(f"*/{glob.escape(cluster)}")]
        return sum(file.stat().st_size for folder in folders for file in folder.glob(f"{OPEN}-*.parquet"))

    def commit(
        self,
        batch: int,
        replaced: Mapping[str, Sequence[str]],
        ends: Mapping[str, int],
        folded: Iterable[Path] = (),
    ) -> None:
        """Everything that was staged is the batch, and is on stable storage then. ``replaced`` names tables
        whose open rows, of these clusters' folders, are no longer what they were; the rows of ``folded``
        files are among those that were staged."""
        moves = self._moves(batch)
        fresh = {_place(to) for _, to in moves}
        stale = [
            file.relative_to(self.target)
            for table, clusters in replaced.items()
            for file in self.files(table, clusters)
        ]
        stale += [
            file.relative_to(self.target)
            for folder, part in fresh
            if part != PART
            for file in (self.target / folder).glob(f"{part}-*.parquet")
        ]
        stale += [file.relative_to(self.target) for file in folded]
        deletes = sorted({str(file) for file in stale})
        flush_tree(self._home)
        self._write(Marker(batch, {**self.ends, **ends}, moves, deletes))
        self._publish(self._read(batch))

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
        """Can be done again at any time, until the next batch begins."""
        for source, to in marker.moves:
            path = self.target / to
            path.parent.mkdir(parents=True, exist_ok=True)
            staged = self.target / source
            if staged.exists():
                staged.rename(path)
            elif not path.exists():
                raise LakeError(
                    f"{path}: it is gone, and batch {marker.batch} has written it; restore it, or start over "
                    "with an empty target"
                )
        flush(self._changed_folders(marker))
        if self._announce is not None:
            self._announce(_tables(marker), marker.deletes)
        for name in marker.deletes:
            self.target.joinpath(name).unlink(missing_ok=True)
        shutil.rmtree(self.target / STAGING, ignore_errors=True)
        for path in sorted(self._batches.glob("*.json"))[:-_KEPT_MARKERS]:
            path.unlink()
        self.last_batch, self.ends = marker.batch, marker.ends

    def _changed_folders(self, marker: Marker) -> set[Path]:
        """Where files are now, and the folders of these folders."""
        folders = {self.target.joinpath(to).parent for _, to in marker.moves}
        return folders | {folder.parent for folder in folders} | {self.target}

    def _recover(self) -> None:
        complete = sorted(self._batches.glob("*.json"))
        if complete:
            self._publish(self._read(int(complete[-1].stem)))
        shutil.rmtree(self.target / STAGING, ignore_errors=True)

    def _marker(self, batch: int) -> Path:
        return self._batches / f"{batch:08d}.json"


@contextmanager
def one_command(target: Path) -> Iterator[None]:
    """From its first batch to its last, one command fills a target, wherever its batches are applied. Raises
    LakeError."""
    target.joinpath(_HOME).mkdir(parents=True, exist_ok=True)
    with _locked(target, "command"):
        yield


def _locked(target: Path, name: str) -> TextIOWrapper:
    """A file that is this process's until it is closed. Raises LakeError."""
    lock = target.joinpath(_HOME, name).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise LakeError(f"{target}: another pipeline writes there; stop it, or choose another") from None
    return lock


def checkpoint_of(target: Path) -> Path:
    """Where Spark keeps how far the stream is."""
    return target / _HOME / "checkpoint"


def lake_id(target: Path) -> str | None:
    """What ``Lake.identify`` gave; None where there is no lake."""
    try:
        return target.joinpath(_ID).read_text()
    except FileNotFoundError:
        return None


def cluster_of(folder: str) -> str:
    """Whose rows are in a folder of this name: Spark escapes what a path may not hold."""
    return unquote(folder.removeprefix(CLUSTER_FOLDER))


def visible_tables(target: Path) -> list[str]:
    """The tables that anybody may read."""
    return sorted(folder.name for folder in target.iterdir() if folder.is_dir() and folder.name[0] != "_")


def _tables(marker: Marker) -> list[str]:
    """The visible ones that a batch has changed."""
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
