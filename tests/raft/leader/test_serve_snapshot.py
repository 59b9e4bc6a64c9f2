"""Snapshots: registration, retention and FetchSnapshot."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import fetch_snapshot_request, fetch_snapshot_response
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.protocol.messages.fetch_snapshot_response import (
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionSnapshot,
)
from kraft_wire.raft.config import DurableState, SnapshotInfo
from kraft_wire.raft.effects import DeleteSnapshot, Effect, ReplySnapshotBytes, TrimLog
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import KeepRecords, LogTrimmed, Now, ShutDown, SnapshotWritten
from kraft_wire.raft.log_state import LogState
from kraft_wire.raft.membership.voters import VoterSet
from tests.raft.lone_node import (
    CLUSTER_ID,
    OTHER_DIRECTORY,
    LoneNode,
    config,
    election,
    fetch,
    formatted_standalone,
    of_type,
    only,
)

MINUTE_MS = 60_000
NO_LIMIT = -1


def committed(**settings: int) -> LoneNode:
    """Return a leader of epoch 1 with offsets 0 and 1 committed."""
    node = LoneNode(replace(config(), **settings))
    node.propose()
    node.flush()
    return node


def removals(effects: list[Effect]) -> list[Effect]:
    return [effect for effect in effects if isinstance(effect, TrimLog | DeleteSnapshot)]


# Registration.


def test_a_snapshot_is_known_once_it_is_written() -> None:
    node = committed()
    assert node.core.latest_snapshot is None
    assert node.write_snapshot() == []
    assert node.core.latest_snapshot == SnapshotId(2, 1)


def test_a_snapshot_above_the_high_watermark_stops_the_node() -> None:
    node = committed()
    node.propose()
    with pytest.raises(InvariantViolated, match="above the committed offset 2"):
        node.step(SnapshotWritten(SnapshotId(3, 1), 100, 0))


def test_a_snapshot_of_what_was_committed_before_a_restart() -> None:
    durable = DurableState(
        election=election(1, 4), log_end_offset=20, epochs=EpochCache([(4, 0)]), committed_offset=10
    )
    node = LoneNode(durable=durable)
    assert node.step(SnapshotWritten(SnapshotId(10, 4), 100, 0)) == []
    with pytest.raises(InvariantViolated, match="above the committed offset 10"):
        node.step(SnapshotWritten(SnapshotId(11, 4), 100, 0))


def test_a_snapshot_of_another_history_stops_the_node() -> None:
    with pytest.raises(InvariantViolated, match="another epoch"):
        committed().step(SnapshotWritten(SnapshotId(2, 7), 100, 0))


def test_the_same_snapshot_twice_is_one() -> None:
    node = committed(max_retention_ms=0)
    for _ in range(2):
        assert removals(node.step(SnapshotWritten(SnapshotId(2, 1), 100, 0))) == []


def test_a_snapshot_made_under_an_earlier_leadership_is_taken() -> None:
    """The high watermark of the new epoch may not be known yet; what was committed stays committed."""
    node = committed()
    node.restart()
    assert node.core.high_watermark is None
    with pytest.raises(InvariantViolated):
        node.step(SnapshotWritten(SnapshotId(2, 1), 100, 0))
    node.flush()
    node.step(SnapshotWritten(SnapshotId(2, 1), 100, 0))
    assert node.core.latest_snapshot == SnapshotId(2, 1)


def test_a_snapshot_below_the_log_start_is_deleted_again() -> None:
    node = trimmable(max_retention_bytes=0)
    node.write_snapshot()
    node.log_trimmed()
    start = node.core.log_start_offset
    assert start > 2
    late = SnapshotId(start - 1, 1)
    assert node.step(SnapshotWritten(late, 100, 0)) == [DeleteSnapshot(late)]
    assert node.core.latest_snapshot != late


def test_what_a_snapshot_covers_is_forgotten() -> None:
    node = LoneNode(config(static=VoterSet()), formatted_standalone())
    node.flush()
    node.write_snapshot()
    node.restart(config(static=VoterSet(), endpoints=(("CONTROLLER", "moved.example", 9093),)))
    node.flush()
    history, log = node.core._quorum.history, node.core._quorum.log
    *_, before, now = history.possible_voters(0)
    assert before.ids == now.ids
    assert before != now == node.core.voters
    assert [entry.epoch for entry in log.epochs.entries] == [2]
    node.write_snapshot()
    assert node.core._quorum.possible_voters == [node.core.voters]


def test_the_epochs_of_a_trimmed_log() -> None:
    log = LogState(DurableState(log_end_offset=20, epochs=EpochCache([(1, 0), (3, 10)])))
    log.add_snapshot(SnapshotInfo(SnapshotId(5, 1), 1, 0))
    log.add_snapshot(SnapshotInfo(SnapshotId(12, 3), 1, 0))
    assert log.advance_start(SnapshotId(12, 3)) == [SnapshotId(5, 1)]
    assert log.epochs == EpochCache([(3, 12)])
    assert (log.start_offset, log.earliest_snapshot) == (12, SnapshotId(12, 3))


def test_the_epoch_at_an_offset() -> None:
    node = LoneNode(
        durable=DurableState(
            election=election(1, 8),
            log_start_offset=50,
            log_end_offset=60,
            epochs=EpochCache([(8, 50)]),
            snapshots=[SnapshotInfo(SnapshotId(50, 7), 1000, 0)],
        )
    )
    assert [node.core.epoch_at(offset) for offset in (49, 50, 59, 60)] == [7, 8, 8, 9]
    for offset in (48, 61):
        with pytest.raises(KeyError):
            node.core.epoch_at(offset)


# Retention.


def trimmable(**settings: int) -> LoneNode:
    """Return a node with a snapshot of offset 2 and more committed records after it."""
    node = committed(**settings)
    node.write_snapshot(size_bytes=1_000)
    node.propose()
    node.flush()
    return node


def test_within_the_limits_everything_is_kept() -> None:
    node = trimmable()
    assert removals(node.write_snapshot()) == []
    assert removals(node.pass_ms(MINUTE_MS)) == []


def test_the_only_snapshot_is_kept_whatever_the_limits() -> None:
    node = committed(max_retention_bytes=0, max_retention_ms=0)
    assert removals(node.write_snapshot(timestamp_ms=0)) == []
    assert removals(node.pass_ms(MINUTE_MS)) == []
    assert node.core.log_start_offset == 0


def test_too_many_bytes() -> None:
    """Log and snapshots count together; the log starts at the end of a snapshot (KAFKA-14238)."""
    node = trimmable(max_retention_bytes=2_000, max_retention_ms=NO_LIMIT)
    assert removals(node.write_snapshot(size_bytes=1_000)) == [TrimLog(3), DeleteSnapshot(SnapshotId(2, 1))]
    assert node.core.log_start_offset == 3


@pytest.mark.parametrize(("limit", "trims"), [(0, 1), (NO_LIMIT, 0)])
def test_the_size_that_counts(limit: int, trims: int) -> None:
    node = trimmable(max_retention_bytes=limit, max_retention_ms=NO_LIMIT)
    assert len(of_type(node.write_snapshot(), TrimLog)) == trims


def test_the_limit_itself_is_not_too_much() -> None:
    log_bytes = sum(batch.header.size_bytes for batch in trimmable().batches)
    for over in (0, 1):
        node = trimmable(max_retention_bytes=log_bytes + 2_000 - over, max_retention_ms=NO_LIMIT)
        assert len(of_type(node.write_snapshot(size_bytes=1_000), TrimLog)) == over


def test_too_old() -> None:
    """The age is that of the last record in the older snapshot, by the wall clock."""
    node = trimmable(max_retention_bytes=NO_LIMIT, max_retention_ms=100_000)
    node.pass_ms(100_000)
    assert removals(node.write_snapshot()) == []
    assert removals(node.pass_ms(MINUTE_MS)) == [TrimLog(3), DeleteSnapshot(SnapshotId(2, 1))]


def test_limits_are_looked_at_every_minute() -> None:
    node = trimmable(max_retention_bytes=NO_LIMIT, max_retention_ms=50_000)
    node.write_snapshot()
    assert node.core.next_deadline_ms() == 1_000 + MINUTE_MS
    assert removals(node.pass_ms(MINUTE_MS - 1)) == []
    assert len(removals(node.pass_ms(1))) == 2
    assert node.core.next_deadline_ms() == 1_000 + 2 * MINUTE_MS


def test_records_that_are_wanted_are_kept_beyond_the_limits() -> None:
    node = trimmable(max_retention_bytes=0, max_retention_ms=NO_LIMIT)
    assert removals(node.step(KeepRecords(2))) == []
    assert removals(node.write_snapshot(size_bytes=1_000)) == []
    assert removals(node.step(KeepRecords(3))) == [TrimLog(3), DeleteSnapshot(SnapshotId(2, 1))]


def test_records_that_are_wanted_are_kept_up_to_limits_of_their_own() -> None:
    for limits in ({"max_wanted_bytes": 0}, {"max_wanted_ms": 1}):
        node = trimmable(max_retention_bytes=0, max_retention_ms=NO_LIMIT, **limits)
        node.pass_ms(10)
        node.step(KeepRecords(2))
        assert removals(node.write_snapshot(size_bytes=1_000))[:1] == [TrimLog(3)]


def several_snapshots(**settings: int) -> LoneNode:
    """Return a node with snapshots of offsets 2 and 3, and a third to be written, of offset 4."""
    node = trimmable(**settings)
    node.write_snapshot(size_bytes=1_000)
    node.propose()
    node.flush()
    return node


def test_one_snapshot_at_a_time_until_the_limit_is_met() -> None:
    """The bytes that a trim frees are known when it is done: segments are deleted whole or not at all."""
    node = several_snapshots(max_retention_bytes=2_500, max_retention_ms=NO_LIMIT)
    assert removals(node.write_snapshot(size_bytes=1_000)) == [TrimLog(3), DeleteSnapshot(SnapshotId(2, 1))]
    assert removals(node.log_trimmed(deleted_bytes=0)) == []
    assert [info.id.end_offset for info in node.snapshots] == [3, 4]


def test_a_trim_that_freed_too_little_is_followed_by_another() -> None:
    node = several_snapshots(max_retention_bytes=1_500, max_retention_ms=NO_LIMIT)
    node.write_snapshot(size_bytes=1_000)
    assert removals(node.log_trimmed(deleted_bytes=0)) == [TrimLog(4), DeleteSnapshot(SnapshotId(3, 1))]
    assert removals(node.log_trimmed(deleted_bytes=0)) == []
    assert [info.id.end_offset for info in node.snapshots] == [4]


def test_freed_bytes_count() -> None:
    log_bytes = sum(batch.header.size_bytes for batch in several_snapshots().batches)
    node = several_snapshots(max_retention_bytes=2_050, max_retention_ms=NO_LIMIT)
    node.write_snapshot(size_bytes=1_000)
    assert removals(node.log_trimmed(deleted_bytes=log_bytes - 50)) == []
    assert removals(node.propose(bytes(100))) == []
    assert removals(node.pass_ms(MINUTE_MS)) == [TrimLog(4), DeleteSnapshot(SnapshotId(3, 1))]


def test_nothing_more_is_trimmed_while_a_trim_is_under_way() -> None:
    node = several_snapshots(max_retention_bytes=0, max_retention_ms=NO_LIMIT)
    assert node.core.log_start_offset == 3
    assert removals(node.write_snapshot(size_bytes=1_000)) == []
    assert len(of_type(node.step(LogTrimmed(0)), TrimLog)) == 1


def test_the_checkpoint_of_format_goes_with_the_first_snapshot() -> None:
    """It is older than any limit. Nothing is lost: the snapshot has its records."""
    node = LoneNode(config(static=VoterSet()), formatted_standalone())
    node.flush()
    effects = node.write_snapshot()
    assert removals(effects) == [TrimLog(3), DeleteSnapshot(BOOTSTRAP_SNAPSHOT_ID)]
    node.restart()
    assert node.core.voters.ids == (1,)
    assert node.core.kraft_version == 1
    assert len(node.control_messages(-1)) == 1


def test_after_a_restart_snapshots_on_disk_are_known_to_be_committed() -> None:
    """They don't have to wait for the high watermark of the new epoch."""
    durable = DurableState(
        election=election(1, 1),
        log_end_offset=10,
        epochs=EpochCache([(1, 0)]),
        snapshots=[SnapshotInfo(SnapshotId(4, 1), 10, 0), SnapshotInfo(SnapshotId(8, 1), 10, 0)],
    )
    node = LoneNode(durable=durable)
    assert removals(node.pass_ms(MINUTE_MS)) == [TrimLog(8), DeleteSnapshot(SnapshotId(4, 1))]
    assert node.core.log_start_offset == 8


