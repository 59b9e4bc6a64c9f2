"""Votes that wait for news of a leader."""

from __future__ import annotations

from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.election.doubts import DOUBT_MS, MOST_WAITING, Doubts
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.membership.voters import ReplicaKey
from tests.raft.lone_node import DIRECTORY, OTHER_DIRECTORY

NOW_MS = 1000
TWO, THREE = ReplicaKey(2, DIRECTORY), ReplicaKey(3)


def vote(token: str) -> RpcRequest:
    return RpcRequest(token, VoteRequest(), 2, "CONTROLLER")


def test_one_vote_of_each_candidate_waits() -> None:
    doubts = Doubts()
    assert doubts.add(TWO, vote("a"), NOW_MS, DOUBT_MS, is_known=True)
    assert not doubts.add(TWO, vote("b"), NOW_MS, DOUBT_MS, is_known=True)
    assert doubts.add(THREE, vote("c"), NOW_MS + 1, DOUBT_MS, is_known=True)
    assert doubts.next_deadline_ms() == NOW_MS + DOUBT_MS
    assert [rpc.token for rpc in doubts.take(lambda doubt: True)] == ["a", "c"]
    assert (len(doubts), doubts.next_deadline_ms()) == (0, None)


def test_a_vote_that_needs_no_news_does_not_wait() -> None:
    doubts = Doubts()
    assert not doubts.add(TWO, vote("a"), NOW_MS, 0, is_known=True)
    assert len(doubts) == 0


def test_only_settled_votes_are_taken() -> None:
    doubts = Doubts()
    doubts.add(TWO, vote("a"), NOW_MS, DOUBT_MS, is_known=True)
    doubts.add(THREE, vote("b"), NOW_MS + 1, DOUBT_MS, is_known=True)
    due = doubts.take(lambda doubt: doubt.deadline_ms <= NOW_MS + DOUBT_MS)
    assert [rpc.token for rpc in due] == ["a"]
    assert len(doubts) == 1


def test_a_vote_of_a_candidate_that_disconnected_is_dropped() -> None:
    doubts = Doubts()
    doubts.add(TWO, vote("a"), NOW_MS, DOUBT_MS, is_known=True)
    doubts.abandon("b")
    assert len(doubts) == 1
    doubts.abandon("a")
    assert len(doubts) == 0


def test_another_replica_under_the_same_id_is_another_candidate() -> None:
    doubts = Doubts()
    assert doubts.add(TWO, vote("a"), NOW_MS, DOUBT_MS, is_known=True)
    assert doubts.add(ReplicaKey(TWO.id, OTHER_DIRECTORY), vote("b"), NOW_MS, DOUBT_MS, is_known=False)


def test_a_static_voter_has_one_place_whatever_directory_ids_are_used_in_its_name() -> None:
    doubts = Doubts()
    added = [
        doubts.add(ReplicaKey(2, Uuid(bytes([n] * 16))), vote(str(n)), NOW_MS, DOUBT_MS, is_known=True)
        for n in range(1, 50)
    ]
    assert sum(added) == len(doubts) == 1


def test_few_votes_of_strangers_wait_and_there_is_always_room_for_known_voters() -> None:
    doubts = Doubts()
    added = [
        doubts.add(ReplicaKey(id), vote(str(id)), NOW_MS, DOUBT_MS, is_known=False)
        for id in range(10, 10 + 2 * MOST_WAITING)
    ]
    assert added == [True] * MOST_WAITING + [False] * MOST_WAITING
    assert doubts.add(TWO, vote("a"), NOW_MS, DOUBT_MS, is_known=True)
    doubts.take(lambda doubt: True)
    assert doubts.add(ReplicaKey(10), vote("b"), NOW_MS, DOUBT_MS, is_known=False)
