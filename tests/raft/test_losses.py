"""Several cores: nodes that lost records or quorum-state."""

from __future__ import annotations

from kraft_wire.log.files import ElectionState
from kraft_wire.raft import effects as raft_effects
from kraft_wire.raft.events import Flushed
from tests.raft.core_quorum import CoreQuorum, QuorumNode, values


def test_a_node_that_lost_records_neither_votes_nor_starts_elections_until_it_has_them_again() -> None:
    quorum = CoreQuorum(3).start()
    leader = quorum.elect()
    for number in range(10):
        leader.propose(b"%d" % number)
    quorum.run_until(quorum.agree)
    damaged, other = quorum.followers()
    damaged.crash()
    other.crash()
    leader.crash()
    damaged.lose_from(damaged.end_offset // 2)
    damaged.start()
    other.lose_from(0)
    other.lost_below_offset = None  # a node that never had it
    other.start()
    quorum.run_for(30_000)
    assert not quorum.leaders, "it gave no vote to a candidate that lacks committed records"
    leader.start()
    quorum.run_until(quorum.agree)
    assert values(damaged) == [b"%d" % number for number in range(10)]


def test_a_loss_stays_made_good_when_a_leader_truncates_the_log_again() -> None:
    quorum = CoreQuorum(3).start()
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    damaged, other = quorum.followers()
    quorum.isolate(other.id)
    for number in range(10):
        leader.propose(b"%d" % number)
    quorum.run_until(lambda: leader.high_watermark == damaged.high_watermark == leader.end_offset)
    damaged.crash()
    damaged.lose_from(damaged.end_offset // 2)
    damaged.start()
    quorum.run_until(lambda: damaged.lost_below_offset is None)
    effects = damaged.step(Flushed(damaged.end_offset))
    assert raft_effects.LossMadeGood() not in effects
    damaged.running._quorum.log.truncate_to(3)
    assert damaged.running._quorum.is_log_complete


def test_a_lost_tail_that_no_leader_has_is_not_waited_for() -> None:
    """All committed records are back with the first record of a leader that didn't need this node's vote."""
    quorum = CoreQuorum(3).start()
    old = quorum.elect()
    quorum.run_until(quorum.agree)
    quorum.isolate(old.id)
    for number in range(40):
        old.propose(b"uncommitted %d" % number)
    quorum.run_for(100)
    old.crash()
    old.lose_from(old.end_offset - 20)
    quorum.run_until(lambda: bool(quorum.leaders))
    quorum.leader.propose(b"committed")
    quorum.heal()
    old.start()
    quorum.run_until(quorum.agree)
    assert old.end_offset < 40, "the others never had the tail"
    assert old.lost_below_offset is None
    leader, other = [node for node in quorum.nodes.values() if node is not old]
    other.crash()
    leader.crash()
    leader.start()
    quorum.run_until(lambda: bool(quorum.leaders))


def test_the_same_epoch_does_not_make_a_loss_good() -> None:
    """The lost records may have been committed in this epoch, after those that are back so far."""
    quorum = CoreQuorum(3).start()
    leader = quorum.elect()
    for number in range(10):
        leader.propose(b"%d" % number)
    quorum.run_until(quorum.agree)
    damaged = quorum.followers()[0]
    damaged.crash()
    damaged.lose_from(2)
    damaged.lost_below_offset = leader.end_offset + 1
    damaged.start()
    quorum.run_until(quorum.agree)
    assert damaged.running.epoch == leader.running.epoch
    assert not damaged.running._quorum.is_log_complete
    leader.propose(b"the next one")
    quorum.run_until(quorum.agree)
    assert damaged.running._quorum.is_log_complete


def test_a_node_without_quorum_state_does_not_disturb_a_quorum_that_lives(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    leader.propose(b"a")
    quorum.run_until(quorum.agree)
    epoch = leader.running.epoch
    forgetful = quorum.followers()[0]
    forgetful.crash()
    forgetful.lose_quorum_state()
    forgetful.start()
    leader.propose(b"b")
    quorum.run_until(quorum.agree)
    quorum.run_for(30_000)
    assert (quorum.leader, leader.running.epoch) == (leader, epoch)


def test_a_node_without_quorum_state_leads_past_what_it_may_have_led(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    forgetful, other = quorum.followers()
    for node in (leader, forgetful, other):
        node.crash()
    forgetful.lose_quorum_state()
    other.lose_from(0)
    other.lost_below_offset = None  # a node that never had it: it can't be elected
    forgetful.start()
    other.start()
    quorum.run_until(lambda: bool(quorum.leaders))
    assert quorum.leader is forgetful
    assert forgetful.running.epoch == forgetful.no_vote_up_to_epoch + 1


def test_a_candidate_gets_the_vote_of_a_node_without_quorum_state_in_a_higher_epoch(
    quorum: CoreQuorum,
) -> None:
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    forgetful, other = quorum.followers()
    forgetful.crash()
    leader.propose(b"only two have it")
    quorum.run_until(lambda: other.flushed_offset == leader.end_offset > forgetful.end_offset)
    leader.crash()
    other.crash()
    forgetful.lose_quorum_state()
    forgetful.start()
    other.start()
    assert quorum.run_until(lambda: bool(quorum.leaders)) < 5_000
    assert quorum.leader is other
    assert other.running.epoch == forgetful.no_vote_up_to_epoch + 1
    quorum.run_until(quorum.agree)


def test_a_leader_that_lost_quorum_state_learns_that_it_led_and_leads_again(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    for follower in quorum.followers():
        quorum.cut((follower.id, leader.id), (leader.id, follower.id))
    leader.propose(b"only it has this")
    quorum.run_for(20)
    leader.crash()
    leader.lose_quorum_state()
    quorum.heal()
    leader.start()
    quorum.run_until(lambda: leader.running.is_leader)
    assert leader.running.epoch > leader.no_vote_up_to_epoch
    quorum.run_until(quorum.agree)


def test_a_vote_is_on_disk_before_it_is_given() -> None:
    quorum = CoreQuorum(3).start()
    quorum.elect()
    for node in quorum.nodes.values():
        for index, effect in enumerate(node.effects):
            if isinstance(effect, raft_effects.SendRequest) and effect.request.NAME == "VoteRequest":
                asked = effect.request.topics[0].partitions[0]  # type: ignore[attr-defined]
                if not asked.pre_vote:
                    assert _voted_before(node, index, asked.replica_epoch, node.id)


def _voted_before(node: QuorumNode, index: int, epoch: int, candidate: int) -> bool:
    persisted = [e.state for e in node.effects[:index] if isinstance(e, raft_effects.PersistElectionState)]
    return any(
        isinstance(state, ElectionState) and (state.leader_epoch, state.voted_id) == (epoch, candidate)
        for state in persisted
    )