def test_a_wall_clock_that_goes_back_makes_nothing_old() -> None:
    node = trimmable(max_retention_bytes=NO_LIMIT, max_retention_ms=1_000)
    node.write_snapshot()
    node.now = Now(node.now.monotonic_ms + MINUTE_MS, node.now.wall_ms - MINUTE_MS)
    assert removals(node.pass_ms(0)) == []


def test_observers_who_need_what_was_trimmed_get_the_snapshot() -> None:
    node = trimmable(max_retention_bytes=0)
    node.write_snapshot()
    answer = only(node.answer_to(fetch(1, 1, epoch=1), 18))
    assert (answer.snapshot_id.end_offset, answer.snapshot_id.epoch) == (3, 1)
    assert answer.log_start_offset == 3


# FetchSnapshot.


def piece(
    snapshot_id: tuple[int, int] = (2, 1),
    *,
    position: int = 0,
    epoch: int = 1,
    max_bytes: int = 1 << 20,
    replica: int = 7,
    topic: str = "__cluster_metadata",
    partition: int = 0,
    cluster_id: str | None = CLUSTER_ID,
) -> FetchSnapshotRequest:
    return FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica_id=replica,
        max_bytes=max_bytes,
        topics=[
            fetch_snapshot_request.TopicSnapshot(
                name=topic,
                partitions=[
                    fetch_snapshot_request.PartitionSnapshot(
                        partition=partition,
                        current_leader_epoch=epoch,
                        snapshot_id=fetch_snapshot_request.SnapshotId(
                            end_offset=snapshot_id[0], epoch=snapshot_id[1]
                        ),
                        position=position,
                        replica_directory_id=OTHER_DIRECTORY,
                    )
                ],
            )
        ],
    )


