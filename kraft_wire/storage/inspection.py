"""Looking into a node's folder without touching it: what is whole, and what is not, file by file.

Nothing is written and no lock is taken, so that the folder of a running controller may be looked into; what
it is writing meanwhile isn't held against it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, Literal

import msgspec

from kraft_wire.log.chain import BatchChain
from kraft_wire.log.epochs import FILE_NAME as EPOCH_CHECKPOINT
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.errors import LogError, MalformedFile
from kraft_wire.log.files import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    META_PROPERTIES,
    PARTITION_FOLDER,
    PARTITION_METADATA,
    QUORUM_STATE,
    TIME_INDEX_SUFFIX,
    parse_segment_file_name,
    partition_metadata_text,
    segment_file_name,
)
from kraft_wire.log.recovery import Covered, Rest, believed
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.durable_floor import FILE_NAME as DURABLE_FLOOR
from kraft_wire.storage.durable_floor import parse_floor, read_floor
from kraft_wire.storage.errors import (
    CorruptFile,
    CorruptSnapshot,
    NotFormatted,
    QuorumStateBehind,
    StorageError,
)
from kraft_wire.storage.folder import (
    LEFTOVER_SUFFIXES,
    check_partition_metadata,
    holder_of_lock,
    read_meta_properties,
)
from kraft_wire.storage.index_check import offset_index_problem, time_index_problem
from kraft_wire.storage.quorum_state import read_election_state
from kraft_wire.storage.recovery import LOG_IS_GONE, Diagnosis, diagnose, has_leftovers, scan
from kraft_wire.storage.remembered import (
    LOST_BELOW,
    LOST_BELOW_UNLESS_ALONE,
    NO_VOTE_UP_TO,
    read_remembered,
    remembered_text,
)
from kraft_wire.storage.repair import ASIDE_MARK, segment_paths
from kraft_wire.storage.segment import Segment
from kraft_wire.storage.snapshots import (
    CORRUPT_SUFFIX,
    LEGACY_BOOTSTRAP,
    SnapshotStore,
    read_legacy_bootstrap,
)

Status = Literal[
    "whole",
    "torn",
    "covered",
    "incomplete",
    "damaged",
    "missing",
    "unchecked",
    "aside",
    "leftover",
    "unknown",
]
"""covered: damaged, and a whole snapshot holds what it came to. incomplete: the log lacks what it had once,
and gets it from the leader."""
Contents = dict[str, int | str | None]
NOT_WHOLE: Final = frozenset({"torn", "covered", "incomplete", "damaged", "missing"})
_ATTEMPTS = 5


class Finding(msgspec.Struct, omit_defaults=True):
    """One file. ``position`` and ``offset`` are those of the first damage."""

    file: str
    status: Status
    problem: str = ""
    position: int | None = None
    offset: int | None = None
    holds: Contents = {}


class Inspection(msgspec.Struct):
    """What was found. ``lost_offsets``: what cutting the damage out would cost, from the first on, below the
    second. ``history_lost_below``: it costs nothing but what is below this offset, where a snapshot goes on.
    ``is_floor_known``: by durable-floor, what was never flushed is told from what was. ``problems`` are those
    of the folder as a whole."""

    folder: str
    controller_pid: int | None
    findings: list[Finding] = []
    problems: list[str] = []
    lost_offsets: tuple[int, int] | None = None
    history_lost_below: int | None = None
    is_floor_known: bool = False

    @property
    def is_whole(self) -> bool:
        return not self.problems and not any(finding.status in NOT_WHOLE for finding in self.findings)

    @property
    def is_identity_whole(self) -> bool:
        """Whether the folder says whose it is, which nothing else can tell."""
        return not any(f.file == META_PROPERTIES and f.status in NOT_WHOLE for f in self.findings)

    @property
    def is_repairable(self) -> bool:
        """Whether anything is wrong that a repair could change."""
        statuses = {finding.status for finding in self.findings}
        return bool(self.problems or statuses & (NOT_WHOLE - {"incomplete"}))


def metadata_dir_of(folder: Path) -> Path:
    """The folder itself, or the one around it where it is the metadata partition's."""
    return folder.parent if folder.name == PARTITION_FOLDER else folder


def inspect(folder: Path) -> Inspection:
    """Look at everything. Raises NotFormatted where there is nothing to look at, OSError."""
    metadata_dir = metadata_dir_of(folder)
    for _ in range(_ATTEMPTS):
        pid = holder_of_lock(metadata_dir)
        try:
            report = _Inspector(metadata_dir, pid).run()
        except FileNotFoundError:
            if pid is None:
                raise
            continue  # a running controller deletes segments and snapshots
        if pid is None or report.is_whole:
            return report
        # It may have been writing where we looked: damage is there at the second look, too.
    return _Inspector(metadata_dir, holder_of_lock(metadata_dir)).run()


