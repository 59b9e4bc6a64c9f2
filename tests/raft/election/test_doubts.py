"""Pre-votes that wait for news of the leader."""

from __future__ import annotations

from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.raft.election.doubts import DOUBT_MS, Doubts
from kraft_wire.raft.events import RpcRequest

NOW_MS = 1000


def pre_vote(token: str) -> RpcRequest:
    return RpcRequest(token, VoteRequest(), 2, "CONTROLLER")


def test_one_pre_vote_of_each_candidate_waits() -> None:
    doubts = Doubts()
    assert doubts.add(2, pre_vote("a"), NOW_MS)
    assert not doubts.add(2, pre_vote("b"), NOW_MS)
    assert doubts.add(3, pre_vote("c"), NOW_MS + 1)
    assert doubts.next_deadline_ms() == NOW_MS + DOUBT_MS
    assert [rpc.token for rpc in doubts.take(lambda doubt: True)] == ["a", "c"]
    assert (len(doubts), doubts.next_deadline_ms()) == (0, None)


def test_only_settled_pre_votes_are_taken() -> None:
    doubts = Doubts()
    doubts.add(2, pre_vote("a"), NOW_MS)
    doubts.add(3, pre_vote("b"), NOW_MS + 1)
    due = doubts.take(lambda doubt: doubt.deadline_ms <= NOW_MS + DOUBT_MS)
    assert [rpc.token for rpc in due] == ["a"]
    assert len(doubts) == 1


def test_a_pre_vote_of_a_candidate_that_disconnected_is_dropped() -> None:
    doubts = Doubts()
    doubts.add(2, pre_vote("a"), NOW_MS)
    doubts.abandon("b")
    assert len(doubts) == 1
    doubts.abandon("a")
    assert len(doubts) == 0