def answered(node: LoneNode, request: FetchSnapshotRequest, version: int = 1) -> PartitionSnapshot:
    response = node.answer_to(request, version)
    assert isinstance(response, FetchSnapshotResponse)
    assert FetchSnapshotResponse.decode(response.encode(version), version) == response
    assert response.error_code == 0
    (topic,) = response.topics
    (partition,) = topic.partitions
    return partition


@pytest.fixture
def node() -> LoneNode:
    """Return a leader of epoch 1 with a snapshot 2-1 of 2,500 bytes, and the checkpoint of format."""
    bootstrap = SnapshotInfo(BOOTSTRAP_SNAPSHOT_ID, 494, 0)
    node = LoneNode(config(max_retention_ms=NO_LIMIT), DurableState(snapshots=[bootstrap]))
    node.propose()
    node.flush()
    node.write_snapshot(size_bytes=2_500)
    return node


@pytest.mark.parametrize(
    ("position", "asked", "served"),
    [(0, 1_000, 1_000), (1_000, 1_000, 1_000), (2_000, 1_000, 500), (0, 1 << 30, 2_500), (2_499, 10, 1)],
)
def test_a_piece_of_a_snapshot(node: LoneNode, position: int, asked: int, served: int) -> None:
    (reply,) = node.ask(piece(position=position, max_bytes=asked), 1)
    assert isinstance(reply, ReplySnapshotBytes)
    assert (reply.snapshot_id, reply.position, reply.max_bytes) == (SnapshotId(2, 1), position, served)
    assert isinstance(reply.response, FetchSnapshotResponse)
    answer = reply.response.topics[0].partitions[0]
    assert (answer.error_code, answer.size, answer.position) == (0, 2_500, position)
    assert answer.snapshot_id == fetch_snapshot_response.SnapshotId(end_offset=2, epoch=1)
    assert answer.current_leader == LeaderIdAndEpoch(leader_id=1, leader_epoch=1)
    assert reply.response.node_endpoints == [NodeEndpoint(node_id=1, host="controller.example", port=9093)]


