"""Backoffs from peers that don't answer."""

from __future__ import annotations

from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.raft.outgoing import MAX_BACKOFF_DOUBLINGS, MOST_PEERS, Outgoing

BACKOFF_MS = 20
VOTER = Peer(1, "voter.example", 9093)


def _backoff_ms(outgoing: Outgoing, peer: Peer, now_ms: int) -> int:
    """Let a peer fail, and return how long it isn't asked."""
    outgoing.failed(peer, now_ms, BACKOFF_MS)
    return next(ms for ms in range(10_000) if not outgoing.is_backing_off(peer, now_ms + ms))


def test_the_backoff_doubles_with_each_failure_in_a_row() -> None:
    outgoing = Outgoing()
    waits = [_backoff_ms(outgoing, VOTER, 1000 * number) for number in range(7)]
    assert waits == [20, 40, 80, 160, 320, 320, 320]
    outgoing.succeeded(VOTER)
    assert _backoff_ms(outgoing, VOTER, 10_000) == BACKOFF_MS


def test_nodes_that_clients_name_are_forgotten_and_a_voter_that_fails_is_not() -> None:
    outgoing = Outgoing()
    sizes = []
    for number in range(5 * MOST_PEERS):
        now_ms = 10 * number
        outgoing.failed(Peer(100 + number, "stranger.example", 9093), now_ms, BACKOFF_MS)
        if number % 100 == 0:
            outgoing.failed(VOTER, now_ms, BACKOFF_MS)
        outgoing.next_deadline_ms(now_ms)
        sizes.append(_size(outgoing))
    assert max(sizes) < MOST_PEERS + 10
    assert _backoff_ms(outgoing, VOTER, 1_000_000) == BACKOFF_MS << MAX_BACKOFF_DOUBLINGS


def _size(outgoing: Outgoing) -> int:
    """Return how many entries all its collections have."""
    collections = (getattr(outgoing, name) for name in Outgoing.__slots__)
    return sum(len(each) for each in collections if isinstance(each, dict))


def test_a_node_that_is_asked_in_vain_at_one_address_has_its_turn_at_the_other() -> None:
    """A leader is sought where somebody said that it is, again and again, and where the log has it."""
    outgoing = Outgoing()
    claimed, known = Peer(3, "claimed", 1), Peer(3, "known", 1)
    others = [Peer(id, f"other-{id}", 1) for id in (1, 2, 4)]
    asked = []
    for _ in range(8):
        for peer in (claimed, *outgoing.longest_unasked([*others, known])[:1]):
            outgoing.finish(outgoing.begin(peer, FetchRequest(), 1, 0))
            asked.append(peer)
    assert asked.count(known) == 2
