"""The 0-0 checkpoint of format: its voters go into the log, the checkpoint itself to nobody
(KafkaRaftClientReconfigTest)."""

from __future__ import annotations

from kraft_wire.log.control import decode_control_batch, encode_control_batch
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import fetch_response
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.raft.effects import AppendBatch, SendRequest
from kraft_wire.raft.events import ResponseReceived
from kraft_wire.raft.membership.voters import ReplicaKey, Voter, VoterSet, endpoints_of
from tests.raft.core_quorum import CoreQuorum, QuorumNode
from tests.raft.election.claimed_leaders import fetch_answer, fetches, follow
from tests.raft.lone_node import (
    LISTENER,
    OTHER_DIRECTORY,
    LoneNode,
    config,
    fetch,
    formatted_standalone,
    of_type,
    only,
)
from tests.raft.membership.reconfiguration import voters_of

LEADER = 2
EPOCH = 5


def _first_batch(node: QuorumNode) -> list[Message]:
    return decode_control_batch(node.batches[0])


def _elected(kraft_version: int) -> CoreQuorum:
    return CoreQuorum(2, kraft_version=kraft_version).led()


def test_leader_writes_bootstrap_records() -> None:
    quorum = _elected(kraft_version=1)
    for node in quorum.nodes.values():
        change, level, voters = _first_batch(node)
        assert isinstance(change, LeaderChangeMessage)
        assert change.leader_id == quorum.leader.id
        assert [voter.voter_id for voter in change.voters] == [1, 2]
        assert [voter.voter_id for voter in change.granting_voters] == [1, 2]
        assert level == KRaftVersionRecord(kraft_version=1)
        assert voters == node.running.voters.to_record()
        assert [voter.key for voter in node.running.voters.voters] == [
            each.config.replica_key for each in quorum.nodes.values()
        ]


def test_leader_does_not_bootstrap_records_with_kraft_version_0() -> None:
    quorum = _elected(kraft_version=0)
    for node in quorum.nodes.values():
        (change,) = _first_batch(node)
        assert isinstance(change, LeaderChangeMessage)
        assert node.running.kraft_version == 0
        assert node.running.voters_offset is None


def test_bootstrap_checkpoint_is_not_returned_on_fetch() -> None:
    node = LoneNode(config(static=VoterSet()), formatted_standalone())
    node.flush()
    answer = only(node.answer_to(fetch(0, 0, epoch=node.core.epoch), 18))
    assert (answer.error_code, answer.current_leader.leader_id) == (0, 1)
    assert (answer.snapshot_id.end_offset, answer.snapshot_id.epoch) == (-1, -1)


def _follower() -> QuorumNode:
    """Return one of two voters, right after format, that follows the other one, which the test plays."""
    quorum = CoreQuorum(2).start()
    node = quorum.nodes[1]
    quorum.isolate(node.id)
    follow(node, LEADER, EPOCH)
    return node


def test_follower_does_not_request_leader_bootstrap_snapshot() -> None:
    node = _follower()
    asked = fetches(node.effects)[-1]
    answer = fetch_answer(LEADER, EPOCH)
    answer.responses[0].partitions[0].snapshot_id = fetch_response.SnapshotId(end_offset=0, epoch=0)
    effects = node.step(ResponseReceived(asked.request_id, answer))
    node.quorum.run_for(100)
    sent = [effect.request for effect in node.effects if isinstance(effect, SendRequest)]
    assert not any(isinstance(request, FetchSnapshotRequest) for request in sent)
    assert not of_type(effects, AppendBatch)
    again = fetches(node.effects)[-1]
    assert again.request_id != asked.request_id
    assert isinstance(again.request, FetchRequest)
    assert again.request.topics[0].partitions[0].fetch_offset == 0


def test_follower_reads_kraft_bootstrap_records() -> None:
    node = _follower()
    assert voters_of(node) == (1, 2)
    third = Voter(ReplicaKey(3, OTHER_DIRECTORY), endpoints_of([(LISTENER, "node-3", 9093)]))
    voters = node.running.voters.with_added(third)
    records = [LeaderChangeMessage(leader_id=LEADER), KRaftVersionRecord(kraft_version=1), voters.to_record()]
    answer = fetch_answer(LEADER, EPOCH, high_watermark=0)
    answer.responses[0].partitions[0].records = encode_control_batch(0, EPOCH, 0, records)
    node.step(ResponseReceived(fetches(node.effects)[-1].request_id, answer))
    assert node.running.voters == voters
    assert node.running.voters_offset == 2
