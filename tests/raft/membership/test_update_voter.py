"""UpdateRaftVoter: voters keep their own entry right (KafkaRaftClientReconfigTest)."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraft_wire.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.membership.voters import Endpoint, VersionRange, endpoints_of
from tests.raft.core_quorum import PORT, CoreQuorum, QuorumNode
from tests.raft.lone_node import LISTENER
from tests.raft.membership.reconfiguration import Asked, add_request, update_request, with_observers


def _endpoints(node: QuorumNode, voter: int) -> tuple[Endpoint, ...]:
    return node.running.voters.endpoints_of(voter)


def _updates_of(node: QuorumNode) -> list[UpdateRaftVoterRequest]:
    sent = (effect.request for effect in node.effects if isinstance(effect, SendRequest))
    return [request for request in sent if isinstance(request, UpdateRaftVoterRequest)]


def _ask(quorum: CoreQuorum, voter: QuorumNode, **fields: object) -> Asked:
    epoch = quorum.leader.running.epoch
    return Asked(quorum.leader, update_request(voter, epoch, **fields))  # type: ignore[arg-type]


def test_update_voter() -> None:
    quorum = with_observers(3, 0)
    voter = quorum.followers()[0]
    asked = _ask(quorum, voter, port=9999, versions=VersionRange(0, 2))
    assert asked.error is ErrorCode.NONE
    changed = quorum.leader.running.voters.get(voter.id)
    assert changed is not None
    assert changed.endpoints == (Endpoint(LISTENER, f"node-{voter.id}", 9999),)
    assert changed.kraft_versions == VersionRange(0, 2)


def test_the_answer_names_the_leader() -> None:
    quorum = with_observers(3, 0)
    asked = _ask(quorum, quorum.followers()[0])
    (answer,) = asked.answers
    assert isinstance(answer, UpdateRaftVoterResponse)
    leader = answer.current_leader
    assert (leader.leader_id, leader.leader_epoch) == (quorum.leader.id, quorum.leader.running.epoch)
    assert (leader.host, leader.port) == (f"node-{quorum.leader.id}", PORT)


def test_leader_updates_voter() -> None:
    quorum = with_observers(3, 0)
    leader = quorum.leader
    _move(leader)
    leader.crash()
    quorum.run_until(lambda: bool(quorum.leaders))
    leader.start()
    other = quorum.leader
    quorum.run_until(lambda: other.running.voters.endpoints_of(leader.id) == leader.config.endpoints)


def _move(node: QuorumNode) -> None:
    """Let a node advertise one more endpoint after its next start."""
    own = endpoints_of([(LISTENER, f"node-{node.id}", PORT), ("INTERNAL", f"node-{node.id}", PORT + 1)])
    node.config = msgspec.structs.replace(node.config, endpoints=own)


def test_follower_sends_update_voter_when_different() -> None:
    quorum = with_observers(3, 0)
    follower = quorum.followers()[0]
    follower.crash()
    _move(follower)
    follower.start()
    quorum.run_until(lambda: _endpoints(quorum.leader, follower.id) == follower.config.endpoints)
    quorum.run_until(quorum.agree)
    quorum.run_for(10_000)
    assert len(_updates_of(follower)) == 1


def test_follower_sends_no_update_voter_when_its_entry_is_right() -> None:
    quorum = with_observers(3, 0)
    quorum.run_for(10_000)
    assert not [update for node in quorum.nodes.values() for update in _updates_of(node)]


def test_follower_sends_update_voter_once_to_each_leader_with_kraft_version_0() -> None:
    quorum = with_observers(3, 0, kraft_version=0)
    quorum.run_for(10_000)
    leader = quorum.leader
    for node in quorum.followers():
        assert len(_updates_of(node)) == 1
    leadership = leader.running._quorum.leadership
    assert leadership is not None
    for node in quorum.followers():
        learned = leadership.static_voters.get(node.id)
        assert learned is not None
        assert learned.key == node.config.replica_key
    assert leader.running.voters.get(leader.id) is not None


def test_update_voter_invalid_cluster_id() -> None:
    quorum = with_observers(3, 0)
    asked = _ask(quorum, quorum.followers()[0], cluster_id="another")
    assert asked.error is ErrorCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize(
    ("difference", "error"),
    [(-1, ErrorCode.FENCED_LEADER_EPOCH), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)],
    ids=["old", "new"],
)
def test_update_voter_of_another_epoch(difference: int, error: ErrorCode) -> None:
    quorum = with_observers(3, 0)
    request = update_request(quorum.followers()[0], quorum.leader.running.epoch + difference)
    assert Asked(quorum.leader, request).error is error


def test_update_voter_to_not_leader() -> None:
    quorum = with_observers(3, 0)
    one, other = quorum.followers()
    request = update_request(other, one.running.epoch)
    assert Asked(one, request).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_update_voter_without_fenced_previous_leaders() -> None:
    quorum = CoreQuorum(3).start()
    quorum.run_until(lambda: bool(quorum.leaders))
    asked = _ask(quorum, quorum.nodes[2])
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("fields", [{"voter_id": 9}, {"voter_directory_id": Uuid(bytes(range(16)))}])
def test_update_voter_with_none_voter(fields: dict[str, object]) -> None:
    quorum = with_observers(3, 0)
    assert _ask(quorum, quorum.followers()[0], **fields).error is ErrorCode.VOTER_NOT_FOUND


@pytest.mark.parametrize(
    "fields",
    [
        {"voter_directory_id": Uuid.ZERO},
        {"voter_id": -1},
        {"listeners": []},
        {"versions": VersionRange(-1, 1)},
        {"versions": VersionRange(2, 1)},
        {"versions": VersionRange(0, 0)},
        {"versions": VersionRange(2, 3)},
    ],
)
def test_update_voter_that_makes_no_sense(fields: dict[str, object]) -> None:
    quorum = with_observers(3, 0)
    asked = _ask(quorum, quorum.followers()[0], **fields)
    assert asked.error is ErrorCode.INVALID_REQUEST


def test_update_voter_with_pending_add_voter() -> None:
    quorum = with_observers(3, 1)
    quorum.cut((quorum.leader.id, 4))
    Asked(quorum.leader, add_request(quorum.nodes[4]))
    assert _ask(quorum, quorum.followers()[0]).error is ErrorCode.REQUEST_TIMED_OUT


def test_update_voter_response_causes_epoch_change() -> None:
    quorum = with_observers(3, 0)
    follower, leader = quorum.followers()[0], quorum.leader
    follower.crash()
    _move(follower)
    follower.start()
    quorum.run_until(lambda: bool(_updates_of(follower)))
    quorum.cut((follower.id, leader.id))
    leader.crash()
    quorum.run_until(lambda: bool(quorum.leaders))
    quorum.heal()
    quorum.run_until(lambda: _endpoints(quorum.leader, follower.id) == follower.config.endpoints)
