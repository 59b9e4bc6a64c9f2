"""Order the folders that are left, as an election would: by the epoch of the last record, then by length.

A log that damage was cut out of comes after an equal one: its node's vote is missing, but what is left of the
log is as good as any other that ends there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from kraft_wire.raft.recovery.evidence import (
    EpochEvidence,
    FolderEvidence,
    PastRecovery,
    SnapshotEvidence,
)
from kraft_wire.raft.recovery.node_role import is_broker_only, is_controller
from kraft_wire.raft.recovery.plan import RecoveryError, last_digest


def ranked(found: Sequence[FolderEvidence]) -> list[FolderEvidence]:
    """Return the folders, those first that can be used, and among them the newest log first."""
    return sorted(
        found,
        key=lambda folder: (
            bool(problem_of(folder, found)),
            -folder.last_epoch,
            -folder.log_end_offset,
            folder.is_cut,
            folder.node_id,
        ),
    )


def problem_of(folder: FolderEvidence, found: Sequence[FolderEvidence]) -> str:
    """Return why a quorum can't go on with this folder; empty if it can."""
    if is_broker_only(folder.node_id, found):
        return "it is a broker's"
    if folder.is_unreadable:
        return f"{folder.problems[0]}; use a newer kraft-wire, and collect again"
    if folder.problems:
        return f"{folder.problems[0]}; run `kraft-wire fsck {folder.folder} --repair` and collect again"
    if not is_controller(folder.node_id, found):
        return "no log names its node as a controller"
    if not folder.last_epoch:
        return "it has no records"
    source = _recovery_after(folder, found)
    if source is not None and source.recovery is not None:
        past = source.recovery
        return (
            f"its log has nothing since the recovery that the folder of node {source.node_id} remembers: "
            f"plan {past.plan_hash[:12]}, written at offset {past.base_offset} in epoch {past.epoch}. If its "
            "node ran since, together with others on old folders, what they acknowledged isn't counted here"
        )
    return ""


def is_left_behind(folder: FolderEvidence, found: Sequence[FolderEvidence]) -> bool:
    """Whether a folder is of the quorum before a recovery: its log has nothing since. An empty one may be of
    any quorum."""
    return bool(folder.last_epoch) and _recovery_after(folder, found) is not None


def _recovery_after(folder: FolderEvidence, found: Sequence[FolderEvidence]) -> FolderEvidence | None:
    """Return the folder that remembers the latest recovery, if this folder's log ends in an epoch before.

    Only a recovery counts whose quorum has led since: until then it has committed nothing, and the quorum
    before may have come back. The plan left room for the epochs of that one. Nor does one count that was
    begun, and whose records aren't in the log.
    """
    later = [
        (other.recovery.epoch, other)
        for other in found
        if other.recovery is not None
        and folder.last_epoch < other.recovery.epoch < other.last_epoch
        and _was_written(other.recovery, other)
    ]
    return max(later, key=lambda each: each[0])[1] if later else None


def _was_written(recovery: PastRecovery, folder: FolderEvidence) -> bool:
    """Whether a folder's log has the records of a recovery, or begins after them."""
    if folder.log_start_offset > recovery.base_offset:
        return True
    place = recovery.epoch, recovery.base_offset
    return any((part.epoch, part.start_offset) == place for part in folder.epochs)


def is_voter(folder: FolderEvidence, newest: FolderEvidence) -> bool:
    """Whether the folder is a voter's by the newest log: static voters are known by their id alone."""
    if not newest.voters:
        return folder.node_id in newest.static_voter_ids
    return any(
        (voter.id, voter.directory_id) == (folder.node_id, folder.directory_id) for voter in newest.voters
    )


def can_vote(folder: FolderEvidence, found: Sequence[FolderEvidence]) -> bool:
    """Whether a node votes when it is started on this folder as it is. Its log may be empty. A node that lost
    quorum-state votes, too: it moves the election into an epoch in which it may. A broker doesn't. Nor does a
    folder count that a recovery left behind: its node must never be started on it."""
    if folder.problems or folder.is_cut or is_broker_only(folder.node_id, found):
        return False
    return not is_left_behind(folder, found)


def lacks_committed(candidate: FolderEvidence, found: Sequence[FolderEvidence]) -> bool:
    """Whether some folder has committed records that this one's log can't have: it is of voters that a quorum
    went on without, whatever their number. One quorum's own voters never elect such a node."""
    return any(
        min(folder.committed_offset, folder.log_end_offset) > candidate.log_end_offset
        or _differs_below(folder.committed_offset, candidate, folder)
        for folder in found
    )


def _differs_below(committed_offset: int, one: FolderEvidence, other: FolderEvidence) -> bool:
    offset = first_difference(one, other)
    return offset is not None and offset < committed_offset


