"""Appending and committing: only flushed records count."""

from __future__ import annotations

import pytest

from kraft_wire.log.batch import iter_records
from kraft_wire.log.errors import BatchTooLarge
from kraft_wire.raft.effects import (
    AppendBatch,
    HighWatermarkAdvanced,
    LostLeadership,
    ReadyToStop,
    RoleChanged,
)
from kraft_wire.raft.election.stopping import StopWait
from kraft_wire.raft.errors import InvariantViolated, NotLeader
from kraft_wire.raft.events import Flushed, ShutDown
from kraft_wire.raft.roles import Role
from tests.raft.lone_node import LoneNode, of_type


def test_a_proposal_is_one_batch_at_the_end_of_the_log() -> None:
    node = LoneNode()
    effects = node.propose(b"one", b"two")
    (append,) = of_type(effects, AppendBatch)
    assert effects == [append]
    assert (append.base_offset, append.last_offset, append.epoch) == (1, 2, 1)
    assert node.core.log_end_offset == 3
    records = list(iter_records(node.batches[-1]))
    assert [(record.offset, record.value) for record in records] == [(1, b"one"), (2, b"two")]
    assert node.batches[-1].header.base_timestamp == node.now.wall_ms


def test_nothing_is_committed_before_its_flush() -> None:
    """KAFKA-10533."""
    node = LoneNode()
    node.propose()
    assert node.high_watermarks == []
    assert node.flush() == [HighWatermarkAdvanced(2)]
    assert (node.core.high_watermark, node.core.flushed_offset) == (2, 2)


def test_a_flush_commits_only_what_it_covered() -> None:
    node = LoneNode()
    node.propose()
    node.propose()
    assert node.step(Flushed(2)) == [HighWatermarkAdvanced(2)]
    assert node.core.log_end_offset == 3
    assert node.flush() == [HighWatermarkAdvanced(3)]


def test_the_high_watermark_appears_with_the_first_record_of_the_own_epoch() -> None:
    """KAFKA-12619: records of earlier epochs are committed only together with a record of this one."""
    node = LoneNode()
    node.propose()
    node.flush()
    node.restart()
    assert node.core.epoch_start_offset == 2
    assert node.core.high_watermark is None
    assert node.step(Flushed(2)) == []
    assert node.core.high_watermark is None
    assert node.flush() == [HighWatermarkAdvanced(3)]


def test_a_repeated_or_older_flush_changes_nothing() -> None:
    node = LoneNode()
    node.propose()
    node.flush()
    assert node.step(Flushed(2)) == []
    assert node.step(Flushed(1)) == []
    assert (node.core.high_watermark, node.core.flushed_offset) == (2, 2)


def test_a_flush_of_what_was_never_appended_stops_the_node() -> None:
    node = LoneNode()
    with pytest.raises(InvariantViolated, match="offset 2 was reported as flushed"):
        node.step(Flushed(2))


def test_a_batch_above_the_limit_is_refused_and_changes_nothing() -> None:
    """KAFKA-14204: a batch that is too large is the proposer's error, and the leader goes on."""
    node = LoneNode()
    with pytest.raises(BatchTooLarge):
        node.propose(bytes(8 * 1024 * 1024))
    assert node.core.log_end_offset == 1
    assert node.core.is_leader
    assert len(of_type(node.propose(b"small"), AppendBatch)) == 1


def test_a_batch_at_the_limit_is_taken() -> None:
    node = LoneNode()
    room = 8 * 1024 * 1024 - node.batches[0].header.size_bytes
    node.propose(bytes(room))
    assert node.core.log_end_offset == 2


# Shutting down.


def test_a_leader_with_everything_flushed_stops_at_once() -> None:
    node = LoneNode()
    node.flush()
    assert node.step(ShutDown()) == [
        LostLeadership(1, None),
        ReadyToStop(),
        RoleChanged(Role.RESIGNED, 1, None),
    ]
    assert node.core.role is Role.RESIGNED
    assert node.core.leader_id is None
    assert node.core.next_deadline_ms() is None


def test_a_leader_first_commits_what_it_has_appended() -> None:
    node = LoneNode()
    node.propose()
    waited = [node.core.stop_waits_for]
    assert node.step(ShutDown()) == []
    assert node.core.is_leader
    waited.append(node.core.stop_waits_for)
    assert node.flush()[:3] == [HighWatermarkAdvanced(2), LostLeadership(1, None), ReadyToStop()]
    waited.append(node.core.stop_waits_for)
    assert waited == [None, StopWait.COMMIT, None]


def test_nothing_is_appended_once_a_shutdown_began() -> None:
    node = LoneNode()
    node.step(ShutDown())
    with pytest.raises(NotLeader, match="epoch 1; node 1 does"):
        node.propose()
    node.flush()
    with pytest.raises(NotLeader, match="leader is unknown"):
        node.propose()


def test_a_stopped_node_starts_no_election() -> None:
    node = LoneNode()
    node.flush()
    node.step(ShutDown())
    assert node.pass_ms(3_600_000) == []
    assert node.core.role is Role.RESIGNED


def test_a_node_that_was_stopped_leads_a_new_epoch_next_time() -> None:
    node = LoneNode()
    node.flush()
    node.step(ShutDown())
    node.restart()
    assert (node.core.role, node.core.epoch) == (Role.LEADER, 2)
