"""Report the segments of a log, their indexes, and leader-epoch-checkpoint, by what a diagnosis found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kraft_wire.log.chain import BatchChain
from kraft_wire.log.epochs import FILE_NAME as EPOCH_CHECKPOINT
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.errors import MalformedFile
from kraft_wire.log.files import INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_file_name
from kraft_wire.log.recovery import ReadableTail
from kraft_wire.storage.inspection.model import Contents, FindingList, Inspection, Status
from kraft_wire.storage.log.index_check import offset_index_problem, time_index_problem
from kraft_wire.storage.log.log_recovery import Diagnosis, scan
from kraft_wire.storage.log.segment import Segment


class SegmentFindings:
    """The findings about a log's segments; what cutting damage out would lose goes into ``report``."""

    def __init__(self, partition: Path, findings: FindingList, report: Inspection) -> None:
        self._partition = partition
        self._findings = findings
        self._report = report

    def add(self, segments: Sequence[Segment], found: Diagnosis, first: int = 0) -> None:
        """Report the segments from number ``first`` on."""
        if found.corruption is not None and found.corruption.readable_tail is not None:
            self._add_covered(segments, found, found.corruption.readable_tail)
            return
        for number, segment in list(enumerate(segments))[first:]:
            if found.damaged is None or number < found.damaged:
                self._findings.add(segment.path, "whole", "", **_contents(segment, found, number))
                self._add_indexes(segment)
            elif number == found.damaged:
                self._add_damaged(segment, found, number)
            else:
                self._add_after_damage(segment, segments[found.damaged])

    def _add_covered(self, segments: Sequence[Segment], found: Diagnosis, rest: ReadableTail) -> None:
        """Report a damaged log whose damage a snapshot makes up for."""
        assert found.damaged is not None, "there is damage"
        self._report.history_lost_below = rest.offset
        below = [segment for segment in segments if found.tail is None or segment.base_offset < rest.offset]
        for number, segment in enumerate(below):
            if number < found.damaged:
                self._findings.add(segment.path, "whole", "", **_contents(segment, found, number))
            elif number == found.damaged:
                self._add_damaged(segment, found, number)
            else:
                self._add_after_damage(segment, segments[found.damaged], "covered")
        if found.tail is not None:
            is_split = int(rest.position > 0)
            self.add(segments[len(below) - is_split :], found.tail, is_split)

    def _add_damaged(self, segment: Segment, found: Diagnosis, number: int) -> None:
        assert found.problem is not None, "it goes with the number"
        damage = found.corruption
        reason = found.problem.reason if damage is None else damage.reason
        status: Status = (
            "torn" if damage is None else "damaged" if damage.readable_tail is None else "covered"
        )
        finding = self._findings.add(segment.path, status, reason, **_contents(segment, found, number))
        finding.position, finding.offset = found.problem.position, found.chain.next_offset
        finding.holds["bytes_after"] = segment.file_size_bytes() - segment.size_bytes
        if damage is not None and damage.readable_tail is None:
            self._report.lost_offsets = (damage.offset, max(damage.lost_below_offset, damage.offset + 1))

    def _add_after_damage(self, segment: Segment, damaged: Segment, status: Status = "damaged") -> None:
        """Report a segment that can't be kept, because records before it are lost."""
        chain = BatchChain(segment.base_offset, None)
        problem = scan(segment, chain)
        finding = self._findings.add(
            segment.path,
            "whole" if problem is None else status,
            f"after the damage in {damaged.path.name}" if problem is None else problem.reason,
            batches=chain.batch_count,
            first_offset=segment.base_offset,
            end_offset=chain.next_offset,
        )
        if problem is not None:
            finding.position, finding.offset = problem.position, chain.next_offset

    def _add_indexes(self, segment: Segment) -> None:
        for suffix, find_problem in (
            (INDEX_SUFFIX, offset_index_problem),
            (TIME_INDEX_SUFFIX, time_index_problem),
        ):
            path = self._partition / segment_file_name(segment.base_offset, suffix)
            try:
                problem = find_problem(segment, path.read_bytes())
            except FileNotFoundError:
                self._findings.add(path, "missing", "it is rebuilt from the segment")
                continue
            self._findings.add(path, "damaged" if problem else "whole", problem)

    def add_epochs(self, found: Diagnosis) -> None:
        """Report leader-epoch-checkpoint, compared with the epochs in the log."""
        path = self._partition / EPOCH_CHECKPOINT
        try:
            says = EpochCache.parse(path.read_bytes().decode("latin-1")).entries
        except FileNotFoundError:
            if len(found.chain.epochs):
                self._findings.add(path, "missing", "it is rebuilt from the log")
            return
        except MalformedFile as error:
            self._findings.add(path, "damaged", error.reason)
            return
        holds = found.chain.epochs.entries
        if found.damaged is not None or self._report.controller_pid is not None:
            says = holds = []  # not comparable: the end of the log is damaged, or moves
        # Only this file knows where a log begins that begins within a segment.
        is_equal = says[1:] == holds[1:] and [e.epoch for e in says] == [e.epoch for e in holds]
        problem = "" if is_equal else f"says {_epoch_text(says)}, and the log holds {_epoch_text(holds)}"
        self._findings.add(path, "whole" if is_equal else "damaged", problem)


def _contents(segment: Segment, found: Diagnosis, number: int) -> Contents:
    epochs = found.chain.epochs
    return {
        "batches": found.batch_counts[number],
        "first_offset": segment.base_offset,
        "end_offset": segment.end_offset,
        "first_epoch": epochs.epoch_of(segment.base_offset) if segment.size_bytes else None,
        "last_epoch": epochs.epoch_of(segment.end_offset - 1) if segment.size_bytes else None,
    }


def _epoch_text(entries: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"epoch {epoch} from {start}" for epoch, start in entries) or "none"
