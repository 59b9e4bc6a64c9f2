"""Log events of replicas with a wrong identity."""

from __future__ import annotations

import pytest

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import (
    begin_quorum_epoch_request,
    fetch_request,
    vote_request,
)
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.protocol.messages.vote_request import VoteRequest
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import ReplicaKey, Voter, VoterSet, static_voters, voter_set
from kraft_wire.server.reports.replica_watch import (
    MAX_CLUSTER_ID_CHARS,
    TWIN_RETURNS,
    ReplicaWatch,
    disowned,
    enlisted,
)

OURS, THEIRS = "our-cluster", "their-cluster"
DIRECTORY, OTHER_DIRECTORY = Uuid(bytes([3] * 16)), Uuid(bytes([9] * 16))
VOTERS = voter_set([Voter(ReplicaKey(3, DIRECTORY))])
ADDRESS = "10.0.0.3:40000"


def fetch(replica_id: int = 3, directory_id: Uuid = DIRECTORY, cluster_id: str | None = OURS) -> FetchRequest:
    partition = fetch_request.FetchPartition(replica_directory_id=directory_id)
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch_request.ReplicaState(replica_id=replica_id),
        topics=[fetch_request.FetchTopic(partitions=[partition])],
    )


def vote(cluster_id: str) -> VoteRequest:
    topic = vote_request.TopicData(partitions=[vote_request.PartitionData(replica_id=3)])
    return VoteRequest(cluster_id=cluster_id, topics=[topic])


def begin(cluster_id: str) -> BeginQuorumEpochRequest:
    partition = begin_quorum_epoch_request.PartitionData(leader_id=3)
    topic = begin_quorum_epoch_request.TopicData(partitions=[partition])
    return BeginQuorumEpochRequest(cluster_id=cluster_id, topics=[topic])


@pytest.mark.parametrize(
    "request_",
    [
        vote(THEIRS),
        begin(THEIRS),
        fetch(cluster_id=THEIRS),
        FetchSnapshotRequest(cluster_id=THEIRS, replica_id=3),
    ],
    ids=lambda request: type(request).__name__,
)
def test_a_node_of_another_cluster_is_told_once_with_both_cluster_ids(request_: Message) -> None:
    watch = ReplicaWatch(OURS)
    event = watch.asked(request_, ADDRESS, VOTERS)
    assert event is not None
    assert event.is_warning
    assert event.fields == {"node_id": 3, "peer": ADDRESS, "its_cluster_id": THEIRS, "cluster_id": OURS}
    assert watch.asked(request_, "10.0.0.3:40001", VOTERS) is None
    assert watch.other_cluster_of(3) == THEIRS


def test_a_node_that_changes_its_cluster_is_told_again() -> None:
    watch = ReplicaWatch(OURS)
    assert watch.asked(vote(THEIRS), ADDRESS, VOTERS) is not None
    assert watch.asked(vote("a third"), ADDRESS, VOTERS) is not None
    assert watch.asked(vote(OURS), ADDRESS, VOTERS) is None
    assert watch.other_cluster_of(3) is None
    assert watch.asked(vote(THEIRS), ADDRESS, VOTERS) is not None


def test_a_voter_s_id_with_another_directory_is_told_once() -> None:
    watch = ReplicaWatch(OURS)
    assert watch.asked(fetch(), ADDRESS, VOTERS) is None
    event = watch.asked(fetch(directory_id=OTHER_DIRECTORY), ADDRESS, VOTERS)
    assert event is not None
    assert event.is_warning
    assert event.fields == {
        "node_id": 3,
        "peer": ADDRESS,
        "its_directory_id": str(OTHER_DIRECTORY),
        "voters_directory_id": str(DIRECTORY),
        "advice": "it is an observer and doesn't vote",
    }
    assert watch.asked(fetch(directory_id=OTHER_DIRECTORY), "10.0.0.3:40001", VOTERS) is None


@pytest.mark.parametrize(
    "request_",
    [
        fetch(),
        fetch(replica_id=100, directory_id=OTHER_DIRECTORY),
        fetch(replica_id=-1, directory_id=Uuid.ZERO, cluster_id=None),
        DescribeQuorumRequest(),
    ],
)
def test_voters_brokers_consumers_and_administrators_are_no_news(request_: Message) -> None:
    watch = ReplicaWatch(OURS)
    assert [watch.asked(request_, ADDRESS, VOTERS) for _ in range(3)] == [None, None, None]


