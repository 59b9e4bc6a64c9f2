"""When quorum-state is written: before anybody hears of an epoch or a vote; a known epoch's leader later."""

from __future__ import annotations

import pytest

from kraft_wire.log.files import ElectionState
from kraft_wire.raft import effects as raft_effects
from kraft_wire.raft.quorum_state import LEADER_RECORD_WAIT_MS
from tests.raft.core_quorum import CoreQuorum, QuorumNode
from tests.raft.election.test_short_candidates import ask, end_of
from tests.raft.election.test_turns import first_and_second, ready
from tests.raft.follower.test_found_leader import announce, voted


def written(effects: list[raft_effects.Effect]) -> list[ElectionState]:
    return [effect.state for effect in effects if isinstance(effect, raft_effects.PersistElectionState)]


def recorded(node: QuorumNode) -> ElectionState:
    assert node.election is not None
    return node.election


def led_by(leader: QuorumNode, state: ElectionState) -> ElectionState:
    """Return the state with its leader."""
    return ElectionState(leader.id, state.leader_epoch, state.voted_id, state.voted_directory_id)


def test_a_vote_is_written_before_it_is_given() -> None:
    _, candidate, voter = voted()
    kinds = [type(effect) for effect in voter.effects]
    state = recorded(voter)
    assert (state.leader_id, state.leader_epoch, state.voted_id) == (-1, voter.running.epoch, candidate.id)
    at = len(kinds) - 1 - kinds[::-1].index(raft_effects.PersistElectionState)
    assert kinds.index(raft_effects.Reply, at) > at


def test_the_leader_of_an_epoch_that_is_recorded_is_written_later() -> None:
    quorum, candidate, voter = voted()
    vote = recorded(voter)
    assert written(announce(candidate, voter)) == []
    quorum.run_for(LEADER_RECORD_WAIT_MS - 1)
    assert recorded(voter) == vote
    quorum.run_for(1)
    assert recorded(voter) == led_by(candidate, vote)


def test_the_leader_is_written_once() -> None:
    quorum, candidate, voter = voted()
    announce(candidate, voter)
    begun = len(voter.effects)
    quorum.run_until(lambda: recorded(voter).has_leader)
    quorum.heal()
    quorum.run_for(1_000)
    same = [state for state in written(voter.effects[begun:]) if state == recorded(voter)]
    assert len(same) <= 1


def test_a_new_epoch_is_written_with_its_leader_before_anything_is_sent() -> None:
    _, candidate, voter = voted()
    effects = announce(candidate, voter, later_epochs=1)
    assert written(effects) == [ElectionState(candidate.id, voter.running.epoch)]
    kinds = [type(effect) for effect in effects]
    assert kinds.index(raft_effects.PersistElectionState) < kinds.index(raft_effects.SendRequest)


def test_a_later_vote_takes_the_place_of_the_leader() -> None:
    quorum, candidate, voter = voted()
    announce(candidate, voter)
    ask(voter, candidate.id, voter.running.epoch + 1, end_of(voter))
    state = recorded(voter)
    begun = len(voter.effects)
    quorum.run_for(LEADER_RECORD_WAIT_MS // 2)
    assert state.voted_id == candidate.id
    assert not any(each.has_leader for each in written(voter.effects[begun:]))


def test_a_leader_writes_itself_down_before_its_first_record() -> None:
    quorum = ready()
    first, _ = first_and_second(quorum)
    quorum.leader.crash()
    begun = len(first.effects)
    quorum.run_until(lambda: first.running.is_leader)
    effects = first.effects[begun:]
    append = next(i for i, effect in enumerate(effects) if isinstance(effect, raft_effects.AppendBatch))
    assert written(effects[:append])[-1].leader_id == first.id


@pytest.mark.parametrize("seed", range(25))
def test_voters_that_forget_their_leader_elect_no_second_one(seed: int) -> None:
    """All followers crash before they have written down who leads. The quorum checks that no epoch has two
    leaders, and that no committed record is lost."""
    quorum = CoreQuorum(5, seed=seed).start()
    leader = quorum.elect()
    leader.propose(b"a")
    quorum.run_until(quorum.agree)
    followers = [node for node in quorum.nodes.values() if node is not leader]
    assert any(not recorded(node).has_leader for node in followers)
    for node in followers:
        node.crash()
        node.start()
    quorum.run_until(quorum.agree)
    quorum.leader.propose(b"b")
    quorum.run_until(quorum.agree)
