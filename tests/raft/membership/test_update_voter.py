"""UpdateRaftVoter: the leader changes the entry of a voter (KafkaRaftClientReconfigTest)."""

from __future__ import annotations

import msgspec
import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.update_raft_voter_request import Listener
from kraft_wire.protocol.messages.update_raft_voter_response import UpdateRaftVoterResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.change import MOST_ENDPOINTS
from kraft_wire.raft.membership.voters import Endpoint, VersionRange
from kraft_wire.wire.address import LONGEST_NAME
from tests.raft.core_quorum import ONE_WAY_MS, PORT, CoreQuorum, QuorumNode
from tests.raft.lone_node import LISTENER
from tests.raft.membership.reconfiguration import (
    Asked,
    add_request,
    advertise_more,
    believing,
    endpoints,
    known_keys,
    update_request,
    with_observers,
)


def _ask(quorum: CoreQuorum, voter: QuorumNode, **fields: object) -> Asked:
    epoch = quorum.leader.running.epoch
    return Asked(quorum.leader, update_request(voter, epoch, **fields))  # type: ignore[arg-type]


def test_update_voter() -> None:
    quorum = with_observers(3, 0)
    voter = quorum.followers()[0]
    with believing():
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
    """Its first batch has its own entry as it is configured. The others' entries wait for their requests."""
    quorum = CoreQuorum(3)
    for node in quorum.nodes.values():
        advertise_more(node)
    quorum.start()
    quorum.elect()
    quorum.run_until(quorum.agree)
    leader = quorum.leader
    for node in quorum.nodes.values():
        assert (endpoints(quorum.leader, node.id) == node.config.endpoints) is (node is leader)
        assert node.running.voters == leader.running.voters


@pytest.mark.parametrize(
    "listeners",
    [
        [Listener(name=f"L{number}", host="h", port=1) for number in range(MOST_ENDPOINTS)],
        [Listener(name="OTHER", host="h" * (LONGEST_NAME + 1), port=1)],
        [Listener(name="O" * (LONGEST_NAME + 1), host="h", port=1)],
        [Listener(name=f"L{number}", host="h" * 32_767, port=1) for number in range(300)],
        [Listener(name="", host="h", port=1)],
        [Listener(name=" ", host="h", port=1)],
        [Listener(name="OTHER", host=" ", port=1)],
        [Listener(name="OTHER", host="h", port=0)],
        [Listener(name="OTHER", host="h\x1b[2J", port=1)],
        [Listener(name="OTHER\n", host="h", port=1)],
    ],
    ids=[
        "too many listeners",
        "a long host",
        "a long name",
        "more than a batch of the log holds",
        "no name",
        "a blank name",
        "a blank host",
        "no port",
        "a host that clears the screen",
        "a name with a line feed",
    ],
)
def test_endpoints_that_no_controller_has_are_refused(listeners: list[Listener]) -> None:
    quorum = with_observers(3, 0)
    request = update_request(quorum.followers()[0], quorum.leader.running.epoch)
    asked = Asked(quorum.leader, msgspec.structs.replace(request, listeners=[*request.listeners, *listeners]))
    assert asked.error is ErrorCode.INVALID_REQUEST


def test_nobody_tells_the_leader_its_own_entry() -> None:
    """It would keep a wrong one until its epoch ends, and its voters couldn't reach it then."""
    quorum = with_observers(3, 0)
    before = quorum.leader.running.voters
    asked = _ask(quorum, quorum.leader, port=1)
    assert asked.error is ErrorCode.INVALID_REQUEST
    assert quorum.leader.running.voters == before


def test_an_entry_that_is_as_it_was_is_not_written_again() -> None:
    """A voter that is ahead of the leader can't fetch the record that it has asked for, and asks again."""
    quorum = with_observers(3, 0)
    voter = quorum.followers()[0]
    with believing():
        assert _ask(quorum, voter, port=9999).error is ErrorCode.NONE
    quorum.run_until(quorum.agree)
    end_offset = quorum.leader.end_offset
    assert _ask(quorum, voter, port=9999).error is ErrorCode.NONE
    assert quorum.leader.end_offset == end_offset


@pytest.mark.parametrize("cluster_id", ["", "another"])
def test_update_voter_invalid_cluster_id(cluster_id: str) -> None:
    quorum = with_observers(3, 0)
    asked = _ask(quorum, quorum.followers()[0], cluster_id=cluster_id)
    assert asked.error is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_update_voter_old_epoch() -> None:
    assert _error_in_epoch(-1) is ErrorCode.FENCED_LEADER_EPOCH


def test_update_voter_new_epoch() -> None:
    assert _error_in_epoch(1) is ErrorCode.UNKNOWN_LEADER_EPOCH


def _error_in_epoch(difference: int) -> ErrorCode:
    quorum = with_observers(3, 0)
    request = update_request(quorum.followers()[0], quorum.leader.running.epoch + difference)
    return Asked(quorum.leader, request).error


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


def test_update_voter_with_kraft_version_0() -> None:
    """The leader remembers the entry: the log has none. First it asks the voter for its directory id."""
    quorum = with_observers(3, 0, kraft_version=0)
    leader, voter = quorum.leader, quorum.followers()[0]
    end_offset = leader.end_offset
    asked = _ask(quorum, voter)
    assert not asked.is_answered
    quorum.run_until(lambda: asked.is_answered, within_ms=2 * ONE_WAY_MS)
    assert asked.error is ErrorCode.NONE
    assert leader.end_offset == end_offset
    assert known_keys(leader)[voter.id] == voter.config.replica_key


def test_update_voter_with_none_voter() -> None:
    quorum = with_observers(3, 0)
    asked = _ask(quorum, quorum.followers()[0], voter_directory_id=Uuid(bytes(range(16))))
    assert asked.error is ErrorCode.VOTER_NOT_FOUND


def test_update_voter_with_none_voter_id() -> None:
    quorum = with_observers(3, 0)
    assert _ask(quorum, quorum.followers()[0], voter_id=9).error is ErrorCode.VOTER_NOT_FOUND


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
def test_invalid_update_voter(fields: dict[str, object]) -> None:
    quorum = with_observers(3, 0)
    asked = _ask(quorum, quorum.followers()[0], **fields)
    assert asked.error is ErrorCode.INVALID_REQUEST


def test_update_voter_with_pending_add_voter() -> None:
    quorum = with_observers(3, 1)
    quorum.cut((quorum.leader.id, 4))
    Asked(quorum.leader, add_request(quorum.nodes[4]))
    assert _ask(quorum, quorum.followers()[0]).error is ErrorCode.REQUEST_TIMED_OUT
