"""Several cores: elections, replication, failover, hand-over, truncation, snapshots."""

from __future__ import annotations

import random

import pytest
from core_quorum import CoreQuorum, QuorumNode

from kraft_wire.log.batch import record_values
from kraft_wire.log.files import ElectionState
from kraft_wire.raft import effects as fx
from kraft_wire.raft.errors import NotLeader
from kraft_wire.raft.events import Flushed, SnapshotVerified
from kraft_wire.raft.roles import Role

FETCH_TIMEOUT_MS = 2000
SEEDS = range(25)


@pytest.fixture(params=[0, 1], ids=["static", "dynamic"])
def quorum(request: pytest.FixtureRequest) -> CoreQuorum:
    return CoreQuorum(3, kraft_version=request.param).start()


def values(node: QuorumNode) -> list[bytes]:
    return [value for batch in node.batches if not batch.header.is_control for value in record_values(batch)]


# Elections.


@pytest.mark.parametrize("seed", SEEDS)
def test_a_quorum_that_starts_elects_one_leader_in_a_blink(seed: int) -> None:
    quorum = CoreQuorum(3, seed=seed).start()
    took_ms = quorum.run_until(lambda: bool(quorum.leaders))
    assert took_ms < 200, "nobody waited for an election timeout"
    quorum.run_for(10_000)
    assert len(quorum.leaders) == 1
    assert quorum.agree()


def test_a_leader_that_nobody_can_hear_is_not_elected() -> None:
    quorum = CoreQuorum(3)
    quorum.isolate(1)
    quorum.nodes[1].start()
    quorum.run_for(60_000)
    assert quorum.nodes[1].running.epoch == 0, "a pre-vote raises no epoch"
    assert not quorum.leaders


def test_two_of_three_are_enough_and_one_is_not() -> None:
    quorum = CoreQuorum(3)
    quorum.nodes[1].start()
    quorum.run_for(5_000)
    assert not quorum.leaders
    quorum.nodes[2].start()
    quorum.elect().propose(b"a")
    quorum.run_until(quorum.agree)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_crashed_leader_is_replaced_without_waiting_for_a_timeout(seed: int) -> None:
    quorum = CoreQuorum(3, seed=seed).start()
    quorum.elect().propose(b"a")
    quorum.run_until(quorum.agree)
    crashed = quorum.leader
    crashed.crash()
    assert quorum.run_until(lambda: bool(quorum.leaders)) < 300
    quorum.elect().propose(b"b")
    crashed.start()
    quorum.run_until(quorum.agree)
    assert values(crashed) == [b"a", b"b"]


