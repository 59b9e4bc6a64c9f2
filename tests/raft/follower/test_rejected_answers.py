"""Impossible answers of a leader are rejected as a whole; they cost neither data nor the process."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.log.batch import CONTROL, encode_batch, encode_keyed_batch
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from kraft_wire.protocol.messages.fetch_response import SnapshotId as SnapshotIdOnWire
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.raft import effects as raft_effects
from kraft_wire.raft.events import ResponseReceived, SnapshotVerified
from kraft_wire.raft.roles import FetchingSnapshot
from tests.raft.core_quorum import CoreQuorum, QuorumNode
from tests.raft.election.claimed_leaders import follow
from tests.raft.quorum_ports import FLUSH_MS

TOPIC = "__cluster_metadata"
LOG_EPOCH = 2


class FalseLeader:
    """A leader that sends arbitrary answers to ``node``, which follows it; two good nodes don't hear from
    it. The node's log may be trimmed up to what is committed."""

    def __init__(self, *, is_trimmed: bool = False) -> None:
        self.quorum = CoreQuorum(3).start()
        first = self.quorum.elect()
        self.quorum.run_until(self.quorum.agree)
        first.crash()
        leader = self.quorum.elect()
        first.start()
        for number in range(20):
            leader.propose(b"%d" % number)
        self.quorum.run_until(self.quorum.agree)
        self.node = self.quorum.followers()[0]
        if is_trimmed:
            self._trim(leader)
        self.start_offset = self.node.start_offset
        self.id = next(id for id in self.quorum.nodes if id not in (self.node.id, leader.id))
        self.epoch = self.node.running.epoch + 1
        self.quorum.isolate(self.node.id)
        self.end_offset = self.node.end_offset
        assert self.epoch == LOG_EPOCH + 1
        follow(self.node, self.id, self.epoch)

    def _trim(self, leader: QuorumNode) -> None:
        self.node.write_snapshot()
        leader.propose(b"more")
        self.quorum.run_until(self.quorum.agree)
        self.node.write_snapshot()
        self.quorum.run_until(lambda: self.node.start_offset == self.node.end_offset)

    def _asked(self, kind: type[Message]) -> int:
        sent = [effect for effect in self.node.effects if isinstance(effect, raft_effects.SendRequest)]
        return [effect.request_id for effect in sent if isinstance(effect.request, kind)][-1]

    def answers(self, **said: Any) -> list[raft_effects.Effect]:
        """Answer the node's Fetch. Returns the effects of the answer."""
        answer = PartitionData(
            high_watermark=self.node.high_watermark,
            records=b"",
            current_leader=LeaderIdAndEpoch(leader_id=self.id, leader_epoch=self.epoch),
        )
        for name, value in said.items():
            setattr(answer, name, value)
        topic = FetchableTopicResponse(topic=TOPIC, partitions=[answer])
        return self.node.step(ResponseReceived(self._asked(FetchRequest), FetchResponse(responses=[topic])))

    def is_refused(self, effects: list[raft_effects.Effect], reason: str) -> None:
        """Check that nothing happened except a report to the operator, and that the node returns to the
        quorum."""
        (refusal,) = [effect for effect in effects if isinstance(effect, raft_effects.BadFetch)]
        assert reason in refusal.reason
        assert refusal.leader_id == self.id
        self._leaves_all_as_it_was(effects)

    def lacks_committed(self, effects: list[raft_effects.Effect], offset: int) -> None:
        """Check that the operator gets a report and that nothing is lost."""
        refusals = [effect for effect in effects if isinstance(effect, raft_effects.LeaderLacksCommitted)]
        assert refusals == [raft_effects.LeaderLacksCommitted(self.id, self.epoch, offset, self.end_offset)]
        self._leaves_all_as_it_was(effects)

    def _leaves_all_as_it_was(self, effects: list[raft_effects.Effect]) -> None:
        changes = (
            raft_effects.AppendBatch,
            raft_effects.TruncateLog,
            raft_effects.InstallSnapshot,
            raft_effects.AppendSnapshotBytes,
        )
        assert not any(isinstance(effect, changes) for effect in effects)
        sent = [effect for effect in effects if isinstance(effect, raft_effects.SendRequest)]
        assert not any(isinstance(effect.request, FetchSnapshotRequest) for effect in sent)
        assert self.node.end_offset == self.end_offset
        self.quorum.heal()
        self.quorum.run_until(lambda: self._is_whole(self.node))

    def _is_whole(self, node: QuorumNode) -> bool:
        return self.quorum.agree() and node.start_offset == self.start_offset


@pytest.fixture
def leader() -> FalseLeader:
    return FalseLeader()


# Records.


