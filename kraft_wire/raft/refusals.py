"""What a leader says that isn't believed: nothing changes by it, the operator is told, and the leader is
asked again later. It is no sign of life: a follower whose leader goes on like that stands for election.
"""

from __future__ import annotations

from kraft_wire.raft.effects import BadFetch, LeaderLacksCommitted
from kraft_wire.raft.outgoing import Call
from kraft_wire.raft.quorum import Quorum


def refuse(quorum: Quorum, call: Call, reason: str) -> None:
    """An answer that can't be."""
    quorum.emit(BadFetch(call.peer.id, quorum.log.end_offset, reason))
    quorum.leave_alone(call)


def keep_committed(quorum: Quorum, call: Call, end_offset: int) -> None:
    """An answer by which our log would go back to ``end_offset``, below what is committed. The next one will
    hardly be another."""
    quorum.emit(LeaderLacksCommitted(call.peer.id, quorum.epoch, end_offset, quorum.committed_offset))
    quorum.outgoing.failed(call.peer, quorum.now.monotonic_ms, quorum.config.fetch_timeout_ms)
