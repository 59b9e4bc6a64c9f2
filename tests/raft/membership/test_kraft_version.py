"""kraft.version goes from 0 to 1: the log gets the voters (KIP-853, LeaderState)."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.log.control import decode_control_batch
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.raft.errors import NotLeader
from kraft_wire.raft.events import ShutDown, UpgradeKraftVersion
from kraft_wire.raft.membership.change import ChangeRefused
from kraft_wire.raft.membership.voters import VersionRange
from tests.raft.core_quorum import CoreQuorum, QuorumNode
from tests.raft.membership.reconfiguration import (
    Asked,
    add,
    all_know,
    believing,
    update_request,
    with_observers,
)

UPGRADE = UpgradeKraftVersion(1)


def _static_quorum(voters: int = 3, observers: int = 0) -> CoreQuorum:
    return with_observers(voters, observers, kraft_version=0)


def _refusal(node: QuorumNode) -> str:
    end_offset = node.end_offset
    with pytest.raises(ChangeRefused) as refused:
        node.step(UPGRADE)
    assert node.end_offset == end_offset
    assert refused.value.error is ErrorCode.INVALID_UPDATE_VERSION
    assert node.running.kraft_version_problem(1) == refused.value.text
    return refused.value.text


def test_kraft_upgrade_version() -> None:
    """The log gets the voters as they have described themselves."""
    quorum = _static_quorum()
    quorum.run_for(5000)
    quorum.leader.step(UPGRADE)
    quorum.run_until(quorum.agree)
    for node in quorum.nodes.values():
        assert node.running.kraft_version == 1
        assert [voter.key for voter in node.running.voters.voters] == [
            each.config.replica_key for each in quorum.nodes.values()
        ]


def test_voters_change_after_the_upgrade() -> None:
    quorum = _static_quorum(3, 1)
    quorum.run_for(5000)
    quorum.leader.step(UPGRADE)
    quorum.run_until(quorum.agree)
    assert add(quorum, 4).error is ErrorCode.NONE
    quorum.run_until(lambda: all_know(quorum, 1, 2, 3, 4))


def test_the_upgrade_survives_restarts_and_elections() -> None:
    quorum = _static_quorum()
    quorum.run_for(5000)
    quorum.leader.step(UPGRADE)
    quorum.run_until(quorum.agree)
    for node in list(quorum.nodes.values()):
        node.crash()
        quorum.run_until(lambda: bool(quorum.leaders))
        node.start()
        quorum.run_until(quorum.agree)
        assert node.running.kraft_version == 1


def test_a_leader_that_stops_upgrades_nothing_any_more() -> None:
    quorum = _static_quorum()
    quorum.run_for(5000)
    leader = quorum.leader
    for node in quorum.followers():
        node.disk_is_stuck = True
    leader.propose()
    leader.step(ShutDown())
    assert leader.running.is_leader, "it waits for a commit"
    with pytest.raises(NotLeader):
        leader.step(UPGRADE)


def test_a_sole_voter_knows_itself() -> None:
    quorum = _static_quorum(1)
    quorum.leader.step(UPGRADE)
    quorum.run_until(quorum.agree)
    assert quorum.leader.running.kraft_version == 1


def test_update_voter_after_kraft_version_upgrade() -> None:
    quorum = _static_quorum()
    quorum.run_for(5000)
    quorum.leader.step(UPGRADE)
    quorum.run_until(quorum.agree)
    leader, moved = quorum.leader, quorum.followers()[0]
    with believing():
        asked = Asked(leader, update_request(moved, leader.running.epoch, port=9999))
    assert asked.error is ErrorCode.NONE
    (voters,) = decode_control_batch(leader.batches[-1])
    assert isinstance(voters, VotersRecord)
    assert [each.port for each in leader.running.voters.endpoints_of(moved.id)] == [9999]


def test_invalid_kraft_upgrade_version() -> None:
    """It needs the directory ids of all voters, which these tell the leader some time after its election."""
    quorum = CoreQuorum(3, kraft_version=0)
    silent = quorum.nodes[3]
    quorum.start()
    silent.crash()
    quorum.elect()
    other = 3 - quorum.leader.id
    assert f"the directory ids of the voters {other}, 3 yet" in _refusal(quorum.leader)
    quorum.run_for(5000)
    assert "the directory ids of the voters 3 yet" in _refusal(quorum.leader)
    silent.start()
    quorum.run_for(5000)
    quorum.leader.step(UPGRADE)
    quorum.run_until(quorum.agree)


def test_it_is_refused_while_a_voter_does_not_support_it() -> None:
    quorum = _static_quorum()
    quorum.run_for(5000)
    leader, old = quorum.leader, quorum.followers()[0]
    with believing():
        Asked(leader, update_request(old, leader.running.epoch, versions=VersionRange(0, 0)))
    assert f"the voters {old.id} do not support kraft.version 1" in _refusal(leader)


def test_the_present_level_changes_nothing() -> None:
    quorum = with_observers(3, 0)
    end_offset = quorum.leader.end_offset
    quorum.leader.step(UPGRADE)
    assert quorum.leader.end_offset == end_offset


def test_it_can_not_be_downgraded() -> None:
    quorum = with_observers(3, 0)
    with pytest.raises(ChangeRefused, match=r"kraft\.version is 1 and can't be downgraded"):
        quorum.leader.step(UpgradeKraftVersion(0))


def test_only_the_leader_upgrades() -> None:
    quorum = _static_quorum()
    follower = quorum.followers()[0]
    with pytest.raises(NotLeader):
        follower.step(UPGRADE)
    assert "does not lead" in (follower.running.kraft_version_problem(1) or "")


def test_an_upgrade_that_is_not_committed_is_undone() -> None:
    quorum = _static_quorum()
    quorum.run_for(5000)
    leader = quorum.leader
    quorum.isolate(leader.id)
    leader.step(UPGRADE)
    assert leader.running.kraft_version == 1
    quorum.run_until(lambda: bool(quorum.others_than(leader)))
    quorum.heal()
    quorum.run_until(lambda: leader not in quorum.leaders and quorum.agree())
    assert leader.running.kraft_version == 0
    assert leader.running.voters.ids == (1, 2, 3)


def test_the_port_that_a_voter_names_is_its_own() -> None:
    quorum = _static_quorum()
    quorum.run_for(5000)
    leader, moved = quorum.leader, quorum.followers()[0]
    with believing():
        Asked(leader, update_request(moved, leader.running.epoch, port=9999))
    leader.step(UPGRADE)
    voter = leader.running.voters.get(moved.id)
    assert voter is not None
    assert [endpoint.port for endpoint in voter.endpoints] == [9999]
    assert msgspec.structs.astuple(voter)[0] == moved.config.replica_key