def test_static_voters_have_any_directory() -> None:
    static = static_voters("CONTROLLER", {3: ("three.example", 9093)})
    assert ReplicaWatch(OURS).asked(fetch(directory_id=OTHER_DIRECTORY), ADDRESS, static) is None
    assert disowned(ReplicaKey(3, OTHER_DIRECTORY), static) is None


def test_two_processes_that_take_turns_as_one_replica_are_told_once() -> None:
    watch = ReplicaWatch(OURS)
    turns = [ADDRESS, "10.0.0.4:40000"] * (TWIN_RETURNS + 5)
    (event,) = [event for turn in turns if (event := watch.asked(fetch(), turn, VOTERS)) is not None]
    assert event.is_warning
    assert event.fields["directory_id"] == str(DIRECTORY)
    assert sorted(str(peer) for peer in event.fields["peers"]) == sorted(turns[:2])  # type: ignore[attr-defined]


def test_a_replica_that_reconnects_again_and_again_is_one() -> None:
    watch = ReplicaWatch(OURS)
    for port in range(40_000, 40_100):
        assert watch.asked(fetch(), f"10.0.0.3:{port}", VOTERS) is None


def test_a_node_whose_directory_is_not_the_voter_s_is_told_both() -> None:
    event = disowned(ReplicaKey(3, OTHER_DIRECTORY), VOTERS)
    assert event is not None
    assert event.is_warning
    assert event.fields == {
        "directory_id": str(OTHER_DIRECTORY),
        "voters_directory_id": str(DIRECTORY),
        "advice": "it is an observer: give it that voter's folder; if that is lost, and the node doesn't join"
        f" by itself, `kraft-wire quorum remove 3 --directory-id {DIRECTORY}`,"
        " then `kraft-wire quorum promote 3`",
    }
    assert disowned(ReplicaKey(3, DIRECTORY), VOTERS) is None
    assert disowned(ReplicaKey(4, OTHER_DIRECTORY), VOTERS) is None
    assert disowned(ReplicaKey(3, DIRECTORY), VoterSet()) is None


@pytest.mark.parametrize("request_", [vote(OURS), begin(OURS)], ids=lambda request: type(request).__name__)
def test_a_node_with_another_list_of_voters_is_told_once(request_: Message) -> None:
    watch = ReplicaWatch(OURS)
    shorter = static_voters("CONTROLLER", {1: ("one.example", 9093), 2: ("two.example", 9093)})
    event = watch.asked(request_, ADDRESS, shorter)
    assert event is not None
    assert event.is_warning
    assert event.fields == {
        "node_id": 3,
        "peer": ADDRESS,
        "voters": [1, 2],
        "advice": "it acts as a voter. If it was removed while it was away, it stops as soon as it"
        " fetches; if not, compare controller.quorum.voters, or the initial controllers of both folders",
    }
    assert watch.asked(request_, ADDRESS, shorter) is None
    assert watch.asked(request_, ADDRESS, VOTERS) is None
    assert ReplicaWatch(OURS).asked(request_, ADDRESS, VoterSet()) is None


@pytest.mark.parametrize("directory_id", [DIRECTORY, OTHER_DIRECTORY])
def test_an_observer_with_the_id_of_a_voter_says_so(directory_id: Uuid) -> None:
    event = enlisted(ReplicaKey(3, directory_id), VOTERS)
    assert event is not None
    assert event.is_warning
    assert event.event == "observer has the id of a voter"
    assert event.fields["voters_directory_id"] == str(DIRECTORY)
    assert "kraft-wire quorum remove 3" in str(event.fields["advice"])


def test_an_observer_with_an_id_of_its_own_says_nothing() -> None:
    assert enlisted(ReplicaKey(4, DIRECTORY), VOTERS) is None


def test_a_very_long_cluster_id_is_cut() -> None:
    watch = ReplicaWatch(OURS)
    event = watch.asked(fetch(cluster_id="x" * 30_000), ADDRESS, VOTERS)
    assert event is not None
    assert event.fields["its_cluster_id"] == "x" * MAX_CLUSTER_ID_CHARS
