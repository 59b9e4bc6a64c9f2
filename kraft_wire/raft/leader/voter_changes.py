"""Begin and end the changes of the voters that clients ask for: one at a time (KIP-853)."""

from __future__ import annotations

from collections.abc import Hashable

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.door.request_checks import is_other_cluster, leader_only_error
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.leader import append
from kraft_wire.raft.leader.pending_change import ChangeResponse, PendingChange, change_response
from kraft_wire.raft.membership.change import ChangeRefused, committed_voters
from kraft_wire.raft.membership.voters import ReplicaKey, VoterSet
from kraft_wire.raft.quorum_state import QuorumState


def check_asked(quorum: QuorumState, cluster_id: str | None, voter_id: int, directory_id: Uuid) -> ReplicaKey:
    """Return the replica that a client names.

    Raises ChangeRefused if this node isn't the leader of that cluster, or the client names no replica.
    """
    if is_other_cluster(quorum, cluster_id):
        raise ChangeRefused(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"the request is for cluster {cluster_id!r}, this is cluster {quorum.config.cluster_id!r}",
        )
    error = leader_only_error(quorum, quorum.epoch)
    if error:
        raise ChangeRefused(error, "this node does not lead the quorum")
    check_not_stopping(quorum)
    if voter_id < 0 or not directory_id:
        raise ChangeRefused(
            ErrorCode.INVALID_REQUEST,
            f"a voter needs a node id and a directory id, the request has {voter_id} and {directory_id}",
        )
    return ReplicaKey(voter_id, directory_id)


def check_not_stopping(quorum: QuorumState) -> None:
    """Raise ChangeRefused if this node stops: it appends nothing more."""
    if quorum.is_shutting_down:
        raise ChangeRefused(ErrorCode.BROKER_NOT_AVAILABLE, "this node is shutting down")


def changeable_voters(quorum: QuorumState) -> VoterSet:
    """Return the voters, if they may change now. Raises ChangeRefused."""
    check_none_pending(quorum)
    return committed_voters(quorum.history, quorum.high_watermark)


def check_none_pending(quorum: QuorumState) -> None:
    """Raise ChangeRefused if another change is pending."""
    if quorum.pending_change is not None:
        raise ChangeRefused(
            ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is not complete yet: try again"
        )


def begin(quorum: QuorumState, token: Hashable, response: ChangeResponse) -> PendingChange:
    """Let a change be pending. It has the request timeout."""
    deadline_ms = quorum.now.monotonic_ms + quorum.config.request_timeout_ms
    quorum.pending_change = PendingChange(token, response, quorum.epoch, deadline_ms)
    return quorum.pending_change


def append_voters(quorum: QuorumState, change: PendingChange, voters: VoterSet) -> None:
    """Append the changed voters. They count from now on."""
    append.append_voters(quorum, voters)
    change.end_offset = quorum.log.end_offset


def settle(quorum: QuorumState) -> None:
    """End the pending change if it is committed, late, or another node has to decide on it now.

    A change that ends without a commit may be committed later, like any record that is appended.
    """
    change = quorum.pending_change
    if change is None:
        return
    if quorum.leadership is None or quorum.epoch != change.epoch:
        end(quorum, ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node does not lead the quorum any more")
    elif change.is_committed(quorum.high_watermark):
        end(quorum, ErrorCode.NONE)
    elif change.deadline_ms <= quorum.now.monotonic_ms:
        end(quorum, ErrorCode.REQUEST_TIMED_OUT, "the change was not committed in time")


def end(quorum: QuorumState, error: ErrorCode, text: str | None = None) -> None:
    """Answer the client of the pending change. Another change may begin."""
    if quorum.pending_change is not None:
        answer(quorum, quorum.pending_change, error, text)
        quorum.pending_change = None


def answer(quorum: QuorumState, change: PendingChange, error: ErrorCode, text: str | None = None) -> None:
    """Answer the client, unless that is done, or the client is gone."""
    if change.token is not None:
        quorum.emit(Reply(change.token, change_response(change.response, error, text)))
        change.token = None


def abandon(quorum: QuorumState, token: Hashable) -> None:
    """Note that a client has disconnected. The change that it asked for goes on."""
    change = quorum.pending_change
    if change is not None and change.token == token:
        change.token = None


def next_deadline_ms(quorum: QuorumState) -> int | None:
    """Return when the pending change is late; None if none is pending."""
    return None if quorum.pending_change is None else quorum.pending_change.deadline_ms
