"""Decide what a starting node may trust of its files. ``kraft_wire.storage`` reads the files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kraft_wire.log.snapshot import SnapshotId

EPOCHS_WITHOUT_TRACE: Final = 1000
"""A node that lost quorum-state may have voted in this many epochs above those that it knows of."""


class Floor(NamedTuple):
    """The durable floor: all records below ``offset`` were on stable storage when quorum-state had
    ``quorum_epoch``.

    Records of the log below ``committed_offset`` were committed at that time. That may be more than was
    flushed here: a majority without this node had them.
    """

    offset: int
    quorum_epoch: int
    committed_offset: int = 0


NOTHING_KNOWN = Floor(0, 0)


class SnapshotCover(NamedTuple):
    """The part of a log that snapshots cover: the newest whole snapshot, and the highest end of all
    snapshots, whole or not. Everything below that end was committed once."""

    snapshot_id: SnapshotId
    known_end: int


class ReadableTail(NamedTuple):
    """The readable tail of a damaged log; with the snapshot it is the full state, only history is lost.

    It begins with ``offset``, at ``position`` in the segment that begins at ``base_offset``. ``base_offset``
    is None if the snapshot holds everything.
    """

    offset: int
    base_offset: int | None
    position: int = 0


def trusted_floor(found: Floor | None, quorum_epoch: int | None) -> Floor:
    """Return the durable floor if quorum-state still has its epoch; NOTHING_KNOWN otherwise.

    A controller that doesn't know of the floor, such as Java's, may have truncated the log in another epoch.
    ``quorum_epoch`` is None if quorum-state is missing.
    """
    return found if found is not None and found.quorum_epoch == quorum_epoch else NOTHING_KNOWN


def committed_end(floor: Floor, log_end_offset: int) -> int:
    """Return the offset up to which a log that ends at ``log_end_offset`` is known to be committed.

    It is never above the flushed offset: after a power cut the contents of the disk above it are unknown.
    """
    return min(floor.committed_offset, floor.offset, log_end_offset)


def is_torn_tail(
    offset: int, floor: int, *, has_hole: bool, is_cut_off: bool, whole_batch_after: bool
) -> bool:
    """Whether a crash may have left the unreadable bytes at ``offset``. Everything else is damage.

    No record below the floor may be missing, and part of the batch that begins there must never have reached
    the disk: its end, or one of its blocks while others did. Whole batches may follow a hole in the same
    segment, and nothing else.
    """
    return offset >= floor and (has_hole or is_cut_off) and not whole_batch_after


def is_history(damaged_offset: int, snapshot_id: SnapshotId) -> bool:
    """Whether damage at this offset may cost only records whose outcome a whole snapshot holds. A wrong epoch
    is noticed only in the batch after it."""
    return damaged_offset <= snapshot_id.end_offset


def holds_all(covered: SnapshotCover, lost_below_offset: int) -> bool:
    """Whether a snapshot holds the outcome of the whole log, which had no record at this offset or above."""
    return max(covered.known_end, lost_below_offset) <= covered.snapshot_id.end_offset


def lost_below(floor: int, whole_end_offset: int) -> int:
    """Return the offset that a log must reach again after damage was cut out of it: it was durable up to
    ``floor``, and had no records at ``whole_end_offset`` or above."""
    return max(floor, whole_end_offset)


def is_ahead(snapshot_id: SnapshotId, start_offset: int, end_offset: int, last_epoch: int) -> bool:
    """Whether a snapshot holds records that a log lacks, whose last epoch is ``last_epoch`` (Kafka's
    KafkaRaftLog.truncateToLatestSnapshot)."""
    if snapshot_id.end_offset == start_offset == end_offset:
        return False
    return (snapshot_id.epoch, snapshot_id.end_offset) > (last_epoch, end_offset)


def no_vote_up_to(known_epochs: Iterable[int]) -> int:
    """Return the last epoch in which a node may have voted that lost quorum-state and knows these epochs."""
    return max(known_epochs) + EPOCHS_WITHOUT_TRACE
