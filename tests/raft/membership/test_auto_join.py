"""controller.quorum.auto.join.enable: a controller makes itself a voter (KIP-1186)."""

from __future__ import annotations

from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.raft.effects import JoinRefused, SendRequest
from tests.raft.core_quorum import QuorumNode
from tests.raft.membership.reconfiguration import all_know, remove, voters_of, with_new_disk, with_observers


def _api_keys(node: QuorumNode) -> list[int]:
    return [effect.request.API_KEY for effect in node.effects if isinstance(effect, SendRequest)]


def test_an_observer_joins() -> None:
    quorum = with_observers(3, 1, auto_join=True)
    quorum.run_until(lambda: all_know(quorum, 1, 2, 3, 4))


def test_observers_join_one_after_the_other() -> None:
    quorum = with_observers(1, 4, auto_join=True)
    quorum.run_until(lambda: all_know(quorum, 1, 2, 3, 4, 5), within_ms=60_000)


def test_an_observer_does_not_join_by_default() -> None:
    quorum = with_observers(3, 1)
    quorum.run_for(20_000)
    assert voters_of(quorum.leader) == (1, 2, 3)
    assert not {80, 81} & set(_api_keys(quorum.nodes[4]))


def test_with_kraft_version_0_nobody_joins() -> None:
    quorum = with_observers(3, 1, kraft_version=0, auto_join=True)
    quorum.run_for(20_000)
    assert not {80, 81} & set(_api_keys(quorum.nodes[4]))


def test_a_voter_with_a_new_disk_removes_its_old_self_and_joins() -> None:
    quorum = with_observers(3, 0, auto_join=True)
    fresh = with_new_disk(quorum, quorum.followers()[0])
    quorum.run_until(lambda: fresh.running.is_voter, within_ms=60_000)
    quorum.run_until(quorum.agree)
    assert _api_keys(fresh).index(81) < _api_keys(fresh).index(80)


def test_a_voter_that_was_removed_joins_again() -> None:
    quorum = with_observers(3, 0, auto_join=True)
    gone = quorum.followers()[0]
    remove(quorum, gone.id)
    quorum.run_until(lambda: not gone.running.is_voter)
    quorum.run_until(lambda: all_know(quorum, 1, 2, 3))


def test_a_refusal_is_reported_and_tried_again() -> None:
    quorum = with_observers(3, 1, auto_join=True)
    node = quorum.nodes[4]
    fit, node.versions = node.versions, ApiVersionsResponse()
    quorum.run_until(lambda: any(isinstance(effect, JoinRefused) for effect in node.effects))
    node.versions = fit
    quorum.run_until(lambda: all_know(quorum, 1, 2, 3, 4))
