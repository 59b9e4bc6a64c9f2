"""Inspect a folder: small files, snapshots, the log, and every file beside them."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from kraft_wire.log.files import (
    LOG_SUFFIX,
    META_PROPERTIES,
    OBSERVER,
    PARTITION_FOLDER,
    QUORUM_STATE,
    RECOVERY_PLAN,
    parse_segment_file_name,
)
from kraft_wire.log.recovery import Floor, ReadableTail, SnapshotCover, trusted_floor
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import CorruptSnapshot, NewerSnapshot, NotFormatted, QuorumStateBehind
from kraft_wire.storage.folder import LEFTOVER_SUFFIXES, holder_of_lock
from kraft_wire.storage.inspection.model import FindingList, Inspection, Status
from kraft_wire.storage.inspection.segments import SegmentFindings
from kraft_wire.storage.inspection.small_files import inspect_small_files, whole_quorum_state
from kraft_wire.storage.log.durable_floor import read_floor
from kraft_wire.storage.log.log_recovery import LOG_IS_MISSING, Diagnosis, diagnose, has_leftovers
from kraft_wire.storage.log.segment import Segment
from kraft_wire.storage.quorum_state import read_static_voter_ids
from kraft_wire.storage.recovery.repair import ASIDE_MARK, LOWERED_MARK, segment_paths
from kraft_wire.storage.recovery.vote_guards import LOST_BELOW, NO_VOTE_UP_TO, read_guard
from kraft_wire.storage.snapshots.snapshot_store import CORRUPT_SUFFIX, SnapshotStore

_ATTEMPTS = 5


def metadata_dir_of(folder: Path) -> Path:
    """Return the metadata folder, given that or the metadata partition's folder inside it."""
    return folder.parent if folder.name == PARTITION_FOLDER else folder


def inspect(folder: Path) -> Inspection:
    """Inspect every file. Raises NotFormatted if there is nothing to inspect; OSError."""
    return inspect_with_tail(folder)[0]


def inspect_with_tail(folder: Path) -> tuple[Inspection, ReadableTail | None]:
    """Inspect every file. Returns also the readable tail of a log whose damage a snapshot covers, None for
    any other log. Raises NotFormatted if there is nothing to inspect; OSError."""
    metadata_dir = metadata_dir_of(folder)
    for _ in range(_ATTEMPTS):
        pid = holder_of_lock(metadata_dir)
        inspector = _Inspector(metadata_dir, pid)
        try:
            report = inspector.run()
        except FileNotFoundError:
            if pid is None:
                raise
            continue  # a running controller deletes segments and snapshots
        if pid is None or report.is_whole:
            return report, inspector.readable_tail
        # The controller may have been writing what was read; damage is still there on the next attempt.
    inspector = _Inspector(metadata_dir, holder_of_lock(metadata_dir))
    return inspector.run(), inspector.readable_tail


