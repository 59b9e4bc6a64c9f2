"""What a log's files hold when a node starts: every batch is read and checked, and what does not fit is
judged.

A tail that a crash tore off is cut away: it was never flushed, so nobody was told that it is there.
Everything else that does not fit is corruption, and nothing is changed. It is a torn tail only if

- it lies above the durable floor (what is known to have been flushed), and
- it looks torn: the file ends within the batch, or a block of it was never written and reads as zeros. A
  batch that is all there and has the wrong checksum may have been flushed and acknowledged, and rotted since:
  after a power cut the floor may lag behind. And
- no whole batch can be found in it or behind it; or those that can are in the same segment, and the bytes
  where it begins were never written. A file system writes the blocks of what isn't flushed in any order, and
  those that a power cut kept from the disk read as zeros. Rotten bits don't.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from kraft_wire.log.batch import Batch
from kraft_wire.log.chain import BatchChain
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.files import QUORUM_STATE
from kraft_wire.log.recovery import is_torn_tail, lost_below
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.storage.batch_reader import read_batches
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import CorruptLog, QuorumStateBehind
from kraft_wire.storage.search import is_cut_off, is_unwritten, look_behind, plausible_batch
from kraft_wire.storage.segment import Segment


class TornTail(msgspec.Struct, frozen=True):
    """Bytes that a crash left incomplete and recovery cut away."""

    path: Path
    position: int
    offset: int
    size_bytes: int
    reason: str


class Recovered(msgspec.Struct):
    """The segments of a log, whole, and the epochs and the last voters in them. ``torn_tail`` is what was cut
    away to get there."""

    segments: list[Segment]
    epochs: EpochCache
    voters: VotersRecord | None
    torn_tail: TornTail | None = None


class Diagnosis(msgspec.Struct):
    """What is wrong with a log, if anything is. ``damaged`` is the number of the first segment that can't be
    read to its end, None where all can; ``problem`` says why. It is a torn tail unless there is
    ``corruption``. ``batch_counts`` are those of the segments, up to that one."""

    chain: BatchChain
    batch_counts: list[int]
    damaged: int | None = None
    problem: CorruptBatch | None = None
    corruption: CorruptLog | None = None


def diagnose(
    folder: Path, segments: Sequence[Segment], *, durable_floor: int, max_epoch: int | None
) -> Diagnosis:
    """Read every batch up to the first that can't be there, and judge it; nothing is changed.

    Raises QuorumStateBehind, OSError.
    """
    chain = BatchChain(segments[0].base_offset, max_epoch)
    counts: list[int] = []
    for number, segment in enumerate(segments):
        problem = scan(segment, chain)
        counts.append(chain.batch_count - sum(counts))
        if problem is not None:
            _check_quorum_state(folder, segment, chain, problem, max_epoch)
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


def recover(
    folder: Path, base_offsets: Sequence[int], disk: Disk, *, durable_floor: int, max_epoch: int | None
) -> Recovered:
    """Open the segments that begin at ``base_offsets`` (ascending, at least one), cutting a torn tail away.

    ``max_epoch`` is the epoch in quorum-state, where there is one. Raises CorruptLog, QuorumStateBehind, with
    every file as it was; OSError; DiskFailed.
    """
    segments: list[Segment] = []
    try:
        for base_offset in base_offsets:
            segments.append(Segment.open(folder, base_offset, disk))
        found = diagnose(folder, segments, durable_floor=durable_floor, max_epoch=max_epoch)
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


def _check_quorum_state(
    folder: Path, segment: Segment, chain: BatchChain, problem: CorruptBatch, max_epoch: int | None
) -> None:
    """An epoch that quorum-state doesn't know may be damage to a batch, or to quorum-state: two batches in a
    row are believed. Raises QuorumStateBehind."""
    if max_epoch is None:
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
    if second.base_offset == first.next_offset and second.leader_epoch >= first.leader_epoch:
        raise QuorumStateBehind(folder / QUORUM_STATE, max_epoch, first.leader_epoch)


def scan(segment: Segment, chain: BatchChain) -> CorruptBatch | None:
    """Feed the segment with its batches; returns what is wrong with the first that cannot be there."""
    if segment.base_offset != chain.next_offset:
        return CorruptBatch(0, chain.next_offset, f"the segment begins at offset {segment.base_offset}")
    try:
        for position, batch in read_batches(segment.fd, 0, segment.file_size_bytes()):
            chain.take(position, batch)
            segment.note(batch.header)
    except CorruptBatch as error:
        return error
    return None


def judge(segments: Sequence[Segment], problem: CorruptBatch, offset: int, durable_floor: int) -> str:
    """Why what begins with ``problem`` in the first of ``segments`` is corruption; empty for a torn tail."""
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
        whole_batch_behind=found is not None,
    ):
        return ""
    if offset < durable_floor:
        return f"{problem.reason}; the log was durable up to offset {durable_floor}"
    if found is not None:
        return f"{problem.reason}; a whole batch is at {found}"
    return f"{problem.reason}; no block of it is missing, so it wasn't torn"


def _whole_batch(segments: Sequence[Segment], start: int, offset: int) -> str | None:
    """Where the first is that may belong behind ``offset``."""
    for segment in segments:
        found = plausible_batch(segment, start, offset)
        if found is not None:
            return f"byte {found} of {segment.path.name}"
    return None


def _corrupt(
    segments: Sequence[Segment], problem: CorruptBatch, chain: BatchChain, reason: str, durable_floor: int
) -> CorruptLog:
    behind = look_behind(segments, problem.position, chain.next_offset)
    lost_below_offset = lost_below(durable_floor, behind.end_offset)
    voters = behind.voters or chain.voters
    path = segments[0].path
    return CorruptLog(path, problem.position, chain.next_offset, reason, lost_below_offset, voters)


def _cut(
    segments: list[Segment], number: int, end_offset: int, problem: CorruptBatch, disk: Disk
) -> TornTail:
    """Let the log end at ``end_offset``, where the segment of this number stops making sense."""
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