def test_a_piece_is_bounded_by_us_too() -> None:
    node = committed(max_fetch_bytes=600)
    node.write_snapshot(size_bytes=2_500)
    (reply,) = node.ask(piece(), 1)
    assert isinstance(reply, ReplySnapshotBytes)
    assert reply.max_bytes == 600


def test_version_0_has_no_endpoints(node: LoneNode) -> None:
    (reply,) = node.ask(piece(), 0)
    assert isinstance(reply, ReplySnapshotBytes)
    assert isinstance(reply.response, FetchSnapshotResponse)
    assert reply.response.node_endpoints == []
    assert reply.response.encode(0)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (piece((2, 2)), ErrorCode.SNAPSHOT_NOT_FOUND),
        (piece((1, 1)), ErrorCode.SNAPSHOT_NOT_FOUND),
        (piece((0, 0)), ErrorCode.SNAPSHOT_NOT_FOUND),
        (piece(position=-1), ErrorCode.POSITION_OUT_OF_RANGE),
        (piece(position=2_500), ErrorCode.POSITION_OUT_OF_RANGE),
        (piece(max_bytes=0), ErrorCode.INVALID_REQUEST),
        (piece(max_bytes=-1), ErrorCode.INVALID_REQUEST),
        (piece(epoch=0), ErrorCode.FENCED_LEADER_EPOCH),
        (piece(epoch=2), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (piece(replica=1), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
    ids=[
        "another epoch",
        "another offset",
        "bootstrap is never served",
        "before the file",
        "after the file",
        "no bytes",
        "negative bytes",
        "old epoch",
        "epoch from the future",
        "our own id",
    ],
)
def test_what_is_refused(node: LoneNode, request_: FetchSnapshotRequest, error: ErrorCode) -> None:
    answer = answered(node, request_)
    assert answer.error_code == error
    assert answer.current_leader == LeaderIdAndEpoch(leader_id=1, leader_epoch=1)
    assert answer.unaligned_records == b""


@pytest.mark.parametrize(("topic", "partition"), [("other", 0), ("__cluster_metadata", 3)])
def test_another_partition_is_unknown(node: LoneNode, topic: str, partition: int) -> None:
    answer = answered(node, piece(topic=topic, partition=partition))
    assert (answer.index, answer.error_code) == (partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_exactly_one_partition(node: LoneNode) -> None:
    two_topics, two_partitions, none = piece(), piece(), piece()
    two_topics.topics = two_topics.topics * 2
    two_partitions.topics[0].partitions = two_partitions.topics[0].partitions * 2
    none.topics[0].partitions = []
    for request in (two_topics, two_partitions, none, FetchSnapshotRequest()):
        response = node.answer_to(request, 1)
        assert response == FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)


def test_a_snapshot_for_another_cluster(node: LoneNode) -> None:
    response = node.answer_to(piece(cluster_id="elsewhere"), 1)
    assert response == FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)


def test_a_deleted_snapshot_is_no_longer_served() -> None:
    node = trimmable(max_retention_bytes=0)
    node.write_snapshot()
    assert answered(node, piece((2, 1))).error_code == ErrorCode.SNAPSHOT_NOT_FOUND


def test_a_resigned_leader_serves_none(node: LoneNode) -> None:
    node.step(ShutDown())
    assert answered(node, piece()).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