def test_a_paused_leader_is_replaced_after_the_fetch_timeout(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    quorum.isolate(leader.id)
    quorum.run_for(FETCH_TIMEOUT_MS // 2)
    assert quorum.leaders == [leader]
    quorum.run_until(lambda: bool(quorum.others_than(leader)))


@pytest.mark.parametrize("seed", SEEDS)
def test_followers_that_time_out_one_after_another_still_elect_somebody(seed: int) -> None:
    """Three of four are needed; each that stood in vain must not refuse the next."""
    quorum = CoreQuorum(4, seed=seed).start()
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    late = quorum.followers()[0]
    quorum.cut((leader.id, late.id), (late.id, leader.id))
    quorum.run_for(seed * 60)
    quorum.isolate(leader.id)
    assert quorum.run_until(lambda: bool(quorum.others_than(leader))) < 8_000


@pytest.mark.parametrize("seed", SEEDS)
def test_two_candidates_do_not_wait_for_a_leader_that_is_silent(seed: int) -> None:
    """Each has its own vote, and the third that both need never comes."""
    quorum = CoreQuorum(3, seed=seed, failover_spread_ms=1).start()
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    quorum.break_connections(leader.id)
    quorum.isolate(leader.id)
    took_ms = quorum.run_until(lambda: bool(quorum.others_than(leader)))
    assert took_ms < quorum.nodes[1].config.election_timeout_ms


def test_a_leader_without_a_majority_resigns(quorum: CoreQuorum) -> None:
    """KAFKA-15489."""
    leader = quorum.elect()
    quorum.isolate(leader.id)
    quorum.run_for(FETCH_TIMEOUT_MS * 3 // 2 + 500)
    assert not leader.running.is_leader
    with pytest.raises(NotLeader):
        leader.propose()


def test_a_node_that_was_away_does_not_depose_the_leader(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    away = quorum.followers()[0]
    quorum.isolate(away.id)
    quorum.run_for(60_000)
    epoch = leader.running.epoch
    quorum.heal()
    quorum.run_for(10_000)
    assert quorum.leaders == [leader]
    assert leader.running.epoch == epoch
    assert quorum.agree()


def test_a_follower_that_loses_its_connection_to_a_live_leader_comes_back(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    epoch = leader.running.epoch
    unlucky = quorum.followers()[0]
    for _ in range(20):
        quorum.break_connections(leader.id, of=unlucky.id)
        quorum.run_for(37)
    leader.propose(b"a")
    quorum.run_until(quorum.agree)
    assert (quorum.leaders, leader.running.epoch) == ([leader], epoch)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_leader_that_stops_hands_over_at_once(seed: int) -> None:
    quorum = CoreQuorum(3, seed=seed).start()
    leader = quorum.elect()
    leader.propose(b"a")
    stopped_ms = quorum.now.monotonic_ms
    quorum.shut_down(leader)
    quorum.run_until(lambda: bool(quorum.leaders))
    assert quorum.now.monotonic_ms - stopped_ms < 100
    quorum.elect()
    quorum.run_until(quorum.agree)
    assert values(quorum.leader) == [b"a"], "what was appended before is committed"


def test_the_last_of_two_hands_over_with_its_vote() -> None:
    quorum = CoreQuorum(2).start()
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    quorum.shut_down(leader)
    assert len(quorum.leaders) == 1, "the one that stopped has voted for it"


def test_a_leader_that_stops_alone_does_not_wait_for_ever() -> None:
    quorum = CoreQuorum(3).start()
    leader = quorum.elect()
    for follower in quorum.followers():
        follower.crash()
    started_ms = quorum.now.monotonic_ms
    quorum.shut_down(leader)
    assert quorum.now.monotonic_ms - started_ms <= 2_000


def test_an_observer_finds_the_leader_and_never_stands() -> None:
    quorum = CoreQuorum(3, observers=1).start()
    observer = quorum.nodes[4]
    quorum.elect().propose(b"a")
    quorum.run_until(quorum.agree)
    quorum.leader.crash()
    quorum.elect().propose(b"b")
    quorum.run_until(quorum.agree)
    assert values(observer) == [b"a", b"b"]
    roles = {effect.role for effect in observer.effects if isinstance(effect, fx.RoleChanged)}
    assert roles <= {Role.UNATTACHED, Role.FOLLOWER}


def test_an_old_voter_that_knows_no_pre_votes_is_asked_for_a_vote(quorum: CoreQuorum) -> None:
    quorum.elect()
    quorum.run_until(quorum.agree)
    quorum.refuse_pre_votes = True
    quorum.leader.crash()
    quorum.elect()


# Replication.


def test_batches_are_replicated_byte_for_byte(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    for number in range(50):
        leader.propose(*[b"%d-%d" % (number, record) for record in range(number % 5 + 1)])
        quorum.run_for(number % 3)
    quorum.run_until(quorum.agree)
    logs = [[batch.data for batch in node.batches] for node in quorum.nodes.values()]
    assert logs[0] == logs[1] == logs[2]


def test_nothing_is_committed_while_no_follower_has_flushed_it(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    for follower in quorum.followers():
        follower.disk_is_stuck = True
    committed = leader.high_watermark
    leader.propose(b"a")
    quorum.run_for(1_000)
    assert all(follower.end_offset > committed for follower in quorum.followers()), "it was sent"
    assert leader.high_watermark == committed


def test_a_majority_commits_before_the_leaders_own_disk_does(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    leader.disk_is_stuck = True
    leader.propose(b"a")
    quorum.run_for(100)
    assert leader.high_watermark == leader.end_offset
    assert leader.flushed_offset < leader.end_offset


def test_what_a_deposed_leader_alone_has_is_cut_away(quorum: CoreQuorum) -> None:
    old = quorum.elect()
    quorum.run_until(quorum.agree)
    quorum.isolate(old.id)
    for number in range(5):
        old.propose(b"lost %d" % number)
    quorum.run_until(lambda: bool(quorum.others_than(old)))
    quorum.elect().propose(b"kept")
    quorum.heal()
    quorum.run_until(quorum.agree)
    assert values(old) == [b"kept"]
    assert any(isinstance(effect, fx.TruncateLog) for effect in old.effects)


def test_what_was_committed_before_a_restart_is_not_cut_away(quorum: CoreQuorum) -> None:
    old = quorum.elect()
    quorum.run_until(quorum.agree)
    quorum.isolate(old.id)
    old.propose(b"lost elsewhere")
    quorum.run_until(lambda: bool(quorum.others_than(old)))
    quorum.elect().propose(b"kept")
    old.crash()
    old.remembered_commit = old.end_offset
    old.start()
    quorum.heal()
    quorum.run_for(60_000)
    assert values(old) == [b"lost elsewhere"]
    refusals = [effect for effect in old.effects if isinstance(effect, fx.LeaderLacksCommitted)]
    assert refusals[-1].leader_id == quorum.leader.id
    assert refusals[-1].end_offset < refusals[-1].committed_offset == old.end_offset
    assert len(refusals) < 60, "an operator is told, and not all the time"
    assert all(values(node) == [b"kept"] for node in quorum.nodes.values() if node is not old)


def test_a_flush_that_began_before_a_truncation_counts_for_nothing(quorum: CoreQuorum) -> None:
    old = quorum.elect()
    quorum.run_until(quorum.agree)
    quorum.isolate(old.id)
    for number in range(5):
        old.propose(b"lost %d" % number)
    quorum.run_for(100)
    generation = old.running.log_generation
    quorum.run_until(lambda: bool(quorum.others_than(old)))
    old.disk_is_stuck = True
    quorum.heal()
    quorum.run_until(lambda: old.running.flushed_offset < old.running.log_end_offset)
    assert old.running.log_generation > generation
    flushed_offset = old.running.flushed_offset
    old.step_flushed(old.end_offset, generation)
    assert old.running.flushed_offset == flushed_offset


def test_records_that_cannot_be_the_leaders_are_not_appended(quorum: CoreQuorum) -> None:
    """KAFKA-18723."""
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    end_offset = leader.end_offset
    quorum.garble_records = True
    leader.propose(b"a")
    quorum.run_for(1_000)
    for follower in quorum.followers():
        assert follower.end_offset == end_offset
        assert any(isinstance(effect, fx.BadFetch) for effect in follower.effects)
    quorum.garble_records = False
    quorum.run_until(quorum.agree)


# Snapshots.


def test_a_node_that_falls_behind_the_log_begins_with_a_snapshot(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    behind = quorum.followers()[0]
    behind.crash()
    _trim(quorum, leader)
    behind.start()
    quorum.run_until(quorum.agree)
    assert behind.start_offset == leader.start_offset > 0
    assert behind.running.voters.ids == (1, 2, 3)
    assert behind.running.latest_snapshot == leader.running.latest_snapshot


def test_an_installed_snapshot_supersedes_the_older_ones(quorum: CoreQuorum) -> None:
    """With an older one in front of a gap in the log, a follower would be told to keep what it must cut."""
    leader = quorum.elect()
    behind = quorum.followers()[0]
    leader.propose(b"a")
    quorum.run_until(quorum.agree)
    older = behind.write_snapshot()
    behind.crash()
    _trim(quorum, leader)
    behind.start()
    quorum.run_until(quorum.agree)
    assert older not in behind.snapshots
    assert list(behind.snapshots) == [behind.running.latest_snapshot]


def test_a_snapshot_comes_in_pieces_and_is_asked_for_again_where_one_is_lost() -> None:
    quorum, behind = _installing()
    for _ in range(5):
        quorum.run_for(3)
        quorum.break_connections(quorum.leader.id)
    quorum.run_until(quorum.agree)
    positions = [e.position for e in behind.effects if isinstance(e, fx.AppendSnapshotBytes)]
    assert positions == sorted(set(positions)), "nothing twice, and from where it stopped"


def test_a_snapshot_that_is_half_there_when_its_leader_goes_is_begun_anew() -> None:
    quorum = CoreQuorum(3, fetch_snapshot_max_bytes=100).start()
    leader = quorum.elect()
    behind, other = quorum.followers()
    behind.crash()
    _trim(quorum, leader)
    _trim(quorum, other)
    behind.start()
    quorum.run_until(lambda: any(len(part) > 300 for part in behind.parts.values()))
    leader.crash()
    quorum.elect()
    quorum.run_until(quorum.agree)
    assert any(isinstance(effect, fx.AbandonSnapshot) for effect in behind.effects)


def _installing() -> tuple[CoreQuorum, QuorumNode]:
    """A quorum, and the node in it that has a part of a snapshot."""
    quorum = CoreQuorum(3, fetch_snapshot_max_bytes=100).start()
    leader = quorum.elect()
    behind = quorum.followers()[0]
    behind.crash()
    _trim(quorum, leader)
    behind.start()
    quorum.run_until(lambda: bool(behind.parts))
    return quorum, behind


def _trim(quorum: CoreQuorum, node: QuorumNode) -> None:
    """Two snapshots, and the log only from the second one's end on."""
    for number in range(5):
        quorum.leader.propose(b"%d" % number)
        quorum.run_for(50)
    node.write_snapshot()
    for number in range(5):
        quorum.leader.propose(b"%d" % number)
        quorum.run_for(50)
    node.write_snapshot()
    quorum.run_for(100)
    assert node.start_offset > 0


def test_a_verdict_on_a_snapshot_that_is_fetched_anew_by_now_counts_for_nothing() -> None:
    quorum, behind = _installing()
    (snapshot_id,) = behind.parts
    behind.step(SnapshotVerified(snapshot_id, 100, 0, ()))
    assert snapshot_id in behind.parts
    assert behind.start_offset == 0
    quorum.run_until(quorum.agree)


SLOW_VERIFY_MS = 5 * FETCH_TIMEOUT_MS


@pytest.fixture
def slow() -> tuple[CoreQuorum, QuorumNode]:
    """A quorum, and the node in it that begins to verify a snapshot, which takes long."""
    quorum = CoreQuorum(3).start()
    leader = quorum.elect()
    slow = quorum.followers()[0]
    slow.crash()
    _trim(quorum, leader)
    slow.verify_ms = SLOW_VERIFY_MS
    slow.start()
    quorum.run_until(lambda: any(isinstance(effect, fx.VerifySnapshot) for effect in slow.effects))
    return quorum, slow


def test_a_snapshot_that_is_verified_for_longer_than_the_fetch_timeout_is_installed(
    slow: tuple[CoreQuorum, QuorumNode],
) -> None:
    quorum, node = slow
    leader, asked = quorum.leader, len(node.effects)
    (other,) = (follower for follower in quorum.followers() if follower is not node)
    other.crash()  # so that the leader is one only as long as it hears of this node
    quorum.run_for(SLOW_VERIFY_MS + 10)
    assert sum(isinstance(effect, fx.VerifySnapshot) for effect in node.effects) == 1
    sent = [effect for effect in node.effects[asked:] if isinstance(effect, fx.SendRequest)]
    assert len(sent) < 30, "now and then is enough"
    assert quorum.leader is leader
    quorum.run_until(quorum.agree, within_ms=100)
    assert node.start_offset == leader.start_offset


def test_a_snapshot_that_its_leader_no_longer_has_when_it_is_verified_is_a_step_forward(
    slow: tuple[CoreQuorum, QuorumNode],
) -> None:
    quorum, node = slow
    quorum.run_for(FETCH_TIMEOUT_MS)
    _trim(quorum, quorum.leader)
    leader, node.verify_ms = quorum.leader, 2
    quorum.run_for(SLOW_VERIFY_MS)
    assert quorum.agree()
    assert quorum.leader is leader
    assert sum(isinstance(effect, fx.InstallSnapshot) for effect in node.effects) == 2


def test_a_leader_that_is_gone_while_its_snapshot_is_verified_is_left(
    slow: tuple[CoreQuorum, QuorumNode],
) -> None:
    quorum, node = slow
    old, node.verify_ms = quorum.leader, 2
    quorum.isolate(old.id)
    quorum.run_until(lambda: bool(quorum.others_than(old)), within_ms=4 * FETCH_TIMEOUT_MS)
    old.crash()
    quorum.run_until(quorum.agree)
    assert any(isinstance(effect, fx.AbandonSnapshot) for effect in node.effects)


# What isn't whole.


def test_a_node_that_lost_records_neither_votes_nor_stands_until_it_has_them_again() -> None:
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
    assert not quorum.leaders, "it has given its vote to nobody who lacks what was committed"
    leader.start()
    quorum.run_until(quorum.agree)
    assert values(damaged) == [b"%d" % number for number in range(10)]


def test_what_was_made_good_stays_so_when_a_leader_cuts_the_log_again() -> None:
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
    assert fx.LossMadeGood() not in effects
    damaged.running._quorum.log.truncate_to(3)
    assert damaged.running._quorum.is_whole


def test_a_lost_tail_that_no_leader_has_is_not_waited_for() -> None:
    """All that is committed is there again with the first record of a leader that had no need of it."""
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
    """What was lost may have been committed in this very epoch, behind what came back so far."""
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
    assert not damaged.running._quorum.is_whole
    leader.propose(b"the one behind")
    quorum.run_until(quorum.agree)
    assert damaged.running._quorum.is_whole


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


def test_whoever_needs_the_vote_of_a_node_without_quorum_state_gets_it_in_a_higher_epoch(
    quorum: CoreQuorum,
) -> None:
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    forgetful, other = quorum.followers()
    forgetful.crash()
    leader.propose(b"only two have it")
    quorum.run_until(lambda: other.end_offset == leader.end_offset > forgetful.end_offset)
    leader.crash()
    other.crash()
    forgetful.lose_quorum_state()
    forgetful.start()
    other.start()
    assert quorum.run_until(lambda: bool(quorum.leaders)) < 5_000
    assert quorum.leader is other
    assert other.running.epoch == forgetful.no_vote_up_to_epoch + 1
    quorum.run_until(quorum.agree)


def test_a_leader_that_lost_quorum_state_is_told_that_it_led_and_leads_again(quorum: CoreQuorum) -> None:
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
            if isinstance(effect, fx.SendRequest) and effect.request.NAME == "VoteRequest":
                asked = effect.request.topics[0].partitions[0]  # type: ignore[attr-defined]
                if not asked.pre_vote:
                    assert _voted_before(node, index, asked.replica_epoch, node.id)


def _voted_before(node: QuorumNode, index: int, epoch: int, candidate: int) -> bool:
    persisted = [e.state for e in node.effects[:index] if isinstance(e, fx.PersistElectionState)]
    return any(
        isinstance(state, ElectionState) and (state.leader_epoch, state.voted_id) == (epoch, candidate)
        for state in persisted
    )


# Anything at all.


@pytest.mark.parametrize("kraft_version", [0, 1])
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_what_is_committed_stays(seed: int, kraft_version: int) -> None:
    chance = random.Random(seed)
    quorum = CoreQuorum(3 if seed % 2 else 5, observers=1, seed=seed, kraft_version=kraft_version).start()
    proposed = 0
    for _ in range(120):
        quorum.run_for(chance.choice((1, 5, 20, 100, 700)))
        _disturb(quorum, chance)
        for leader in quorum.leaders:
            leader.propose(b"%d" % proposed)
            proposed += 1
    quorum.heal()
    for node in quorum.nodes.values():
        node.disk_is_stuck = False
        if not node.is_up:
            node.start()
    quorum.run_until(lambda: bool(quorum.leaders) and quorum.leader.high_watermark > 0)
    quorum.elect().propose(b"at last")
    quorum.run_until(quorum.agree)
    assert proposed


def _disturb(quorum: CoreQuorum, chance: random.Random) -> None:
    node = quorum.nodes[chance.choice(list(quorum.nodes))]
    match chance.randrange(8):
        case 0 if node.is_up:
            node.crash()
        case 1 | 2 if not node.is_up:
            node.start()
        case 3:
            quorum.isolate(node.id)
        case 4:
            quorum.heal()
        case 5:
            other = chance.choice([id for id in quorum.nodes if id != node.id])
            quorum.cut((node.id, other))
        case 6 if node.is_up and node.high_watermark > node.start_offset:
            node.write_snapshot()
        case 7 if not node.is_up and node.end_offset:
            node.lose_quorum_state(chance.choice((0, 1, 3, 1000)))
        case _:
            pass
