"""Tell a leader of an earlier epoch where this voter is now.

A leader asks a voter that is said to be ahead, at the address that the leader's log has (``door.claims``). A
voter that has moved isn't there, and it can't follow a leader that is behind. So it sends UpdateRaftVoter in
the leader's epoch. The leader then asks at the new address, and learns the higher epoch from the answer.
"""

from __future__ import annotations

from kraft_wire.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraft_wire.raft.membership.own_entry import is_stale, update_request
from kraft_wire.raft.quorum_state import QuorumState


def send_update_if_due(quorum: QuorumState) -> None:
    """Send the request to the leader that is behind, if there is one: once in a fetch timeout at most."""
    now_ms = quorum.now.monotonic_ms
    leader = quorum.leader_behind.due(now_ms)
    if leader is None or not (quorum.is_voter and is_stale(quorum)):
        return
    if quorum.outgoing.is_ready(leader.peer, UpdateRaftVoterRequest, now_ms):
        quorum.send(leader.peer, update_request(quorum, leader.epoch))
        quorum.leader_behind.note_sent(now_ms + quorum.config.fetch_timeout_ms)
