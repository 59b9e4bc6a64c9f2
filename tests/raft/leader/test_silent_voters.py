"""The voters that a leader doesn't hear from."""

from __future__ import annotations

from tests.raft.core_quorum import CoreQuorum, QuorumNode

FETCH_TIMEOUT_MS = 2000


def silent(node: QuorumNode) -> tuple[int, ...]:
    return node.running.silent_voter_ids(node.quorum.now.monotonic_ms)


def test_a_leader_knows_which_voters_are_silent() -> None:
    quorum = CoreQuorum(3).start()
    leader = quorum.elect()
    quorum.run_for(10_000)
    assert [silent(node) for node in quorum.nodes.values()] == [(), (), ()]
    dead, alive = (node for node in quorum.nodes.values() if node is not leader)
    dead.crash()
    quorum.run_for(FETCH_TIMEOUT_MS // 2)
    assert silent(leader) == ()
    quorum.run_for(FETCH_TIMEOUT_MS)
    assert silent(leader) == (dead.id,)
    assert silent(alive) == (), "a follower hears from the leader only"
    dead.start()
    quorum.run_until(lambda: silent(leader) == ())


def test_a_leader_knows_what_voters_lack() -> None:
    quorum = CoreQuorum(3).start()
    leader = quorum.elect()
    quorum.run_for(10_000)
    dead, alive = (node for node in quorum.nodes.values() if node is not leader)
    assert leader.running.lags == {dead.id: 0, alive.id: 0}
    assert alive.running.lags == {}
    dead.crash()
    leader.propose(b"one", b"two")
    quorum.run_for(FETCH_TIMEOUT_MS)
    assert leader.running.lags == {dead.id: 2, alive.id: 0}