@pytest.mark.parametrize("key", [b"\0\0\0\7", b"\0", b"\0\0\0\5"], ids=["type", "key", "value"])
@pytest.mark.parametrize("batches", [1, 2])
def test_an_unknown_control_record_after_the_leader_change(
    leader: FalseLeader, key: bytes, batches: int
) -> None:
    records = [(b"\0\0\0\2", LeaderChangeMessage().encode(0)), (key, b"")]
    data = encode_keyed_batch(leader.end_offset, leader.epoch, 0, records[: 3 - batches], attributes=CONTROL)
    if batches == 2:
        data += encode_keyed_batch(leader.end_offset + 1, leader.epoch, 0, records[1:], attributes=CONTROL)
    leader.is_refused(leader.answers(records=data), "control record")


# Diverging logs.


@pytest.mark.parametrize(
    ("epoch", "end_offset", "reason"),
    [
        (LOG_EPOCH, -1, "ends epoch 2 at offset -1"),
        (LOG_EPOCH, -(2**63), "ends epoch 2 at offset -9"),
        (LOG_EPOCH, 2**63 - 1, "leaves nothing to truncate"),
        (LOG_EPOCH + 1, 5, "leaves nothing to truncate"),
        (2**31 - 1, 0, "it ends epoch 2147483647"),
    ],
)
def test_an_impossible_diverging_epoch(leader: FalseLeader, epoch: int, end_offset: int, reason: str) -> None:
    said = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    leader.is_refused(leader.answers(diverging_epoch=said), reason)


@pytest.mark.parametrize(("epoch", "end_offset"), [(LOG_EPOCH, 5), (LOG_EPOCH, 0), (1, 0), (0, 0)])
def test_a_diverging_epoch_below_what_is_committed(leader: FalseLeader, epoch: int, end_offset: int) -> None:
    said = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    leader.lacks_committed(leader.answers(diverging_epoch=said), end_offset)


def test_a_diverging_epoch_that_ends_before_the_log_begins() -> None:
    """As the leader of a recovered quorum tells a node of the old one, whose records are lost. All that is
    left of the log is a snapshot."""
    leader = FalseLeader(is_trimmed=True)
    assert leader.start_offset > 5
    leader.lacks_committed(leader.answers(diverging_epoch=EpochEndOffset(epoch=1, end_offset=5)), 5)


def test_a_diverging_epoch_within_a_batch(leader: FalseLeader) -> None:
    """The whole batch is truncated, and the leader is followed from there on."""
    node, begin_offset = leader.node, leader.end_offset + 1
    record = (b"\0\0\0\2", LeaderChangeMessage().encode(0))
    data = encode_keyed_batch(leader.end_offset, leader.epoch, 0, [record], attributes=CONTROL)
    data += encode_batch(begin_offset, leader.epoch, 0, [b"a", b"b", b"c"])
    leader.answers(records=data)
    assert node.end_offset == begin_offset + 3
    leader.quorum.run_for(FLUSH_MS)
    leader.answers(diverging_epoch=EpochEndOffset(epoch=leader.epoch, end_offset=begin_offset + 1))
    leader.quorum.run_for(0)
    assert node.end_offset == begin_offset
    leader.answers(records=b"")  # to the Fetch that was sent before the truncation
    leader.answers(records=encode_batch(begin_offset, leader.epoch, 0, [b"d"]))
    assert node.end_offset == begin_offset + 1
    leader.quorum.heal()
    leader.quorum.run_until(leader.quorum.agree)


# Snapshots.


def test_a_snapshot_below_what_is_committed(leader: FalseLeader) -> None:
    said = SnapshotIdOnWire(end_offset=5, epoch=leader.epoch)
    leader.lacks_committed(leader.answers(snapshot_id=said), 5)


def test_a_snapshot_of_a_later_epoch_than_the_leaders(leader: FalseLeader) -> None:
    said = SnapshotIdOnWire(end_offset=100, epoch=leader.epoch + 1)
    leader.is_refused(leader.answers(snapshot_id=said), f"of epoch {leader.epoch + 1}")


def test_a_snapshot_that_is_not_ahead_of_the_log(leader: FalseLeader) -> None:
    said = SnapshotIdOnWire(end_offset=leader.end_offset, epoch=1)
    leader.is_refused(leader.answers(snapshot_id=said), "not ahead of")


def test_a_snapshot_is_checked_again_before_it_replaces_the_log() -> None:
    """More may have been committed since the fetch of the snapshot began."""
    quorum = CoreQuorum(3).start()
    follower = quorum.elect() and quorum.followers()[0]
    quorum.run_until(quorum.agree)
    state = follower.running._quorum.state
    state.following.snapshot = FetchingSnapshot(SnapshotId(1, state.epoch), 100, is_complete=True)  # type: ignore[union-attr]
    effects = follower.step(SnapshotVerified(SnapshotId(1, state.epoch), 100, 0, ()))
    assert raft_effects.AbandonSnapshot(SnapshotId(1, state.epoch)) in effects
    assert not any(isinstance(effect, raft_effects.InstallSnapshot) for effect in effects)
    assert follower.start_offset == 0
    quorum.run_until(quorum.agree)
