"""Reject impossible answers of a leader.

They change nothing and are reported to the operator. The leader is asked again later. A rejected answer
doesn't count as hearing from the leader, so a follower that gets only such answers starts an election.
"""

from __future__ import annotations

from kraft_wire.raft.effects import BadFetch, LeaderLacksCommitted
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.quorum_state import QuorumState


def reject_answer(quorum: QuorumState, call: Call, reason: str) -> None:
    """Reject an answer that is impossible."""
    quorum.emit(BadFetch(call.peer.id, quorum.log.end_offset, reason))
    quorum.back_off(call)


def reject_truncation(quorum: QuorumState, call: Call, end_offset: int) -> None:
    """Reject an answer that would truncate our log at ``end_offset``, below what is committed.

    The next answer will hardly differ, so the backoff is one fetch timeout.
    """
    quorum.emit(LeaderLacksCommitted(call.peer.id, quorum.epoch, end_offset, quorum.committed_offset))
    quorum.outgoing.failed(call.peer, quorum.now.monotonic_ms, quorum.config.fetch_timeout_ms)
