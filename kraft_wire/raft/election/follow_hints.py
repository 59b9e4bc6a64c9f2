"""Follow up hints about a new leader, which are all that BeginQuorumEpoch is. For a node that has just
started, a Vote of a higher epoch is one, too.

Anybody can say that somebody leads. So the node asks the one that is said to lead: at the address in its own
voter set, or at the one of its bootstrap servers that the hint names, as a voter may have moved. Only the
answer counts. Whoever is asked, and answers, may send records. So a leader that isn't a known voter is only
asked if the hint names a bootstrap server, or if the node has voted for it in this epoch, because its own
voters may be outdated (KIP-853). Static voters never are.
"""

from __future__ import annotations

from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.raft.election.hints import Hint
from kraft_wire.raft.fetch_request import fetch_request
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.raft.peers import claimed_peer, peer_at, voter_peer
from kraft_wire.raft.quorum_state import QuorumState


def follow_up_hints(quorum: QuorumState) -> None:
    """Ask the nodes that are said to lead."""
    hints, now_ms = quorum.hints, quorum.now.monotonic_ms
    if not hints:
        return
    hints.drop_settled(quorum.epoch, now_ms, has_leader=quorum.leader_id is not None)
    for leader_id, hint in hints.due(now_ms):
        peer = _peer(quorum, leader_id, hint)
        if peer is not None and quorum.outgoing.is_ready(peer, FetchRequest, now_ms):
            hints.asked(leader_id, now_ms)
            quorum.send(peer, fetch_request(quorum), is_search=True)


def _peer(quorum: QuorumState, leader_id: int, hint: Hint) -> Peer | None:
    """Return the address to ask; None if the hint isn't worth a question."""
    known = voter_peer(quorum, leader_id)
    named = peer_at(quorum, leader_id, hint.endpoints) if quorum.history.kraft_version >= 1 else None
    if named is not None and (named.host, named.port) in quorum.config.bootstrap_servers:
        return claimed_peer(named)
    if known is not None:
        return claimed_peer(known)
    voted = quorum.state.voted
    has_our_vote = voted is not None and voted.id == leader_id and hint.epoch == quorum.epoch
    return claimed_peer(named) if named is not None and has_our_vote else None
