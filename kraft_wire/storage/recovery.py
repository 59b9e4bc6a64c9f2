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

Corruption costs nothing but history where a whole snapshot holds what it came to, and the log is whole from
the snapshot's end on, or from a segment's beginning before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kraft_wire.log.batch import Batch
from kraft_wire.log.chain import BatchChain
from kraft_wire.log.epochs import FILE_NAME as EPOCH_CHECKPOINT
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.errors import CorruptBatch, MalformedFile
from kraft_wire.log.files import INDEX_SUFFIX, QUORUM_STATE
from kraft_wire.log.recovery import Covered, Rest, holds_all, is_history, is_torn_tail, lost_below
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.storage.batch_reader import read_batches
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import CorruptLog, QuorumStateBehind
from kraft_wire.storage.search import is_cut_off, is_unwritten, look_behind, plausible_batch, position_of
from kraft_wire.storage.segment import Segment

LOG_IS_GONE: Final = "the log is gone; other files say that there was one"


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
    ``corruption``. ``batch_counts`` are those of the segments, up to that one. ``rest`` is what is wrong with
    the log from the corruption's ``rest`` on: a torn tail at the most."""

    chain: BatchChain
    batch_counts: list[int]
    damaged: int | None = None
    problem: CorruptBatch | None = None
    corruption: CorruptLog | None = None
    rest: Diagnosis | None = None


def had_records_below(folder: Path) -> int:
    """Below which offset a log had records once, by leader-epoch-checkpoint; it may have had more. 0 where
    the file says nothing."""
    try:
        text = (folder / EPOCH_CHECKPOINT).read_bytes().decode("latin-1")
        entries = EpochCache.parse(text).entries
    except (FileNotFoundError, MalformedFile):
        return 0
    return entries[-1].start_offset + 1 if entries else 0


def has_leftovers(folder: Path) -> bool:
    """Whether anything lies there that is made with segments, and outlives those that somebody deletes."""
    return (folder / EPOCH_CHECKPOINT).exists() or any(folder.glob(f"*{INDEX_SUFFIX}"))


def diagnose(
    folder: Path,
    segments: Sequence[Segment],
    *,
    durable_floor: int,
    max_epoch: int | None,
    covered: Covered | None = None,
) -> Diagnosis:
    """Read every batch up to the first that can't be there, and judge it; nothing is changed. ``covered`` is
    what a whole snapshot holds of the log.

    Raises QuorumStateBehind, OSError.
    """
    found = _diagnose(folder, segments, BatchChain(segments[0].base_offset, max_epoch), durable_floor)
    if found.corruption is not None and covered is not None:
        _look_for_rest(folder, segments, found, covered, max(durable_floor, covered.known_end), max_epoch)
    return found


def _diagnose(
    folder: Path, segments: Sequence[Segment], chain: BatchChain, durable_floor: int, position: int = 0
) -> Diagnosis:
    """From ``position`` in the first of the segments on."""
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


def _look_for_rest(
    folder: Path,
    segments: Sequence[Segment],
    found: Diagnosis,
    covered: Covered,
    durable_floor: int,
    max_epoch: int | None,
) -> None:
    """Note in ``found`` from where on the log is whole and, with the snapshot, all that there was."""
    assert found.corruption is not None, "there is something to do without"
    end_offset, epoch = covered.snapshot_id
    first, here, rest = 0, found, None
    while here.corruption is not None and is_history(here.corruption.offset, covered.snapshot_id):
        beginning = _next_beginning(segments[first:], here, end_offset)
        if beginning is None:
            break
        first += beginning[0]
        base_offset, position = segments[first].base_offset, beginning[1]
        offset = end_offset if position else base_offset
        rest = Rest(offset, base_offset, position)
        chain = BatchChain(offset, max_epoch, epoch if offset == end_offset else None)
        here = _diagnose(folder, segments[first:], chain, durable_floor, position)
        if position:
            break
    epoch_found = here.chain.epochs.epoch_of(end_offset - 1)
    if rest is not None and here.corruption is None and epoch_found in (epoch, None):
        found.corruption.rest, found.rest = rest, here
    elif holds_all(covered, found.corruption.lost_below_offset):
        found.corruption.rest = Rest(end_offset, None)


def _next_beginning(segments: Sequence[Segment], found: Diagnosis, end_offset: int) -> tuple[int, int] | None:
    """The first place behind damage from where the log may be whole, and that a snapshot reaches which ends
    at ``end_offset``: the number of a segment, and a position in it."""
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
    covered: Covered | None = None,
) -> Recovered:
    """Open the segments that begin at ``base_offsets`` (ascending, at least one), cutting a torn tail away.

    ``max_epoch`` is the epoch in quorum-state, where there is one, ``covered`` what a whole snapshot holds.
    Raises CorruptLog, QuorumStateBehind, with
    every file as it was; OSError; DiskFailed.
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
    """An epoch that quorum-state doesn't know may be damage to a batch, or to quorum-state: two batches in a
    row are believed. Raises QuorumStateBehind."""
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
    if second.base_offset == first.next_offset and second.leader_epoch >= first.leader_epoch:
        raise QuorumStateBehind(folder / QUORUM_STATE, chain.max_epoch, first.leader_epoch)


def scan(segment: Segment, chain: BatchChain, start: int = 0) -> CorruptBatch | None:
    """Feed the segment with its batches; returns what is wrong with the first that cannot be there. Batches
    from a ``start`` within the segment on are only looked at."""
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