class _Inspector:
    """One inspection of a folder, which the process ``pid`` works on, if any."""

    def __init__(self, metadata_dir: Path, pid: int | None) -> None:
        self.root = metadata_dir
        self.partition = metadata_dir / PARTITION_FOLDER
        self.report = Inspection(str(metadata_dir), pid)
        self.findings = FindingList(self.root, self.report.findings)
        self.quorum_epoch: int | None = None
        self.start_offset = self.end_offset = 0
        self.covered: SnapshotCover | None = None
        self.readable_tail: ReadableTail | None = None

    def run(self) -> Inspection:
        if not self.partition.is_dir() and not (self.root / META_PROPERTIES).exists():
            raise NotFormatted(self.root / META_PROPERTIES)
        inspect_small_files(self.root, self.partition, self.findings)
        if self.partition.is_dir():
            state = whole_quorum_state(self.partition)
            if state is not None:
                self.quorum_epoch = state.leader_epoch
                self.report.voter_ids = read_static_voter_ids(self.partition)
            self._snapshots()
            self._log()
            self._losses()
            self._others()
        self.report.note_epochs()
        return self.report

    def _snapshots(self) -> None:
        snapshots = SnapshotStore(self.partition, Disk())
        try:
            for snapshot_id in snapshots.ids:
                if self._snapshot(snapshots, snapshot_id):
                    for message in snapshots.control(snapshot_id):
                        self._note_voters(message)
                    self.covered = SnapshotCover(snapshot_id, snapshots.ids[-1].end_offset)
        finally:
            snapshots.close()

    def _snapshot(self, snapshots: SnapshotStore, snapshot_id: SnapshotId) -> bool:
        path = snapshots.path(snapshot_id)
        records = 0
        try:
            for batch in snapshots.batches(snapshot_id):
                records = batch.header.next_offset
        except CorruptSnapshot as error:
            status: Status = "newer" if isinstance(error, NewerSnapshot) else "damaged"
            self.findings.add(path, status, error.problem, records=records)
            return False
        end_offset, epoch = snapshot_id
        self.findings.add(path, "whole", "", end_offset=end_offset, epoch=epoch, records=records)
        return True

    def _log(self) -> None:
        floor = read_floor(self.partition)
        durable_floor = trusted_floor(floor, self.quorum_epoch).offset
        self.report.is_floor_known = trusted_floor(floor, self.quorum_epoch) == floor
        with ExitStack() as stack:
            segments = self._open_segments(stack)
            if not segments:
                self._missing_log(durable_floor)
                return
            segments, found = self._diagnosis(segments, durable_floor, stack)
            reported = SegmentFindings(self.partition, self.findings, self.report)
            reported.add(segments, found)
        self._note_voters(found.chain.voters if found.corruption is None else found.corruption.voters)
        reported.add_epochs(found)
        self.start_offset, self.end_offset = segments[0].base_offset, found.chain.next_offset
        if found.corruption is not None and found.corruption.readable_tail is not None:
            self.readable_tail = found.corruption.readable_tail
            self.start_offset = self.readable_tail.offset
            self.end_offset = self.start_offset if found.tail is None else found.tail.chain.next_offset
        self._coverage()
        self._missing_quorum_state(floor)

    def _note_voters(self, record: Message | None) -> None:
        if isinstance(record, VotersRecord):
            self.report.voter_ids = [voter.voter_id for voter in record.voters]

    def _open_segments(self, stack: ExitStack) -> list[Segment]:
        segments = []
        for path in segment_paths(self.partition):
            base_offset = int(path.name.removesuffix(LOG_SUFFIX))
            segments.append(Segment.open(self.partition, base_offset, Disk(), mode=os.O_RDONLY))
            stack.callback(segments[-1].close)
        return segments

    def _missing_log(self, durable_floor: int) -> None:
        """Report that there are no segments, if other files say that there were some. A node creates its
        first segment before it takes part in anything."""
        if durable_floor:
            self.report.problems.append(f"the log is missing; it was durable up to offset {durable_floor}")
            self.report.lost_offsets = (0, durable_floor)
        elif self.quorum_epoch or has_leftovers(self.partition):
            self.report.problems.append(LOG_IS_MISSING)

    def _diagnosis(
        self, segments: list[Segment], durable_floor: int, stack: ExitStack
    ) -> tuple[list[Segment], Diagnosis]:
        # A running controller may begin an epoch between the reads of quorum-state and of the log.
        max_epoch = None if self.report.controller_pid is not None else self.quorum_epoch
        try:
            return segments, diagnose(
                self.partition,
                segments,
                durable_floor=durable_floor,
                max_epoch=max_epoch,
                covered=self.covered,
            )
        except QuorumStateBehind as error:
            self.findings.change(self.partition / QUORUM_STATE, error.problem)
        segments = self._open_segments(stack)
        return segments, diagnose(
            self.partition, segments, durable_floor=0, max_epoch=None, covered=self.covered
        )

    def _coverage(self) -> None:
        covered = 0 if self.covered is None else self.covered.snapshot_id.end_offset
        if covered < self.start_offset:
            self.report.problems.append(
                f"the log begins at offset {self.start_offset}, and no whole snapshot holds what came before"
            )

    def _missing_quorum_state(self, floor: Floor | None) -> None:
        path = self.partition / QUORUM_STATE
        if path.exists() or (self.partition / NO_VOTE_UP_TO).exists():
            return
        if self.end_offset:
            self.findings.add(path, "missing", "and the log is not empty")
        elif floor is not None and floor.quorum_epoch:
            self.findings.add(path, "missing", f"and there was one, of epoch {floor.quorum_epoch}")

    def _losses(self) -> None:
        """Report records that the log must hold again before this node votes."""
        path = self.partition / LOST_BELOW
        lost_below = read_guard(path) if self.findings.status_of(path) == "whole" else None
        if lost_below is not None and lost_below > self.end_offset:
            problem = (
                f"the log ends at offset {self.end_offset}, and had records below {lost_below} once; "
                "this node doesn't vote until it has them from the leader"
            )
            self.findings.change(path, problem, "incomplete")

    def _others(self) -> None:
        for path in sorted(self.partition.iterdir()):
            if self.findings.status_of(path) is not None:
                continue
            if ASIDE_MARK in path.name or path.name.endswith(CORRUPT_SUFFIX):
                self.findings.add(path, "aside", "kept because it was damaged")
            elif LOWERED_MARK in path.name:
                self.findings.add(path, "aside", "kept when the epoch was lowered")
            elif path.name.endswith(LEFTOVER_SUFFIXES):
                self.findings.add(path, "leftover", "removed at the next start")
            elif parse_segment_file_name(path.name) is not None or path.name in (OBSERVER, RECOVERY_PLAN):
                self.findings.add(path, "unchecked")
            else:
                self.findings.add(path, "unknown")
