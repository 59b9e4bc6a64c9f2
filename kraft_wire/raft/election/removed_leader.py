"""End the leadership of a leader that isn't a voter any more (KIP-853; Kafka's RemoveVoterHandler)."""

from __future__ import annotations

from kraft_wire.raft.election import elections
from kraft_wire.raft.quorum_state import QuorumState


def resign_if_removed(quorum: QuorumState) -> None:
    """Resign when the voters without this leader are committed.

    Until then it leads, because the others may not know of its removal yet.
    """
    leadership = quorum.leadership
    if leadership is not None and leadership.leads_from_outside and quorum.are_voters_committed:
        elections.resign(quorum)
