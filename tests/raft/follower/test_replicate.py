"""Several cores: replication, truncation, and random faults."""

from __future__ import annotations

import random

import pytest

from kraft_wire.raft import effects as raft_effects
from tests.raft.core_quorum import CoreQuorum, values

SEEDS = range(25)


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


def test_what_is_not_flushed_is_not_trimmed() -> None:
    """Others may commit what a leader has not flushed, and it may cover that with a snapshot. As a follower
    it names the last record that is flushed."""
    quorum = CoreQuorum(3, max_retention_bytes=0).start()
    old = quorum.elect()
    quorum.run_until(quorum.agree)
    old.disk_is_stuck = True
    old.propose(b"a", b"b")
    quorum.run_until(lambda: old.high_watermark == old.end_offset)
    old.write_snapshot()
    assert old.running.log_start_offset <= old.running.flushed_offset < old.end_offset
    quorum.isolate(old.id)
    quorum.run_until(lambda: bool(quorum.others_than(old)))
    quorum.heal()
    quorum.run_for(1_000)
    old.free_disk()
    quorum.run_until(quorum.agree)


def test_records_that_only_a_deposed_leader_has_are_truncated(quorum: CoreQuorum) -> None:
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
    assert any(isinstance(effect, raft_effects.TruncateLog) for effect in old.effects)


def test_records_committed_before_a_restart_are_not_truncated(quorum: CoreQuorum) -> None:
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
    refusals = [effect for effect in old.effects if isinstance(effect, raft_effects.LeaderLacksCommitted)]
    assert refusals[-1].leader_id == quorum.leader.id
    assert refusals[-1].end_offset < refusals[-1].committed_offset == old.end_offset
    assert len(refusals) < 60, "an operator gets reports, but not all the time"
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
        assert any(isinstance(effect, raft_effects.BadFetch) for effect in follower.effects)
    quorum.garble_records = False
    quorum.run_until(quorum.agree)


# Random faults.


@pytest.mark.parametrize("kraft_version", [0, 1])
@pytest.mark.parametrize("seed", SEEDS)
def test_committed_records_survive_random_faults(seed: int, kraft_version: int) -> None:
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
