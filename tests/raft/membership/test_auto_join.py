"""controller.quorum.auto.join.enable: a controller makes itself a voter (KIP-1186)."""

from __future__ import annotations

from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kraft_wire.protocol.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
    TopicData,
)
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraft_wire.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraft_wire.raft.effects import JoinRefused, SendRequest
from kraft_wire.raft.follower.membership_requests import MANY_VAIN_JOINS
from tests.raft.core_quorum import PORT, CoreQuorum, QuorumNode
from tests.raft.membership.played_leader import PlayedLeader
from tests.raft.membership.reconfiguration import (
    all_know,
    put_new_disk,
    remove,
    voters_of,
    with_new_disk,
    with_observers,
)


def _api_keys(node: QuorumNode) -> list[int]:
    return [effect.request.API_KEY for effect in node.effects if isinstance(effect, SendRequest)]


def test_auto_remove_old_voter() -> None:
    """It is asked for again as long as the log still has the old directory."""
    quorum = CoreQuorum(2, auto_join=True)
    old = quorum.nodes[1]
    leader = PlayedLeader(put_new_disk(quorum, old.id, old.formatted))
    for times in (1, 2):
        for _ in range(2):
            assert len(leader.asked(RemoveRaftVoterRequest)) == times - 1
            leader.lead_for_a_fetch_timeout()
            _describe(leader, old, fetched_at_ms=5)
        removals = leader.asked(RemoveRaftVoterRequest)
        assert len(removals) == times
        assert (removals[-1].voter_id, removals[-1].voter_directory_id) == old.config.replica_key
        leader.answer(RemoveRaftVoterRequest, RemoveRaftVoterResponse())
    assert not leader.asked(AddRaftVoterRequest)


def _describe(leader: PlayedLeader, earlier: QuorumNode, fetched_at_ms: int, end_offset: int = 7) -> None:
    """Answer a DescribeQuorum: when the earlier directory has fetched last, and what."""
    replica = ReplicaState(
        replica_id=earlier.id,
        replica_directory_id=earlier.config.directory_id,
        log_end_offset=end_offset,
        last_fetch_timestamp=fetched_at_ms,
    )
    partition = PartitionData(leader_id=leader.id, leader_epoch=leader.epoch, current_voters=[replica])
    topic = TopicData(topic_name="__cluster_metadata", partitions=[partition])
    leader.answer(DescribeQuorumRequest, DescribeQuorumResponse(topics=[topic]))


def test_a_directory_that_fetches_is_not_removed() -> None:
    """Two controllers have one node.id. The one without the vote says so, and gives way."""
    quorum = CoreQuorum(2, auto_join=True)
    old = quorum.nodes[1]
    leader = PlayedLeader(put_new_disk(quorum, old.id, old.formatted))
    for times in (1, 2, 3):
        leader.lead_for_a_fetch_timeout()
        _describe(leader, old, fetched_at_ms=times)
        assert not leader.asked(RemoveRaftVoterRequest)
        refusals = [effect for effect in leader.node.effects if isinstance(effect, JoinRefused)]
        assert len(refusals) == times - 1, "it may have ended just before the first question"
    assert str(old.config.directory_id) in refusals[-1].text
    leader.lead_for_a_fetch_timeout()
    _describe(leader, old, fetched_at_ms=3)
    assert len(leader.asked(RemoveRaftVoterRequest)) == 1


def test_a_directory_whose_log_grows_fetches_whatever_the_leaders_clock_says() -> None:
    """The clock was set back: the time of the last Fetch stands still."""
    quorum = CoreQuorum(2, auto_join=True)
    old = quorum.nodes[1]
    leader = PlayedLeader(put_new_disk(quorum, old.id, old.formatted))
    for end_offset in (7, 8, 9):
        leader.lead_for_a_fetch_timeout()
        _describe(leader, old, fetched_at_ms=5, end_offset=end_offset)
    assert not leader.asked(RemoveRaftVoterRequest)
    assert [each.text for each in leader.node.effects if isinstance(each, JoinRefused)]


def test_auto_add_new_voter() -> None:
    """It is asked for again if the answer is lost. The answer comes before the commit."""
    quorum = CoreQuorum(2, 1, auto_join=True)
    quorum.nodes[3].formatted = quorum.nodes[1].formatted
    leader = PlayedLeader(quorum.nodes[3])
    for times in (1, 2):
        leader.lead_for_a_fetch_timeout()
        assert len(leader.asked(AddRaftVoterRequest)) == times
    addition = leader.asked(AddRaftVoterRequest)[-1]
    config = leader.node.config
    assert (addition.voter_id, addition.voter_directory_id) == config.replica_key
    assert [(each.name, each.host, each.port) for each in addition.listeners] == list(config.endpoints)
    assert not addition.ack_when_committed
    leader.answer(AddRaftVoterRequest, AddRaftVoterResponse())
    leader.change_voters(leader.node.running.voters.with_added(config.voter))
    assert leader.node.running.is_voter


def test_an_observer_joins() -> None:
    quorum = with_observers(3, 1, auto_join=True)
    quorum.run_until(lambda: all_know(quorum, 1, 2, 3, 4))


def test_observers_join_one_after_the_other() -> None:
    quorum = with_observers(1, 4, auto_join=True)
    quorum.run_until(lambda: all_know(quorum, 1, 2, 3, 4, 5), within_ms=60_000)


def test_observer_does_not_add_itself_when_auto_join_disabled() -> None:
    quorum = with_observers(3, 1)
    quorum.run_for(20_000)
    assert voters_of(quorum.leader) == (1, 2, 3)
    assert not {80, 81} & set(_api_keys(quorum.nodes[4]))


def test_observer_does_not_auto_join_with_kraft_version_0() -> None:
    quorum = with_observers(3, 1, kraft_version=0, auto_join=True)
    quorum.run_for(20_000)
    assert not {80, 81} & set(_api_keys(quorum.nodes[4]))


def test_observer_removes_old_voter_and_auto_joins() -> None:
    quorum = with_observers(3, 0, auto_join=True)
    fresh = with_new_disk(quorum, quorum.followers()[0])
    quorum.run_until(lambda: fresh.running.is_voter, within_ms=60_000)
    quorum.run_until(quorum.agree)
    quorum.run_for(10_000)
    assert [key for key in _api_keys(fresh) if key in (80, 81, 82)] == [81, 80]


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


def test_a_node_that_its_leader_does_not_reach_reports_that_after_a_while() -> None:
    """Each single answer only asks to try again."""
    quorum = with_observers(3, 1, auto_join=True)
    node = quorum.nodes[4]
    quorum.unroutable |= {(leader, node.id) for leader in (1, 2, 3)}
    node.crash()
    node.start()
    quorum.run_until(lambda: any(isinstance(effect, JoinRefused) for effect in node.effects))
    refusal = next(effect for effect in node.effects if isinstance(effect, JoinRefused))
    assert refusal.text.startswith(f"node 4 did not answer at node-4:{PORT}: ")
    asked = [key for key in _api_keys(node) if key == AddRaftVoterRequest.API_KEY]
    assert len(asked) == MANY_VAIN_JOINS