class _Inspector:
    def __init__(self, metadata_dir: Path, pid: int | None) -> None:
        self.root = metadata_dir
        self.partition = metadata_dir / PARTITION_FOLDER
        self.report = Inspection(str(metadata_dir), pid)
        self.quorum_epoch: int | None = None
        self.start_offset = self.end_offset = 0
        self.covered: Covered | None = None

    def run(self) -> Inspection:
        if not self.partition.is_dir() and not (self.root / META_PROPERTIES).exists():
            raise NotFormatted(self.root / META_PROPERTIES)
        self._small_files()
        if self.partition.is_dir():
            self._snapshots()
            self._log()
            self._losses()
            self._others()
        return self.report

    def _add(self, path: Path, status: Status, problem: str = "", **holds: int | str | None) -> Finding:
        finding = Finding(str(path.relative_to(self.root)), status, problem, holds=holds)
        self.report.findings.append(finding)
        return finding

    def _check(self, path: Path, check: Callable[[], Contents]) -> None:
        """Report a small file by what reading it says or raises."""
        if not path.exists() and path.name != META_PROPERTIES:
            return
        try:
            self._add(path, "whole", "", **check())
        except NotFormatted:
            self._add(path, "missing", "the folder can't be used without it")
        except LogError as error:
            self._add(path, "damaged", error.problem if isinstance(error, StorageError) else str(error))

    # Small files.

    def _small_files(self) -> None:
        self._check(self.root / META_PROPERTIES, self._meta_properties)
        self._check(self.root / LEGACY_BOOTSTRAP, self._legacy_bootstrap)
        if not self.partition.is_dir():
            return
        metadata = self.partition / PARTITION_METADATA
        self._check(metadata, self._partition_metadata)
        self._check(self.partition / QUORUM_STATE, self._quorum_state)
        self._check(self.partition / DURABLE_FLOOR, self._durable_floor)
        for name in (LOST_BELOW, LOST_BELOW_UNLESS_ALONE, NO_VOTE_UP_TO):
            self._check(self.partition / name, partial(_remembered, self.partition / name))

    def _meta_properties(self) -> Contents:
        properties = read_meta_properties(self.root)
        directory_id = None if properties.directory_id is None else str(properties.directory_id)
        return {
            "cluster_id": properties.cluster_id,
            "node_id": properties.node_id,
            "directory_id": directory_id,
        }

    def _partition_metadata(self) -> Contents:
        path = self.partition / PARTITION_METADATA
        check_partition_metadata(path)
        if path.read_bytes().rstrip() != partition_metadata_text().encode():
            raise CorruptFile(path, f"doesn't say {partition_metadata_text()!r}")
        return {}

    def _legacy_bootstrap(self) -> Contents:
        return {"records": len(read_legacy_bootstrap(self.root / LEGACY_BOOTSTRAP))}

    def _quorum_state(self) -> Contents:
        state = read_election_state(self.partition)
        if state is None:
            raise FileNotFoundError
        self.quorum_epoch = state.leader_epoch
        return {"epoch": state.leader_epoch, "leader": state.leader_id, "voted": state.voted_id}

    def _durable_floor(self) -> Contents:
        path = self.partition / DURABLE_FLOOR
        text = path.read_bytes().decode("latin-1")
        floor = parse_floor(text)
        if not text:
            raise CorruptFile(path, "it is empty")
        if floor is None:
            raise CorruptFile(path, "it is damaged, or was written by an unreleased version")
        return {"offset": floor.offset, "quorum_epoch": floor.quorum_epoch}

    # The log.

    def _log(self) -> None:
        floor = read_floor(self.partition)
        durable_floor = believed(floor, self.quorum_epoch).offset
        self.report.is_floor_known = believed(floor, self.quorum_epoch) == floor
        # A running controller may begin an epoch between two of our looks.
        max_epoch = None if self.report.controller_pid is not None else self.quorum_epoch
        with ExitStack() as stack:
            segments = self._open_segments(stack)
            if not segments and durable_floor:
                self.report.problems.append(f"the log is gone; it was durable up to offset {durable_floor}")
                self.report.lost_offsets = (0, durable_floor)
            elif not segments and self._had_log():
                self.report.problems.append(LOG_IS_GONE)
            if not segments:
                return
            try:
                found = diagnose(
                    self.partition,
                    segments,
                    durable_floor=durable_floor,
                    max_epoch=max_epoch,
                    covered=self.covered,
                )
            except QuorumStateBehind as error:
                self._find(self.partition / QUORUM_STATE, error.problem)
                segments = self._open_segments(stack)
                found = diagnose(
                    self.partition, segments, durable_floor=0, max_epoch=None, covered=self.covered
                )
            self._segments(segments, found)
        self._epochs(found)
        self.start_offset, self.end_offset = segments[0].base_offset, found.chain.next_offset
        if found.corruption is not None and found.corruption.rest is not None:
            self.start_offset = found.corruption.rest.offset
            self.end_offset = self.start_offset if found.rest is None else found.rest.chain.next_offset
        self._coverage()
        has_note = (self.partition / NO_VOTE_UP_TO).exists()
        if not has_note and not (self.partition / QUORUM_STATE).exists():
            if self.end_offset:
                self._add(self.partition / QUORUM_STATE, "missing", "and the log is not empty")
            elif floor is not None and floor.quorum_epoch:
                problem = f"and there was one, of epoch {floor.quorum_epoch}"
                self._add(self.partition / QUORUM_STATE, "missing", problem)

    def _losses(self) -> None:
        """What the log has to hold again before this node votes."""
        path = self.partition / LOST_BELOW
        lost_below = read_remembered(path) if self._status_of(path) == "whole" else None
        if lost_below is not None and lost_below > self.end_offset:
            problem = f"the log ends at offset {self.end_offset}, and had records below {lost_below} once; "
            self._find(
                path, problem + "this node doesn't vote until it has them from the leader", "incomplete"
            )

    def _status_of(self, path: Path) -> Status | None:
        name = str(path.relative_to(self.root))
        return next((finding.status for finding in self.report.findings if finding.file == name), None)

    def _find(self, path: Path, problem: str, status: Status = "damaged") -> None:
        """What was taken for whole isn't."""
        name = str(path.relative_to(self.root))
        for finding in self.report.findings:
            if finding.file == name:
                finding.status, finding.problem = status, problem

    def _had_log(self) -> bool:
        """A node makes its first segment before it takes part in anything."""
        return bool(self.quorum_epoch) or has_leftovers(self.partition)

    def _open_segments(self, stack: ExitStack) -> list[Segment]:
        segments = []
        for path in segment_paths(self.partition):
            base_offset = int(path.name.removesuffix(LOG_SUFFIX))
            segments.append(Segment.open(self.partition, base_offset, Disk(), mode=os.O_RDONLY))
            stack.callback(segments[-1].close)
        return segments

    def _segments(self, segments: Sequence[Segment], found: Diagnosis, first: int = 0) -> None:
        if found.corruption is not None and found.corruption.rest is not None:
            self._covered_segments(segments, found, found.corruption.rest)
            return
        for number, segment in list(enumerate(segments))[first:]:
            if found.damaged is None or number < found.damaged:
                self._add(segment.path, "whole", "", **_contents(segment, found, number))
                self._indexes(segment)
            elif number == found.damaged:
                self._damaged_segment(segment, found, number)
            else:
                self._segment_behind(segment, segments[found.damaged])

    def _covered_segments(self, segments: Sequence[Segment], found: Diagnosis, rest: Rest) -> None:
        assert found.damaged is not None, "there is damage"
        self.report.history_lost_below = rest.offset
        below = [segment for segment in segments if found.rest is None or segment.base_offset < rest.offset]
        for number, segment in enumerate(below):
            if number < found.damaged:
                self._add(segment.path, "whole", "", **_contents(segment, found, number))
            elif number == found.damaged:
                self._damaged_segment(segment, found, number)
            else:
                self._segment_behind(segment, segments[found.damaged], "covered")
        if found.rest is not None:
            is_split = int(rest.position > 0)
            self._segments(segments[len(below) - is_split :], found.rest, is_split)

    def _damaged_segment(self, segment: Segment, found: Diagnosis, number: int) -> None:
        assert found.problem is not None, "it goes with the number"
        damage = found.corruption
        reason = found.problem.reason if damage is None else damage.reason
        status: Status = "torn" if damage is None else "damaged" if damage.rest is None else "covered"
        finding = self._add(segment.path, status, reason, **_contents(segment, found, number))
        finding.position, finding.offset = found.problem.position, found.chain.next_offset
        finding.holds["bytes_behind"] = segment.file_size_bytes() - segment.size_bytes
        if damage is not None and damage.rest is None:
            self.report.lost_offsets = (damage.offset, max(damage.lost_below_offset, damage.offset + 1))

    def _segment_behind(self, segment: Segment, damaged: Segment, status: Status = "damaged") -> None:
        """A segment that can't be kept, as what comes before it is gone."""
        chain = BatchChain(segment.base_offset, None)
        problem = scan(segment, chain)
        finding = self._add(
            segment.path,
            "whole" if problem is None else status,
            f"behind the damage in {damaged.path.name}" if problem is None else problem.reason,
            batches=chain.batch_count,
            first_offset=segment.base_offset,
            end_offset=chain.next_offset,
        )
        if problem is not None:
            finding.position, finding.offset = problem.position, chain.next_offset

    def _indexes(self, segment: Segment) -> None:
        for suffix, find_problem in (
            (INDEX_SUFFIX, offset_index_problem),
            (TIME_INDEX_SUFFIX, time_index_problem),
        ):
            path = self.partition / segment_file_name(segment.base_offset, suffix)
            try:
                problem = find_problem(segment, path.read_bytes())
            except FileNotFoundError:
                self._add(path, "missing", "it is made anew from the segment")
                continue
            self._add(path, "damaged" if problem else "whole", problem)

    def _epochs(self, found: Diagnosis) -> None:
        path = self.partition / EPOCH_CHECKPOINT
        try:
            says = EpochCache.parse(path.read_bytes().decode("latin-1")).entries
        except FileNotFoundError:
            if len(found.chain.epochs):
                self._add(path, "missing", "it is made anew from the log")
            return
        except MalformedFile as error:
            self._add(path, "damaged", error.reason)
            return
        holds = found.chain.epochs.entries
        if found.damaged is not None or self.report.controller_pid is not None:
            says = holds = []  # nothing to compare: the log's end is damaged, or moves
        # Where the log begins within a segment, only this file knows.
        is_equal = says[1:] == holds[1:] and [e.epoch for e in says] == [e.epoch for e in holds]
        problem = "" if is_equal else f"says {_epoch_text(says)}, and the log holds {_epoch_text(holds)}"
        self._add(path, "whole" if is_equal else "damaged", problem)

    # Snapshots, and what else there is.

    def _snapshots(self) -> None:
        snapshots = SnapshotStore(self.partition, Disk())
        try:
            for snapshot_id in snapshots.ids:
                if self._snapshot(snapshots, snapshot_id):
                    self.covered = Covered(snapshot_id, snapshots.ids[-1].end_offset)
        finally:
            snapshots.close()

    def _coverage(self) -> None:
        covered = 0 if self.covered is None else self.covered.snapshot_id.end_offset
        if covered < self.start_offset:
            self.report.problems.append(
                f"the log begins at offset {self.start_offset}, and no whole snapshot holds what came before"
            )

    def _snapshot(self, snapshots: SnapshotStore, snapshot_id: SnapshotId) -> bool:
        path = snapshots.path(snapshot_id)
        records = 0
        try:
            for batch in snapshots.batches(snapshot_id):
                records = batch.header.next_offset
        except CorruptSnapshot as error:
            self._add(path, "damaged", error.problem, records=records)
            return False
        end_offset, epoch = snapshot_id
        self._add(path, "whole", "", end_offset=end_offset, epoch=epoch, records=records)
        return True

    def _others(self) -> None:
        known = {finding.file for finding in self.report.findings}
        for path in sorted(self.partition.iterdir()):
            if str(path.relative_to(self.root)) in known:
                continue
            if ASIDE_MARK in path.name or path.name.endswith(CORRUPT_SUFFIX):
                self._add(path, "aside", "kept because it was damaged")
            elif path.name.endswith(LEFTOVER_SUFFIXES):
                self._add(path, "leftover", "removed at the next start")
            elif parse_segment_file_name(path.name) is not None:
                self._add(path, "unchecked")
            else:
                self._add(path, "unknown")


def _contents(segment: Segment, found: Diagnosis, number: int) -> Contents:
    epochs = found.chain.epochs
    return {
        "batches": found.batch_counts[number],
        "first_offset": segment.base_offset,
        "end_offset": segment.end_offset,
        "first_epoch": epochs.epoch_of(segment.base_offset) if segment.size_bytes else None,
        "last_epoch": epochs.epoch_of(segment.end_offset - 1) if segment.size_bytes else None,
    }


def _remembered(path: Path) -> Contents:
    number = read_remembered(path)
    if number is None:
        raise FileNotFoundError
    if path.read_bytes() != remembered_text(number).encode():
        raise CorruptFile(path, f"one of its two lines; the other says {number}")
    return {"number": number}


def _epoch_text(entries: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"epoch {epoch} from {start}" for epoch, start in entries) or "none"
