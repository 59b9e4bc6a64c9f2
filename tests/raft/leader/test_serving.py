"""A node that only observes: it never votes, and readers of the log read from it."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import fetch_snapshot_request
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_response import FetchResponse, LeaderIdAndEpoch, NodeEndpoint
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse
from kraft_wire.raft.effects import Reply, ReplyRecords, ReplySnapshotBytes, SendRequest
from kraft_wire.raft.events import RpcRequest
from kraft_wire.raft.roles import Role
from tests.raft.core_quorum import PORT, CoreQuorum, QuorumNode
from tests.raft.lone_node import CLUSTER_ID, LISTENER, fetch, only
from tests.raft.membership.reconfiguration import NO_CLIENT, Asked, add_request
from tests.raft.quorum_ports import Caller

OBSERVER_ID: Final = 4
READER: Final = -1
Answer = Reply | ReplyRecords | ReplySnapshotBytes


def with_observer(kraft_version: int = 1) -> tuple[CoreQuorum, QuorumNode]:
    """Return a quorum of three with a leader and some committed records, and its observer, which has all."""
    quorum = CoreQuorum(3, observers=1, kraft_version=kraft_version)
    observer = quorum.nodes[OBSERVER_ID]
    observer.config = msgspec.structs.replace(observer.config, is_observer_only=True)
    quorum.start().elect().propose(b"one", b"two")
    quorum.run_until(lambda: quorum.agree() and observer.high_watermark == observer.end_offset)
    return quorum, observer


def answer_of(node: QuorumNode, request: Message, version: int) -> Answer:
    """Ask a node something that it answers at once."""
    before = len(node.effects)
    node.step(RpcRequest(Caller(node.id, NO_CLIENT, before), request, version, LISTENER))
    (answer,) = [effect for effect in node.effects[before:] if isinstance(effect, Answer)]
    return answer


def refusal(node: QuorumNode, request: FetchRequest) -> FetchResponse:
    answer = answer_of(node, request, 18)
    assert isinstance(answer, Reply)
    assert isinstance(answer.response, FetchResponse)
    return answer.response


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_readers_get_what_is_committed_in_the_epoch_of_its_last_record(kraft_version: int) -> None:
    _, observer = with_observer(kraft_version)
    epoch = observer.running.epoch
    answer = answer_of(observer, fetch(1, epoch, epoch=epoch, replica=READER), 18)
    assert isinstance(answer, ReplyRecords)
    assert (answer.offset, answer.end_offset) == (1, observer.high_watermark)
    partition = only(answer.response)
    assert partition.error_code == ErrorCode.NONE
    assert partition.high_watermark == observer.high_watermark
    assert partition.current_leader == LeaderIdAndEpoch(leader_id=OBSERVER_ID, leader_epoch=epoch)


def test_records_that_are_not_committed_are_kept_from_readers() -> None:
    """Nor do readers hear of the epoch of a leader that has committed nothing yet."""
    quorum, observer = with_observer()
    leader, epoch, committed = quorum.leader, observer.running.epoch, observer.high_watermark
    for node in (leader, *quorum.followers()):
        node.disk_is_stuck = True
    leader.crash()
    quorum.run_until(lambda: observer.end_offset > committed)
    assert (observer.high_watermark, observer.running.log_end_epoch) == (committed, epoch + 1)
    answer = answer_of(observer, fetch(1, epoch, epoch=epoch, replica=READER), 18)
    assert isinstance(answer, ReplyRecords)
    assert answer.end_offset == committed
    assert only(answer.response).high_watermark == committed
    at_end = answer_of(observer, fetch(committed, epoch, epoch=epoch, replica=READER), 18)
    assert isinstance(at_end, Reply)
    assert only(at_end.response).error_code == ErrorCode.NONE


def test_readers_that_know_an_older_epoch_are_told_the_epoch_and_the_observers_address() -> None:
    _, observer = with_observer()
    epoch = observer.running.epoch
    response = refusal(observer, fetch(0, 0, epoch=0, replica=READER))
    partition = only(response)
    assert partition.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert partition.current_leader == LeaderIdAndEpoch(leader_id=OBSERVER_ID, leader_epoch=epoch)
    assert response.node_endpoints == [NodeEndpoint(OBSERVER_ID, f"node-{OBSERVER_ID}", PORT)]


def test_replicas_are_sent_to_the_leader() -> None:
    quorum, observer = with_observer()
    epoch = observer.running.epoch
    response = refusal(observer, fetch(0, 0, epoch=epoch, replica=7))
    partition = only(response)
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.current_leader == LeaderIdAndEpoch(leader_id=quorum.leader.id, leader_epoch=epoch)


def test_an_ordinary_observer_sends_readers_to_the_leader() -> None:
    quorum = CoreQuorum(3, observers=1).start()
    leader, observer = quorum.elect(), quorum.nodes[OBSERVER_ID]
    quorum.run_until(quorum.agree)
    response = refusal(observer, fetch(0, 0, epoch=observer.running.epoch, replica=READER))
    assert only(response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert only(response).current_leader.leader_id == leader.id


def test_readers_go_on_while_nobody_leads() -> None:
    quorum, observer = with_observer()
    epoch, committed = observer.running.epoch, observer.high_watermark
    for voter in (1, 2, 3):
        quorum.nodes[voter].crash()
    quorum.run_for(20_000)
    assert observer.running.live_leader_id is None
    answer = answer_of(observer, fetch(1, epoch, epoch=epoch, replica=READER), 18)
    assert isinstance(answer, ReplyRecords)
    assert answer.end_offset == committed


def test_readers_get_the_observers_own_snapshots() -> None:
    _, observer = with_observer()
    snapshot_id = observer.write_snapshot()
    epoch = observer.running.epoch
    answer = answer_of(observer, piece_of(snapshot_id, epoch), 1)
    assert isinstance(answer, ReplySnapshotBytes)
    assert (answer.snapshot_id, answer.position) == (snapshot_id, 0)
    refused = answer_of(observer, piece_of(snapshot_id, epoch - 1), 1)
    assert isinstance(refused, Reply)
    assert isinstance(refused.response, FetchSnapshotResponse)
    (topic,) = refused.response.topics
    assert topic.partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert topic.partitions[0].current_leader.leader_id == OBSERVER_ID


def piece_of(snapshot_id: SnapshotId, epoch: int) -> FetchSnapshotRequest:
    asked = fetch_snapshot_request.PartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=fetch_snapshot_request.SnapshotId(
            end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch
        ),
    )
    topic = fetch_snapshot_request.TopicSnapshot(name="__cluster_metadata", partitions=[asked])
    return FetchSnapshotRequest(cluster_id=CLUSTER_ID, max_bytes=100, topics=[topic])


def test_an_observer_that_is_made_a_voter_by_mistake_never_stands() -> None:
    """A leader that is asked about the observer at the address of a controller can't know better."""
    quorum, observer = with_observer()
    change = Asked(quorum.leader, add_request(observer))
    quorum.run_until(lambda: change.is_answered)
    assert change.error == ErrorCode.NONE
    quorum.run_until(lambda: OBSERVER_ID in observer.running.voters.ids)
    assert not observer.running.is_voter
    for voter in (1, 2, 3):
        quorum.nodes[voter].crash()
    before = len(observer.effects)
    quorum.run_for(30_000)
    assert observer.running.role in (Role.FOLLOWER, Role.UNATTACHED)
    sent = {type(e.request) for e in observer.effects[before:] if isinstance(e, SendRequest)}
    assert sent <= {FetchRequest}