def votes_for(candidate: FolderEvidence, able: Sequence[FolderEvidence]) -> list[FolderEvidence]:
    """Return the folders whose nodes can elect this one, by its own voters; empty if they can't. ``able`` are
    those whose nodes vote at all.

    Each counts its own log's voters in an election. So a folder with the newest log may know of voters that
    nobody else knows of, and can't be elected itself.
    """
    if not is_voter(candidate, candidate):
        return []
    votes = [
        voter
        for voter in able
        if is_voter(voter, candidate)
        and (voter.last_epoch, voter.log_end_offset) <= (candidate.last_epoch, candidate.log_end_offset)
    ]
    return votes if candidate in votes and 2 * len(votes) > voter_count(candidate) else []


def voter_count(folder: FolderEvidence) -> int:
    """Return how many voters there are by this folder's log, or else by its configuration."""
    return len(folder.voters) or len(folder.static_voter_ids) or 1


def common_end(one: FolderEvidence, other: FolderEvidence) -> int:
    """Return an offset up to which two logs are equal, the highest that is known (Raft's log matching): one
    record of an epoch at an offset in both, and all before it is equal."""
    if one is other:
        return one.log_end_offset
    ends = [0]
    for part in one.epochs:
        for piece in other.epochs:
            end = min(part.end_offset, piece.end_offset)
            if part.epoch == piece.epoch and end > max(part.start_offset, piece.start_offset):
                ends.append(end)
    for folder, snapshots in ((one, other.snapshots), (other, one.snapshots)):
        ends.extend(snapshot.end_offset for snapshot in snapshots if _holds_end(folder, snapshot))
    return max(ends)


def first_difference(one: FolderEvidence, other: FolderEvidence) -> int | None:
    """Return the first offset at which two logs have records of different epochs; None if there is none."""
    starts = [
        max(part.start_offset, piece.start_offset)
        for part in one.epochs
        for piece in other.epochs
        if part.epoch != piece.epoch
        and max(part.start_offset, piece.start_offset) < min(part.end_offset, piece.end_offset)
    ]
    return min(starts, default=None)


def committed_difference(one: FolderEvidence, other: FolderEvidence) -> int | None:
    """Return the first offset at which two folders have different records that were committed; None if there
    is none. A leader's term never ends so: two quorums went on, each without the other."""
    offset = first_difference(one, other)
    committed = min(one.committed_offset, other.committed_offset)
    return offset if offset is not None and offset < committed else None


def _holds_end(folder: FolderEvidence, snapshot: SnapshotEvidence) -> bool:
    """Whether a log has the last record of a snapshot."""
    return snapshot.is_whole and any(
        part.epoch == snapshot.epoch and part.start_offset < snapshot.end_offset <= part.end_offset
        for part in folder.epochs
    )


def has_equal_log(one: FolderEvidence, other: FolderEvidence) -> bool:
    """Whether two logs end with the same record, and so are equal (Raft's log matching)."""

    def end(folder: FolderEvidence) -> tuple[int, int]:
        return folder.last_epoch, folder.log_end_offset

    if end(one) != end(other):
        return False
    parts = [folder.epochs[-1] if folder.epochs else None for folder in (one, other)]
    is_same_part = (
        parts[0] is not None and parts[1] is not None and parts[0].start_offset == parts[1].start_offset
    )
    return not is_same_part or last_digest(one) == last_digest(other)


def check_inputs(found: Sequence[FolderEvidence]) -> None:
    """Raise RecoveryError for folders that don't fit together, or may still change. Brokers may run."""
    if not found:
        raise RecoveryError("no folder was collected")
    clusters = sorted({folder.cluster_id for folder in found})
    if len(clusters) > 1:
        named = ", ".join(
            f"{cluster} ({', '.join(folder.folder for folder in found if folder.cluster_id == cluster)})"
            for cluster in clusters
        )
        raise RecoveryError(
            f"the folders are of several clusters: {named}. Leave out those of other clusters, and plan again"
        )
    for folder in found:
        if folder.controller_pid is not None and not is_broker_only(folder.node_id, found):
            raise RecoveryError(
                f"process {folder.controller_pid} worked on {folder.folder} when it was collected: stop it, "
                "and collect again"
            )
    for one, other in combinations(found, 2):
        if one.node_id == other.node_id:
            raise RecoveryError(
                f"node {one.node_id} has two folders: {_described(one)}, and {_described(other)}. Give one of"
                " them: that of the directory that votes; if both are of one directory, the one whose log"
                " ends in the later epoch, or else later"
            )
        _check_matching(one, other)


def _described(folder: FolderEvidence) -> str:
    return (
        f"{folder.folder} (directory {folder.directory_id}, last epoch {folder.last_epoch}, log end "
        f"{folder.log_end_offset})"
    )


def _check_matching(one: FolderEvidence, other: FolderEvidence) -> None:
    """Raise RecoveryError if two logs hold different records of one epoch at the same offsets."""

    def key(part: EpochEvidence) -> tuple[int, int, int]:
        return part.epoch, part.start_offset, part.end_offset

    digests = {key(part): part.digest for part in one.epochs}
    for part in other.epochs:
        if digests.get(key(part), part.digest) != part.digest:
            raise RecoveryError(
                f"{one.folder} and {other.folder} hold different records of epoch {part.epoch} at offsets "
                f"{part.start_offset} to {part.end_offset - 1}: one of them is not of this quorum, or damaged"
            )
