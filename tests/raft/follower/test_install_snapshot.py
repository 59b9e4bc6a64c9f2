"""Several cores: a follower fetches, verifies and installs a snapshot."""

from __future__ import annotations

import pytest

from kraft_wire.raft import effects as raft_effects
from kraft_wire.raft.events import SnapshotVerified
from tests.raft.core_quorum import CoreQuorum, QuorumNode

FETCH_TIMEOUT_MS = 2000


def test_a_node_whose_next_offset_was_trimmed_starts_with_a_snapshot(quorum: CoreQuorum) -> None:
    leader = quorum.elect()
    quorum.run_until(quorum.agree)
    lagging = quorum.followers()[0]
    lagging.crash()
    trim(quorum, leader)
    lagging.start()
    quorum.run_until(quorum.agree)
    assert lagging.start_offset == leader.start_offset > 0
    assert lagging.running.voters.ids == (1, 2, 3)
    assert lagging.running.latest_snapshot == leader.running.latest_snapshot


def test_an_installed_snapshot_supersedes_the_older_ones(quorum: CoreQuorum) -> None:
    """With an older snapshot before a gap in the log, a follower would be told to keep what it must
    truncate."""
    leader = quorum.elect()
    lagging = quorum.followers()[0]
    leader.propose(b"a")
    quorum.run_until(quorum.agree)
    older = lagging.write_snapshot()
    lagging.crash()
    trim(quorum, leader)
    lagging.start()
    quorum.run_until(quorum.agree)
    assert older not in lagging.snapshots
    assert list(lagging.snapshots) == [lagging.running.latest_snapshot]


def test_a_snapshot_comes_in_pieces_and_is_asked_for_again_where_one_is_lost() -> None:
    quorum, lagging = _installing()
    for _ in range(5):
        quorum.run_for(3)
        quorum.break_connections(quorum.leader.id, of=lagging.id)
    quorum.run_until(quorum.agree)
    positions = [e.position for e in lagging.effects if isinstance(e, raft_effects.AppendSnapshotBytes)]
    assert positions == sorted(set(positions)), "nothing twice, and from where it stopped"


def test_a_partial_snapshot_is_fetched_again_from_a_new_leader() -> None:
    quorum = CoreQuorum(3, fetch_snapshot_max_bytes=100).start()
    leader = quorum.elect()
    lagging, other = quorum.followers()
    lagging.crash()
    trim(quorum, leader)
    trim(quorum, other)
    lagging.start()
    quorum.run_until(lambda: any(len(part) > 300 for part in lagging.parts.values()))
    leader.crash()
    quorum.elect()
    quorum.run_until(quorum.agree)
    assert any(isinstance(effect, raft_effects.AbandonSnapshot) for effect in lagging.effects)


def _installing() -> tuple[CoreQuorum, QuorumNode]:
    """Return a quorum, and the node in it that has a part of a snapshot."""
    quorum = CoreQuorum(3, fetch_snapshot_max_bytes=100).start()
    leader = quorum.elect()
    lagging = quorum.followers()[0]
    lagging.crash()
    trim(quorum, leader)
    lagging.start()
    quorum.run_until(lambda: bool(lagging.parts))
    return quorum, lagging


def trim(quorum: CoreQuorum, node: QuorumNode) -> None:
    """Write two snapshots, and trim the log up to the second one's end."""
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


def test_a_verdict_on_a_snapshot_that_is_being_fetched_again_is_ignored() -> None:
    quorum, lagging = _installing()
    (snapshot_id,) = lagging.parts
    lagging.step(SnapshotVerified(snapshot_id, 100, 0, ()))
    assert snapshot_id in lagging.parts
    assert lagging.start_offset == 0
    quorum.run_until(quorum.agree)


SLOW_VERIFY_MS = 5 * FETCH_TIMEOUT_MS


@pytest.fixture
def slow() -> tuple[CoreQuorum, QuorumNode]:
    """Return a quorum, and the node in it that begins to verify a snapshot, which takes long."""
    quorum = CoreQuorum(3).start()
    leader = quorum.elect()
    slow = quorum.followers()[0]
    slow.crash()
    trim(quorum, leader)
    slow.verify_ms = SLOW_VERIFY_MS
    slow.start()
    quorum.run_until(lambda: any(isinstance(effect, raft_effects.VerifySnapshot) for effect in slow.effects))
    return quorum, slow


def test_a_snapshot_that_is_verified_for_longer_than_the_fetch_timeout_is_installed(
    slow: tuple[CoreQuorum, QuorumNode],
) -> None:
    quorum, node = slow
    leader, asked = quorum.leader, len(node.effects)
    (other,) = (follower for follower in quorum.followers() if follower is not node)
    other.crash()  # so that the leader stays leader only while it hears from this node
    quorum.run_for(SLOW_VERIFY_MS + 10)
    assert sum(isinstance(effect, raft_effects.VerifySnapshot) for effect in node.effects) == 1
    sent = [effect for effect in node.effects[asked:] if isinstance(effect, raft_effects.SendRequest)]
    assert len(sent) < 30, "now and then is enough"
    assert quorum.leader is leader
    quorum.run_until(quorum.agree, within_ms=100)
    assert node.start_offset == leader.start_offset


def test_a_verified_snapshot_that_the_leader_no_longer_has_is_installed(
    slow: tuple[CoreQuorum, QuorumNode],
) -> None:
    quorum, node = slow
    quorum.run_for(FETCH_TIMEOUT_MS)
    trim(quorum, quorum.leader)
    leader, node.verify_ms = quorum.leader, 2
    quorum.run_for(SLOW_VERIFY_MS)
    assert quorum.agree()
    assert quorum.leader is leader
    assert sum(isinstance(effect, raft_effects.InstallSnapshot) for effect in node.effects) == 2


def test_a_leader_that_dies_while_its_snapshot_is_verified_is_replaced(
    slow: tuple[CoreQuorum, QuorumNode],
) -> None:
    quorum, node = slow
    old, node.verify_ms = quorum.leader, 2
    quorum.isolate(old.id)
    quorum.run_until(lambda: bool(quorum.others_than(old)), within_ms=4 * FETCH_TIMEOUT_MS)
    old.crash()
    quorum.run_until(quorum.agree)
    assert any(isinstance(effect, raft_effects.AbandonSnapshot) for effect in node.effects)
