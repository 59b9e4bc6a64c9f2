"""Find the peers that a request can be sent to."""

from __future__ import annotations

from kraft_wire.protocol.message import Message
from kraft_wire.raft.membership import voters
from kraft_wire.raft.membership.voters import Endpoints, Peer
from kraft_wire.raft.outgoing import FIRST_CLAIMED_ID, FIRST_QUESTIONED_ID
from kraft_wire.raft.quorum_state import QuorumState

FIRST_BOOTSTRAP_ID = -2


def voter_peer(quorum: QuorumState, voter_id: int) -> Peer | None:
    """Return the address of a voter's controller listener; None if it is unknown."""
    return peer_at(quorum, voter_id, quorum.history.voters.endpoints_of(voter_id))


def claimed_peer(peer: Peer) -> Peer:
    """Return a node as one that is said to lead. Under another id, questions because of a hint don't disturb
    the requests to that node."""
    return Peer(FIRST_CLAIMED_ID - peer.id, peer.host, peer.port)


def is_claimed(peer: Peer) -> bool:
    """Whether a node is asked because of a hint."""
    return FIRST_QUESTIONED_ID < peer.id <= FIRST_CLAIMED_ID


def is_questioned(peer: Peer) -> bool:
    """Whether a voter is asked where it is."""
    return peer.id <= FIRST_QUESTIONED_ID


def is_stranger(quorum: QuorumState, peer: Peer) -> bool:
    """Whether a node is asked because of a hint, at an address that only the hint named."""
    if not is_claimed(peer):
        return False
    known = voter_peer(quorum, FIRST_CLAIMED_ID - peer.id)
    return known is None or (known.host, known.port) != (peer.host, peer.port)


def ready_voter(quorum: QuorumState, voter_id: int, request_type: type[Message]) -> Peer | None:
    """Return a voter if a request of this type can be sent to it now, else None."""
    peer = voter_peer(quorum, voter_id)
    if peer is None or not quorum.outgoing.is_ready(peer, request_type, quorum.now.monotonic_ms):
        return None
    return peer


def peer_at(quorum: QuorumState, node_id: int, endpoints: Endpoints) -> Peer | None:
    """Return a node's address on our controller listener; on any other if it has none of that name."""
    return voters.peer_at(node_id, endpoints, quorum.config.listener)


def other_voters(quorum: QuorumState) -> list[Peer]:
    """Return the other voters whose address is known."""
    ids = (voter_id for voter_id in quorum.history.voters.ids if voter_id != quorum.config.node_id)
    return [peer for peer in (voter_peer(quorum, voter_id) for voter_id in ids) if peer is not None]


def discovery_peers(quorum: QuorumState) -> list[Peer]:
    """Return the nodes that may know the leader: the other voters and controller.quorum.bootstrap.servers."""
    return other_voters(quorum) + bootstrap_peers(quorum)


def bootstrap_peers(quorum: QuorumState) -> list[Peer]:
    """Return controller.quorum.bootstrap.servers without this node and the voters."""
    known = {(peer.host, peer.port) for peer in other_voters(quorum)}
    return [peer for peer in other_bootstrap_servers(quorum) if (peer.host, peer.port) not in known]


def other_bootstrap_servers(quorum: QuorumState) -> list[Peer]:
    """Return controller.quorum.bootstrap.servers without this node."""
    own = {(endpoint.host, endpoint.port) for endpoint in quorum.config.endpoints}
    return [
        Peer(FIRST_BOOTSTRAP_ID - number, host, port)
        for number, (host, port) in enumerate(quorum.config.bootstrap_servers)
        if (host, port) not in own
    ]


def is_bootstrap_server(peer: Peer) -> bool:
    """Whether a node is known only as one of controller.quorum.bootstrap.servers."""
    return FIRST_CLAIMED_ID < peer.id <= FIRST_BOOTSTRAP_ID
