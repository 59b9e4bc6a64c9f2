"""What a node that starts may believe of its files: the decisions, without the files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kraft_wire.log.snapshot import SnapshotId

EPOCHS_WITHOUT_TRACE: Final = 1000
"""A node whose quorum-state is lost: in how many epochs above those that are known it may have voted."""


class Floor(NamedTuple):
    """Everything below ``offset`` was on stable storage, when quorum-state said ``quorum_epoch``.

    What the log has below ``committed_offset`` was committed then. That may be more than was flushed here: a
    majority without this node had it.
    """

    offset: int
    quorum_epoch: int
    committed_offset: int = 0


NOTHING_KNOWN = Floor(0, 0)


class Covered(NamedTuple):
    """What the snapshots say of a log: the newest whole one, and the highest end of all, whole or not, below
    which everything was committed once."""

    snapshot_id: SnapshotId
    known_end: int


class Rest(NamedTuple):
    """What is whole of a damaged log, to its end: with a snapshot all that there was, but for history.

    It begins with ``offset``, at ``position`` of the segment that begins at ``base_offset``; that is None
    where the snapshot holds everything.
    """

    offset: int
    base_offset: int | None
    position: int = 0


def believed(found: Floor | None, quorum_epoch: int | None) -> Floor:
    """What counts of what was found: nothing unless quorum-state still says the same, as somebody who doesn't
    know of the floor may have cut the log in another epoch. ``quorum_epoch`` is None where quorum-state is
    missing."""
    return found if found is not None and found.quorum_epoch == quorum_epoch else NOTHING_KNOWN


def committed_end(floor: Floor, log_end_offset: int) -> int:
    """Up to where a log that was found to end at ``log_end_offset`` is committed: no further than it had been
    flushed, as behind that nobody knows what the disk has after a power cut."""
    return min(floor.committed_offset, floor.offset, log_end_offset)


def is_torn_tail(
    offset: int, floor: int, *, has_hole: bool, is_cut_off: bool, whole_batch_behind: bool
) -> bool:
    """Whether a crash may have left what can't be read from ``offset`` on; everything else is damage.

    Nothing below the floor is missing, and part of the batch that begins there never got to the disk: a
    block of it, while others did, or its end. Whole batches may lie behind a hole in the same segment, and
    nowhere else.
    """
    return offset >= floor and (has_hole or is_cut_off) and not whole_batch_behind


def is_history(damaged_offset: int, snapshot_id: SnapshotId) -> bool:
    """Whether damage that was found where this offset should be may cost nothing but what led to a whole
    snapshot's state. A wrong epoch shows in the batch behind it."""
    return damaged_offset <= snapshot_id.end_offset


def holds_all(covered: Covered, lost_below_offset: int) -> bool:
    """Whether a snapshot makes up for the whole of a log that held nothing from this offset on."""
    return max(covered.known_end, lost_below_offset) <= covered.snapshot_id.end_offset


def lost_below(floor: int, whole_end_offset: int) -> int:
    """How much a log has to hold again from which damage is cut: what was durable, and what was there, which
    ended at ``whole_end_offset`` at the most."""
    return max(floor, whole_end_offset)


def is_ahead(snapshot_id: SnapshotId, start_offset: int, end_offset: int, last_epoch: int) -> bool:
    """Whether a snapshot holds what a log doesn't, which ends with ``last_epoch``
    (Kafka's KafkaRaftLog.truncateToLatestSnapshot)."""
    if snapshot_id.end_offset == start_offset == end_offset:
        return False
    return (snapshot_id.epoch, snapshot_id.end_offset) > (last_epoch, end_offset)


def no_vote_up_to(known_epochs: Iterable[int]) -> int:
    """The last epoch in which a node may have voted that has lost quorum-state, and knows of these epochs."""
    return max(known_epochs) + EPOCHS_WITHOUT_TRACE
