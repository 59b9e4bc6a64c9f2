"""Check every batch of a log when a node starts, and decide whether a problem is a torn tail or corruption.

A tail that a crash tore off is cut away: it was never flushed, so it was never acknowledged. Any other
problem is corruption, and nothing is changed. A problem is a torn tail only if all of this is true:

- It lies above the durable floor, the offset up to which the log is known to have been flushed.
- It looks torn: the file ends within the batch, or a block of the batch was never written and reads as zeros.
  A complete batch with a wrong checksum may have been flushed, acknowledged and damaged later, because after
  a power cut the floor may be too low.
- No whole batch is found in it or after it. Whole batches may follow only in the same segment, and only if
  the bytes at the beginning of the problem were never written: a file system writes unflushed blocks in any
  order, and blocks that a power cut kept from the disk read as zeros. Damaged bits don't.

Corruption costs only history if a whole snapshot holds the outcome of the damaged records, and the log is
whole from the snapshot's end on, or from the beginning of an earlier segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kraft_wire.log.batch import Batch
from kraft_wire.log.chain import BatchChain, header_problem
from kraft_wire.log.epochs import FILE_NAME as EPOCH_CHECKPOINT
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.errors import CorruptBatch, MalformedFile
from kraft_wire.log.files import INDEX_SUFFIX, QUORUM_STATE
from kraft_wire.log.recovery import (
    ReadableTail,
    SnapshotCover,
    holds_all,
    is_history,
    is_torn_tail,
    lost_below,
)
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import CorruptLog, QuorumStateBehind
from kraft_wire.storage.log.batch_reader import read_batches
from kraft_wire.storage.log.search import is_cut_off, is_unwritten, plausible_batch, position_of, scan_after
from kraft_wire.storage.log.segment import Segment

LOG_IS_MISSING: Final = "the log is missing; other files show that there was one"


class TornTail(msgspec.Struct, frozen=True):
    """Bytes that a crash left incomplete and that recovery cut away."""

    path: Path
    position: int
    offset: int
    size_bytes: int
    reason: str


class Recovered(msgspec.Struct):
    """The whole segments of a log, with the epochs and the last VotersRecord in them. ``torn_tail`` was cut
    away."""

    segments: list[Segment]
    epochs: EpochCache
    voters: VotersRecord | None
    torn_tail: TornTail | None = None


class Diagnosis(msgspec.Struct):
    """The problem of a log, if it has one.

    ``damaged`` is the number of the first segment that can't be read to its end, None if all can, and
    ``problem`` is the reason. The problem is a torn tail unless there is ``corruption``. ``batch_counts`` are
    the numbers of batches in the segments up to that one. ``tail`` is the diagnosis of the corruption's
    readable tail, which has a torn tail at worst.
    """

    chain: BatchChain
    batch_counts: list[int]
    damaged: int | None = None
    problem: CorruptBatch | None = None
    corruption: CorruptLog | None = None
    tail: Diagnosis | None = None


def had_records_below(folder: Path) -> int:
    """Return the offset below which the log had records once, by leader-epoch-checkpoint; 0 if the file is
    missing or damaged. The log may have had more."""
    try:
        text = (folder / EPOCH_CHECKPOINT).read_bytes().decode("latin-1")
        entries = EpochCache.parse(text).entries
    except (FileNotFoundError, MalformedFile):
        return 0
    return entries[-1].start_offset + 1 if entries else 0


def has_leftovers(folder: Path) -> bool:
    """Whether the folder has files that are created with segments, and remain when the segments are
    deleted."""
    return (folder / EPOCH_CHECKPOINT).exists() or any(folder.glob(f"*{INDEX_SUFFIX}"))


def diagnose(
    folder: Path,
    segments: Sequence[Segment],
    *,
    durable_floor: int,
    max_epoch: int | None,
    covered: SnapshotCover | None = None,
) -> Diagnosis:
    """Read every batch up to the first that can't be there, and decide what that means. Nothing is changed.

    ``covered`` is the part of the log that snapshots cover. Raises QuorumStateBehind, OSError.
    """
    found = _diagnose(folder, segments, BatchChain(segments[0].base_offset, max_epoch), durable_floor)
    if found.corruption is not None and covered is not None:
        _find_readable_tail(
            folder, segments, found, covered, max(durable_floor, covered.known_end), max_epoch
        )
    return found


def _diagnose(
    folder: Path, segments: Sequence[Segment], chain: BatchChain, durable_floor: int, position: int = 0
) -> Diagnosis:
    """Diagnose the log from ``position`` in the first of the segments on."""
    counts: list[int] = []
    for number, segment in enumerate(segments):
        problem = scan(segment, chain, 0 if number else position)
        counts.append(chain.batch_count - sum(counts))
        if problem is not None:
            _check_quorum_state(folder, segment, chain, problem)
            rest = segments[number:]
            reason = judge(rest, problem, chain.next_offset, durable_floor)
            corruption = _corrupt(rest, problem, chain, reason, durable_floor) if reason else None
            return Diagnosis(chain, counts, number, problem, corruption)
    if chain.next_offset >= durable_floor:
        return Diagnosis(chain, counts)
    last = len(segments) - 1
    end = CorruptBatch(segments[last].size_bytes, chain.next_offset, "the log ends here")
    reason = f"{end.reason}, and it was durable up to offset {durable_floor}"
    corruption = _corrupt(segments[last:], end, chain, reason, durable_floor)
    return Diagnosis(chain, counts, last, end, corruption)


def _find_readable_tail(
    folder: Path,
    segments: Sequence[Segment],
    found: Diagnosis,
    covered: SnapshotCover,
    durable_floor: int,
    max_epoch: int | None,
) -> None:
    """Add to ``found`` the readable tail of the log, if the snapshot and the tail together are the full
    state."""
    assert found.corruption is not None, "only corruption needs a readable tail"
    end_offset, epoch = covered.snapshot_id
    first, here, rest = 0, found, None
    while here.corruption is not None and is_history(here.corruption.offset, covered.snapshot_id):
        beginning = _next_beginning(segments[first:], here, end_offset)
        if beginning is None:
            break
        first += beginning[0]
        base_offset, position = segments[first].base_offset, beginning[1]
        offset = end_offset if position else base_offset
        rest = ReadableTail(offset, base_offset, position)
        chain = BatchChain(offset, max_epoch, epoch if offset == end_offset else None)
        here = _diagnose(folder, segments[first:], chain, durable_floor, position)
        if position:
            break
    epoch_found = here.chain.epochs.epoch_of(end_offset - 1)
    if rest is not None and here.corruption is None and epoch_found in (epoch, None):
        found.corruption.readable_tail, found.tail = rest, here
    elif holds_all(covered, found.corruption.lost_below_offset):
        found.corruption.readable_tail = ReadableTail(end_offset, None)


def _next_beginning(segments: Sequence[Segment], found: Diagnosis, end_offset: int) -> tuple[int, int] | None:
    """Return the first place after the damage where a whole log may begin, as a segment's number and a
    position in it; None if the log would begin after ``end_offset``, the end of the snapshot."""
    assert found.damaged is not None and found.problem is not None, "there is damage"
    damaged = segments[found.damaged]
    is_gap = found.problem.position == 0 and damaged.base_offset != found.chain.next_offset
    following = found.damaged if is_gap else found.damaged + 1
    if following < len(segments) and segments[following].base_offset <= end_offset:
        return following, 0
    if is_gap or damaged.base_offset >= end_offset:
        return None
    position = position_of(damaged, found.problem.position, found.chain.next_offset, end_offset)
    return None if position is None else (found.damaged, position)


def recover(
    folder: Path,
    base_offsets: Sequence[int],
    disk: Disk,
    *,
    durable_floor: int,
    max_epoch: int | None,
    covered: SnapshotCover | None = None,
) -> Recovered:
    """Open the segments that begin at ``base_offsets`` (ascending, at least one), and cut a torn tail away.

    ``max_epoch`` is the epoch in quorum-state, if there is one; ``covered`` is the part of the log that
    snapshots cover. Raises CorruptLog and QuorumStateBehind, with every file unchanged; OSError; DiskFailed.
    """
    segments: list[Segment] = []
    try:
        for base_offset in base_offsets:
            segments.append(Segment.open(folder, base_offset, disk))
        found = diagnose(folder, segments, durable_floor=durable_floor, max_epoch=max_epoch, covered=covered)
        if found.corruption is not None:
            raise found.corruption
        chain, torn = found.chain, None
        if found.damaged is not None and found.problem is not None:
            torn = _cut(segments, found.damaged, chain.next_offset, found.problem, disk)
        return Recovered(segments, chain.epochs, chain.voters, torn)
    except BaseException:
        for segment in segments:
            segment.close()
        raise


def _check_quorum_state(folder: Path, segment: Segment, chain: BatchChain, problem: CorruptBatch) -> None:
    """Raise QuorumStateBehind if two consecutive batches have epochs above the one in quorum-state. A single
    batch with such an epoch counts as damaged."""
    if chain.max_epoch is None:
        return
    following: list[Batch] = []
    try:
        for _, batch in read_batches(segment.fd, problem.position, segment.file_size_bytes()):
            following.append(batch)
            if len(following) == 2:
                break
    except CorruptBatch:
        return
    if len(following) < 2 or not chain.is_only_ahead_of_quorum_state(following[0]):
        return
    first, second = (batch.header for batch in following)
    if not header_problem(second, first.next_offset, first.leader_epoch):
        raise QuorumStateBehind(folder / QUORUM_STATE, chain.max_epoch, first.leader_epoch)


def scan(segment: Segment, chain: BatchChain, start: int = 0) -> CorruptBatch | None:
    """Check the segment's batches and note them in the segment; returns the problem of the first that can't
    be there.

    From a ``start`` within the segment, batches are only checked.
    """
    if not start and segment.base_offset != chain.next_offset:
        return CorruptBatch(0, chain.next_offset, f"the segment begins at offset {segment.base_offset}")
    try:
        for position, batch in read_batches(segment.fd, start, segment.file_size_bytes()):
            chain.take(position, batch)
            if not start:
                segment.note(batch.header)
    except CorruptBatch as error:
        return error
    return None


def judge(segments: Sequence[Segment], problem: CorruptBatch, offset: int, durable_floor: int) -> str:
    """Return why the ``problem`` in the first of ``segments`` is corruption; empty for a torn tail."""
    here, later = segments[0], segments[1:]
    has_hole = is_unwritten(here, problem.position, offset)
    found = _whole_batch([] if has_hole else [here], problem.position, offset) or _whole_batch(
        later, 0, offset
    )
    if is_torn_tail(
        offset,
        durable_floor,
        has_hole=has_hole,
        is_cut_off=is_cut_off(here, problem.position, offset),
        whole_batch_after=found is not None,
    ):
        return ""
    if offset < durable_floor:
        return f"{problem.reason}; the log was durable up to offset {durable_floor}"
    if found is not None:
        return f"{problem.reason}; a whole batch is at {found}"
    return f"{problem.reason}; the batch is complete, so a crash didn't tear it"


def _whole_batch(segments: Sequence[Segment], start: int, offset: int) -> str | None:
    """Return where the first whole batch lies that may come after ``offset``."""
    for segment in segments:
        found = plausible_batch(segment, start, offset)
        if found is not None:
            return f"byte {found} of {segment.path.name}"
    return None


def _corrupt(
    segments: Sequence[Segment], problem: CorruptBatch, chain: BatchChain, reason: str, durable_floor: int
) -> CorruptLog:
    after = scan_after(segments, problem.position, chain.next_offset)
    lost_below_offset = lost_below(durable_floor, after.end_offset)
    voters = after.voters or chain.voters
    path = segments[0].path
    return CorruptLog(path, problem.position, chain.next_offset, reason, lost_below_offset, voters)


def _cut(
    segments: list[Segment], number: int, end_offset: int, problem: CorruptBatch, disk: Disk
) -> TornTail:
    """Let the log end at ``end_offset``, in the segment with this number."""
    torn = segments[number]
    lost = sum(segment.file_size_bytes() for segment in segments[number:]) - torn.size_bytes
    report = TornTail(torn.path, torn.size_bytes, end_offset, lost, problem.reason)
    keep = number + 1 if torn.end_offset == end_offset else number
    while len(segments) > keep:
        segments.pop().remove()
    if keep > number:
        disk.truncate(torn.fd, torn.size_bytes, torn.path)
        torn.flush()
    return report
