"""UpdateRaftVoter in a voter's name, from somebody else: it doesn't take the voter's place for long."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.update_raft_voter_request import Listener
from kraft_wire.raft.effects import Effect, MoveRefused, SendRequest
from kraft_wire.raft.events import RequestAbandoned
from kraft_wire.raft.leader.voter_moves import REMEMBERED_MS
from kraft_wire.raft.membership.voters import Endpoint, endpoints_of
from tests.raft.core_quorum import ONE_WAY_MS, PORT, CoreQuorum, QuorumNode
from tests.raft.election.claimed_leaders import announcement
from tests.raft.lone_node import LISTENER, OTHER_DIRECTORY
from tests.raft.membership.reconfiguration import (
    Asked,
    endpoints,
    known_keys,
    remove,
    update_request,
    with_observers,
)

FORGED, FORGED_AGAIN = "evil", "eviler"
SEEN_MS = 20 * ONE_WAY_MS
"""The record is committed, the voter asks the leader, and its record is committed."""


def settled(**settings: int) -> CoreQuorum:
    quorum = with_observers(3, 0, **settings)
    quorum.run_for(10_000)
    return quorum


def ask(quorum: CoreQuorum, voter: QuorumNode, host: str) -> Asked:
    """Ask the leader to move a voter to a host."""
    there = [Listener(name=LISTENER, host=host, port=PORT)]
    return Asked(quorum.leader, update_request(voter, quorum.leader.running.epoch, listeners=there))


def forge(quorum: CoreQuorum, voter: QuorumNode, host: str = FORGED) -> Asked:
    """Ask, and run until that is answered."""
    asked = ask(quorum, voter, host)
    quorum.run_until(lambda: asked.is_answered)
    return asked


def host(quorum: CoreQuorum, voter: QuorumNode) -> str:
    (endpoint,) = endpoints(quorum.leader, voter.id)
    return endpoint.host


def is_at_home(quorum: CoreQuorum, voter: QuorumNode) -> bool:
    return host(quorum, voter) == f"node-{voter.id}"


def announcements(effects: list[Effect]) -> list[SendRequest]:
    sent = [effect for effect in effects if isinstance(effect, SendRequest)]
    return [each for each in sent if isinstance(each.request, BeginQuorumEpochRequest)]


def test_a_voter_that_was_moved_moves_back_at_once() -> None:
    quorum = settled()
    voter = quorum.followers()[0]
    assert forge(quorum, voter).error is ErrorCode.NONE
    assert not is_at_home(quorum, voter)
    quorum.run_until(lambda: is_at_home(quorum, voter), within_ms=SEEN_MS)


def test_the_leader_asks_nobody_at_the_forged_address() -> None:
    """Nor does anybody else, whoever is said to lead."""
    quorum = settled()
    leader, (voter, other) = quorum.leader, quorum.followers()
    begun = {node: len(node.effects) for node in quorum.nodes.values()}
    forge(quorum, voter)
    for node in (leader, other):
        Asked(node, announcement(voter.id, leader.running.epoch + 1, host=FORGED))
    quorum.run_for(10_000)
    for node, first in begun.items():
        sent = [effect for effect in node.effects[first:] if isinstance(effect, SendRequest)]
        assert FORGED not in {each.peer.host for each in sent}
    assert quorum.leader is leader


def test_a_voter_that_answers_where_it_is_is_not_moved_again() -> None:
    quorum = settled()
    voter = quorum.followers()[0]
    forge(quorum, voter)
    quorum.run_until(lambda: is_at_home(quorum, voter))
    quorum.run_until(quorum.agree)
    end_offset, begun = quorum.leader.end_offset, len(quorum.leader.effects)
    for _ in range(20):
        assert forge(quorum, voter).error is ErrorCode.INVALID_REQUEST
    assert is_at_home(quorum, voter)
    assert quorum.leader.end_offset == end_offset
    refused = [effect for effect in quorum.leader.effects[begun:] if isinstance(effect, MoveRefused)]
    present = Endpoint(LISTENER, f"node-{voter.id}", PORT)
    wanted = endpoints_of([(LISTENER, FORGED, PORT)])
    assert refused == [MoveRefused(voter.config.replica_key, present, wanted)], "once a second"


def test_a_voter_that_was_moved_twice_moves_back() -> None:
    """Somebody at the forged address may answer in its name."""
    quorum = settled()
    voter = quorum.followers()[0]
    quorum.cut((quorum.leader.id, voter.id))  # the voter doesn't see the record yet
    forge(quorum, voter)
    quorum.run_for(SEEN_MS)
    second = ask(quorum, voter, FORGED_AGAIN)
    quorum.heal()
    quorum.run_until(lambda: is_at_home(quorum, voter))
    quorum.run_for(5000)
    assert second.is_answered
    assert is_at_home(quorum, voter)


def test_a_move_is_forgotten_after_ten_minutes() -> None:
    quorum = settled()
    voter = quorum.followers()[0]
    forge(quorum, voter)
    quorum.run_until(lambda: is_at_home(quorum, voter))
    quorum.run_for(REMEMBERED_MS)
    assert forge(quorum, voter).error is ErrorCode.NONE
    quorum.run_until(lambda: is_at_home(quorum, voter), within_ms=SEEN_MS)


def _restart_at(voter: QuorumNode, at: str) -> None:
    voter.crash()
    voter.config = msgspec.structs.replace(voter.config, endpoints=endpoints_of([(LISTENER, at, PORT)]))
    voter.start()


def test_a_voter_that_leaves_its_address_moves_as_often_as_it_likes() -> None:
    quorum = settled()
    voter = quorum.followers()[0]
    for number in range(5):
        _restart_at(voter, f"host-{number}")
        quorum.run_until(lambda at=number: host(quorum, voter) == f"host-{at}")  # type: ignore[misc]
        quorum.run_until(quorum.agree)


def test_a_voter_that_only_adds_an_endpoint_is_not_asked() -> None:
    quorum = settled()
    voter = quorum.followers()[0]
    forge(quorum, voter)
    quorum.run_until(lambda: is_at_home(quorum, voter))
    quorum.run_until(quorum.agree)
    more = [Listener(name=LISTENER, host=f"node-{voter.id}", port=PORT), Listener("INTERNAL", "inside", PORT)]
    asked = Asked(quorum.leader, update_request(voter, quorum.leader.running.epoch, listeners=more))
    assert asked.error is ErrorCode.NONE


def test_the_leader_gives_no_answer_to_one_that_is_gone() -> None:
    quorum = settled()
    voter = quorum.followers()[0]
    forge(quorum, voter)
    quorum.run_until(lambda: is_at_home(quorum, voter))
    quorum.run_until(quorum.agree)
    asked = ask(quorum, voter, FORGED)
    quorum.leader.step(RequestAbandoned(asked.token))
    quorum.run_for(5000)
    assert not asked.is_answered
    assert is_at_home(quorum, voter)


def test_a_leader_that_is_replaced_answers_what_waits() -> None:
    quorum = settled(kraft_version=0)
    leader, voter = quorum.leader, quorum.followers()[0]
    quorum.isolate(leader.id)
    quorum.run_for(leader.config.fetch_timeout_ms)
    asked = Asked(leader, update_request(voter, leader.running.epoch, voter_directory_id=OTHER_DIRECTORY))
    quorum.run_until(lambda: not leader.running.is_leader)
    assert asked.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_voter_that_is_removed_meanwhile_is_no_voter() -> None:
    quorum = settled()
    leader, voter = quorum.leader, quorum.followers()[0]
    forge(quorum, voter)
    quorum.run_until(lambda: is_at_home(quorum, voter))
    quorum.run_until(quorum.agree)
    quorum.cut((leader.id, voter.id))
    asked = ask(quorum, voter, FORGED)
    remove(quorum, voter.id)
    assert asked.error is ErrorCode.VOTER_NOT_FOUND


@pytest.mark.parametrize("answers", [False, True])
def test_a_static_voter_is_believed_once_it_has_answered_to_its_directory_id(answers: bool) -> None:
    """A wrong one would be in the log after an upgrade of kraft.version: then no such voter would exist."""
    quorum = settled(kraft_version=0)
    leader, voter = quorum.leader, quorum.followers()[0]
    assert known_keys(leader)[voter.id] == voter.config.replica_key
    if not answers:
        quorum.isolate(voter.id)
    forged = update_request(voter, leader.running.epoch, voter_directory_id=OTHER_DIRECTORY)
    asked = Asked(leader, forged)
    quorum.run_until(lambda: asked.is_answered)
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT
    assert known_keys(leader)[voter.id] == voter.config.replica_key


def test_a_static_voter_with_another_disk_is_believed() -> None:
    quorum = settled(kraft_version=0)
    leader, voter = quorum.leader, quorum.followers()[0]
    voter.crash()
    voter.config = msgspec.structs.replace(voter.config, directory_id=OTHER_DIRECTORY)
    voter.start()
    quorum.run_until(lambda: known_keys(leader)[voter.id].directory_id == OTHER_DIRECTORY)


def test_one_question_is_asked_at_a_time() -> None:
    quorum = settled(kraft_version=0)
    leader, voter = quorum.leader, quorum.followers()[0]
    begun = len(leader.effects)
    forged = update_request(voter, leader.running.epoch, voter_directory_id=OTHER_DIRECTORY)
    asked = [Asked(leader, forged) for _ in range(10)]
    assert [each.is_answered for each in asked] == [False] + [True] * 9
    assert {each.error for each in asked[1:]} == {ErrorCode.REQUEST_TIMED_OUT}
    assert len(announcements(leader.effects[begun:])) == 1
