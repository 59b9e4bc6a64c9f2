"""Fetch by observers: the checks, the waiting and the answers."""

from __future__ import annotations

import pytest

from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.files import CLUSTER_METADATA, CLUSTER_METADATA_TOPIC_ID
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import fetch_response
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.protocol.messages.fetch_response import (
    EpochEndOffset,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.config import DurableState, SnapshotInfo
from kraft_wire.raft.effects import AppendBatch, HighWatermarkAdvanced, Reply, ReplyRecords
from kraft_wire.raft.events import RequestAbandoned, ShutDown
from tests.raft.lone_node import (
    DIRECTORY,
    LISTENER,
    OTHER_DIRECTORY,
    LoneNode,
    answered_tokens,
    config,
    election,
    fetch,
    of_type,
    only,
)

NO_DIVERGENCE = EpochEndOffset()
NO_SNAPSHOT = fetch_response.SnapshotId()


@pytest.fixture
def node() -> LoneNode:
    """Return a leader of epoch 1 with offsets 0 to 2 committed."""
    node = LoneNode()
    node.propose(b"one", b"two")
    node.flush()
    return node


def three_epochs() -> LoneNode:
    """Return a leader of epoch 5 whose log holds epoch 1 from 0, epoch 3 from 10, and its own from 20."""
    return LoneNode(
        durable=DurableState(election=election(1, 4), log_end_offset=20, epochs=EpochCache([(1, 0), (3, 10)]))
    )


# Checks.


def top_level_error(node: LoneNode, request: FetchRequest, version: int = 18) -> int:
    response = node.answer_to(request, version)
    assert isinstance(response, FetchResponse)
    assert response.responses == []
    return response.error_code


def test_another_cluster(node: LoneNode) -> None:
    request = fetch(3, 1, epoch=1, cluster_id="elsewhere")
    assert top_level_error(node, request) == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_request_without_a_cluster_id_is_accepted(node: LoneNode) -> None:
    assert only(node.answer_to(fetch(1, 1, epoch=1, cluster_id=None), 18)).error_code == 0


def test_exactly_the_metadata_partition(node: LoneNode) -> None:
    def topic(topic_id: Uuid, *partitions: int) -> FetchTopic:
        return FetchTopic(
            topic_id=topic_id, partitions=[FetchPartition(partition=index) for index in partitions]
        )

    for topics in (
        [],
        [topic(CLUSTER_METADATA_TOPIC_ID)],
        [topic(CLUSTER_METADATA_TOPIC_ID, 1)],
        [topic(CLUSTER_METADATA_TOPIC_ID, 0, 1)],
        [topic(Uuid.ZERO, 0)],
        [topic(CLUSTER_METADATA_TOPIC_ID, 0), topic(CLUSTER_METADATA_TOPIC_ID, 0)],
    ):
        assert top_level_error(node, FetchRequest(topics=topics)) == ErrorCode.INVALID_REQUEST


def test_version_12_names_the_topic(node: LoneNode) -> None:
    request = fetch(1, 1, epoch=1)
    request.topics[0].topic_id = Uuid.ZERO
    assert only(node.answer_to(request, 12)).error_code == ErrorCode.NONE
    assert top_level_error(node, request, 13) == ErrorCode.INVALID_REQUEST
    request.topics[0].topic = "other"
    assert top_level_error(node, request, 12) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "request_",
    [
        fetch(-1, 1, epoch=1),
        fetch(1, -1, epoch=1),
        fetch(1, 2, epoch=1),
        fetch(1, 1, epoch=1, max_wait_ms=-1),
    ],
    ids=["offset", "no epoch", "epoch from the future", "wait"],
)
def test_invalid_requests(node: LoneNode, request_: FetchRequest) -> None:
    answer = only(node.answer_to(request_, 18))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.high_watermark == -1


def test_epochs_are_compared_first() -> None:
    node = three_epochs()
    assert only(node.answer_to(fetch(10, 1, epoch=4), 18)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert only(node.answer_to(fetch(10, 1, epoch=6), 18)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_every_answer_names_the_leader_and_where_it_is(node: LoneNode) -> None:
    """A broker's first Fetch has epoch 0: the error tells it which node to ask."""
    response = node.answer_to(fetch(0, 0, epoch=0), 18)
    assert only(response).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert only(response).current_leader == LeaderIdAndEpoch(leader_id=1, leader_epoch=1)
    assert isinstance(response, FetchResponse)
    assert response.node_endpoints == [NodeEndpoint(node_id=1, host="controller.example", port=9093)]


@pytest.mark.parametrize(("version", "listener"), [(16, LISTENER), (18, "ELSEWHERE")])
def test_endpoints_are_left_out(node: LoneNode, version: int, listener: str) -> None:
    """Before version 17, and for a listener that has none."""
    response = node.answer_to(fetch(1, 1, epoch=1), version, listener=listener)
    assert isinstance(response, FetchResponse)
    assert response.node_endpoints == []


def test_the_endpoint_is_that_of_the_listener_asked() -> None:
    node = LoneNode(config(endpoints=(("CONTROLLER", "inside", 1), ("external", "outside", 2))))
    response = node.answer_to(fetch(0, 0, epoch=0), 18, listener="external")
    assert isinstance(response, FetchResponse)
    assert [(end.host, end.port) for end in response.node_endpoints] == [("outside", 2)]


def test_a_replica_that_pretends_to_be_us(node: LoneNode) -> None:
    for directory in (DIRECTORY, OTHER_DIRECTORY):
        request = fetch(1, 1, epoch=1, replica=1, directory=directory)
        assert only(node.answer_to(request, 18)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_the_answer_can_be_written_at_every_version(node: LoneNode) -> None:
    for version in range(4, 19):
        request = fetch(1, 1, epoch=1)
        node.ask(request, version, token=version)
        response = node.answers[version].response
        assert FetchResponse.decode(response.encode(version), version).error_code == 0


# Answers.


def test_records_from_the_offset_to_the_end(node: LoneNode) -> None:
    (reply,) = node.ask(fetch(1, 1, epoch=1), 18)
    assert isinstance(reply, ReplyRecords)
    assert (reply.offset, reply.end_offset, reply.max_bytes) == (1, 3, 1 << 20)
    answer = only(reply.response)
    assert (answer.error_code, answer.high_watermark, answer.log_start_offset) == (0, 3, 0)
    assert (answer.diverging_epoch, answer.snapshot_id) == (NO_DIVERGENCE, NO_SNAPSHOT)
    assert (answer.last_stable_offset, answer.preferred_read_replica) == (-1, -1)
    assert isinstance(reply.response, FetchResponse)
    assert reply.response.responses[0].topic == CLUSTER_METADATA
    assert reply.response.responses[0].topic_id == CLUSTER_METADATA_TOPIC_ID


def test_records_that_are_not_committed_yet() -> None:
    node = LoneNode()
    (reply,) = node.ask(fetch(0, 0, epoch=1), 18)
    assert isinstance(reply, ReplyRecords)
    assert reply.end_offset == 1
    assert only(reply.response).high_watermark == -1


@pytest.mark.parametrize(("asked", "served"), [(-5, 0), (0, 0), (100, 100), (1 << 30, 1 << 23)])
def test_the_size_of_an_answer_is_bounded(node: LoneNode, asked: int, served: int) -> None:
    (reply,) = node.ask(fetch(1, 1, epoch=1, max_bytes=asked), 18)
    assert isinstance(reply, ReplyRecords)
    assert reply.max_bytes == served


@pytest.mark.parametrize(
    ("offset", "last_epoch", "end"),
    [
        (10, 1, None),
        (12, 1, (1, 10)),
        (12, 3, None),
        (20, 3, None),
        (21, 3, (3, 20)),
        (12, 2, (1, 10)),
        (10, 2, (1, 10)),
        (21, 4, (3, 20)),
        (22, 5, (5, 21)),
    ],
)
def test_diverging_logs(offset: int, last_epoch: int, end: tuple[int, int] | None) -> None:
    node = three_epochs()
    node.ask(fetch(offset, last_epoch, epoch=5), 18)
    answer = only(node.answers["token"].response)
    assert answer.error_code == ErrorCode.NONE
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (end or (-1, -1))
    assert isinstance(node.answers["token"], Reply if end else ReplyRecords)


def test_a_follower_with_records_of_a_lost_epoch_is_cut_back() -> None:
    """The leader served unflushed records and lost them in a crash: (epoch, offset) is never used twice."""
    node = LoneNode()
    node.flush()
    node.propose(b"served, never flushed")
    node.crash()
    node.restart()
    answer = only(node.answer_to(fetch(2, 1, epoch=2), 18))
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (1, 1)


# Snapshots instead of records.


def with_snapshots(start: int, *ids: tuple[int, int]) -> LoneNode:
    """Return a leader of epoch 5 whose log ends at 21."""
    epochs = {0: [(1, 0), (3, 10)], 12: [(3, 12)]}[start]
    return LoneNode(
        durable=DurableState(
            election=election(1, 4),
            log_start_offset=start,
            log_end_offset=20,
            epochs=EpochCache(epochs),
            snapshots=[SnapshotInfo(SnapshotId(*pair), 1000, 0) for pair in ids],
        )
    )


@pytest.mark.parametrize(
    ("start", "snapshots", "offset", "last_epoch", "served"),
    [
        (0, [(0, 0)], 0, 0, None),
        (0, [(0, 0), (12, 3)], 0, 0, (12, 3)),
        (0, [(0, 0), (12, 3)], 1, 1, None),
        (12, [(12, 3)], 0, 0, (12, 3)),
        (12, [(12, 3), (16, 3)], 11, 3, (16, 3)),
        (12, [(12, 3)], 12, 3, None),
        (12, [(12, 3)], 12, 2, (12, 3)),
        (12, [(12, 3)], 14, 1, (12, 3)),
        (12, [(12, 3)], 14, 3, None),
    ],
    ids=[
        "bootstrap is not a snapshot",
        "nothing yet",
        "begun before the snapshot",
        "nothing yet, trimmed log",
        "below the start",
        "at the start",
        "at the start with another epoch",
        "older epoch than all we know",
        "after the start",
    ],
)
def test_when_a_snapshot_is_needed(
    start: int,
    snapshots: list[tuple[int, int]],
    offset: int,
    last_epoch: int,
    served: tuple[int, int] | None,
) -> None:
    node = with_snapshots(start, *snapshots)
    node.ask(fetch(offset, last_epoch, epoch=5), 18)
    answer = only(node.answers["token"].response)
    assert (answer.snapshot_id.end_offset, answer.snapshot_id.epoch) == (served or (-1, -1))
    assert answer.log_start_offset == start
    assert isinstance(node.answers["token"], Reply if served else ReplyRecords)


def test_an_older_epoch_at_the_end_of_a_trimmed_epoch() -> None:
    """The log starts inside epoch 3; a follower that stopped at the snapshot's end agrees with us there."""
    node = with_snapshots(12, (12, 3))
    answer = only(node.answer_to(fetch(15, 4, epoch=5, max_wait_ms=0), 18))
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (3, 20)


def test_an_epoch_between_the_snapshot_and_the_first_that_the_log_knows() -> None:
    """The snapshot ends with epoch 3 and the log after it starts with 5: our log has no epoch 4."""
    node = LoneNode(
        durable=DurableState(
            election=election(-1, 4),
            log_start_offset=12,
            log_end_offset=12,
            snapshots=[SnapshotInfo(SnapshotId(12, 3), 1000, 0)],
        )
    )
    answer = only(node.answer_to(fetch(13, 4, epoch=5), 18))
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (3, 12)


# Waiting.


def test_nothing_new_waits_until_its_deadline(node: LoneNode) -> None:
    assert node.ask(fetch(3, 1, epoch=1, max_wait_ms=500), 18) == []
    assert node.core.next_deadline_ms() == node.now.monotonic_ms + 500
    assert node.pass_ms(499) == []
    (reply,) = node.pass_ms(1)
    assert isinstance(reply, Reply)
    assert (only(reply.response).error_code, only(reply.response).high_watermark) == (0, 3)


def test_observers_deadlines_are_kept_by_ticks(node: LoneNode) -> None:
    """As turns are: what else is late is not delayed by them."""
    node.ask(fetch(3, 1, epoch=1, max_wait_ms=500, replica=7), 18, token="early")
    node.ask(fetch(3, 1, epoch=1, max_wait_ms=900, replica=8), 18, token="late")
    node.now = type(node.now)(node.now.monotonic_ms + 600, node.now.wall_ms)
    node.step(RequestAbandoned("somebody else's"))
    node.ask(fetch(3, 1, epoch=1, max_wait_ms=900, replica=8), 18, token="latest")
    assert not node.answers
    node.pass_ms(0)
    assert set(node.answers) == {"early"}
    assert node.core.next_deadline_ms() == node.now.monotonic_ms + 300


def test_the_next_deadline_is_that_of_the_observer_that_waits_least(node: LoneNode) -> None:
    node.ask(fetch(3, 1, epoch=1, max_wait_ms=900, replica=7), 18, token="long")
    node.ask(fetch(3, 1, epoch=1, max_wait_ms=500, replica=8), 18, token="short")
    assert node.core.next_deadline_ms() == node.now.monotonic_ms + 500


def test_a_fetch_that_does_not_wait(node: LoneNode) -> None:
    (reply,) = node.ask(fetch(3, 1, epoch=1, max_wait_ms=0), 18)
    assert isinstance(reply, Reply)


def test_a_commit_answers_all_observers_that_wait_together(node: LoneNode) -> None:
    for replica in (7, 8):
        node.ask(fetch(3, 1, epoch=1, replica=replica), 18, token=replica)
    (append,) = node.propose(b"three")
    assert isinstance(append, AppendBatch)
    _, reply = node.flush()
    assert isinstance(reply, ReplyRecords)
    assert (reply.tokens, reply.offset, reply.end_offset) == ((7, 8), 3, 4)
    assert only(reply.response).high_watermark == 4
    assert node.core.next_deadline_ms() == 61_000


def test_an_append_is_no_news_for_an_observer_until_the_commit(node: LoneNode) -> None:
    node.propose(b"three")
    assert node.ask(fetch(3, 1, epoch=1), 18) == []
    _, reply = node.flush()
    assert isinstance(reply, ReplyRecords)


def test_only_observers_with_the_same_question_get_the_same_answer(node: LoneNode) -> None:
    requests = {
        "one": (fetch(3, 1, epoch=1, replica=7), 18, LISTENER),
        "same": (fetch(3, 1, epoch=1, replica=8), 18, LISTENER),
        "version": (fetch(3, 1, epoch=1, replica=9), 16, LISTENER),
        "listener": (fetch(3, 1, epoch=1, replica=10), 18, "ELSEWHERE"),
        "size": (fetch(3, 1, epoch=1, replica=11, max_bytes=5), 18, LISTENER),
    }
    for token, (request, version, listener) in requests.items():
        node.ask(request, version, token=token, listener=listener)
    assert set(node.answers) == {"version"}  # it was never told the high watermark
    del node.answers["version"]
    node.ask(requests["version"][0], 16, token="version")
    node.propose(b"three")
    node.flush()
    groups = {id(answer): answered_tokens(answer) for answer in node.answers.values()}
    assert sorted(groups.values()) == [("listener",), ("one", "same"), ("size",), ("version",)]


def test_commitment_answers_everybody_who_waits(node: LoneNode) -> None:
    node.propose(b"three")
    node.ask(fetch(4, 1, epoch=1, high_watermark=3), 18)
    advanced, reply = node.flush()
    assert advanced == HighWatermarkAdvanced(4)
    assert isinstance(reply, Reply)
    assert only(reply.response).high_watermark == 4


def test_an_observer_with_an_older_high_watermark_is_answered_at_once(node: LoneNode) -> None:
    """KIP-1166."""
    (reply,) = node.ask(fetch(3, 1, epoch=1, high_watermark=2), 18)
    assert isinstance(reply, Reply)
    assert only(reply.response).high_watermark == 3
    assert node.ask(fetch(3, 1, epoch=1, high_watermark=3), 18, token="knows") == []


def test_an_observer_that_can_t_say_is_told_each_high_watermark_once(node: LoneNode) -> None:
    """Before version 18 a Fetch doesn't carry the high watermark: the last answer counts."""
    (reply,) = node.ask(fetch(3, 1, epoch=1), 17, token="never told")
    assert isinstance(reply, Reply)
    assert only(reply.response).high_watermark == 3
    assert node.ask(fetch(3, 1, epoch=1), 17, token="told") == []
    node.propose(b"three")
    _, reply = node.flush()
    assert isinstance(reply, ReplyRecords)
    assert only(reply.response).high_watermark == 4
    assert node.ask(fetch(4, 1, epoch=1), 17, token="told again") == []


def test_an_observer_that_has_to_truncate_first_is_told_nothing(node: LoneNode) -> None:
    node.ask(fetch(3, 1, epoch=1), 17, token="first")
    node.propose(b"three")
    node.ask(fetch(2, 1, epoch=1), 17, token="uncommitted, too")
    node.flush()
    node.ask(fetch(9, 1, epoch=1), 17, token="diverged")
    assert only(node.answers["diverged"].response).diverging_epoch.end_offset == 4
    (reply,) = node.ask(fetch(4, 1, epoch=1), 17, token="right")
    assert isinstance(reply, Reply)
    assert only(reply.response).high_watermark == 4


def test_an_observer_that_was_told_before_a_commit_is_told_it_at_once(node: LoneNode) -> None:
    """It has the record from an answer before the commit, which came while its next Fetch was on its way."""
    node.ask(fetch(3, 1, epoch=1), 17, token="first")
    node.propose(b"three")
    node.ask(fetch(2, 1, epoch=1), 17, token="uncommitted, too")
    assert only(node.answers["uncommitted, too"].response).high_watermark == 3
    node.flush()
    (reply,) = node.ask(fetch(4, 1, epoch=1), 17, token="next")
    assert isinstance(reply, Reply)
    assert only(reply.response).high_watermark == 4


def test_a_replica_without_an_id_that_has_everything_waits(node: LoneNode) -> None:
    """Nobody knows what it was told: to answer it at once would be to answer it again and again."""
    assert node.ask(fetch(3, 1, epoch=1, replica=-1), 17) == []


def test_an_unknown_high_watermark_is_no_news() -> None:
    node = LoneNode()
    assert node.ask(fetch(1, 1, epoch=1, high_watermark=-1), 18) == []


def test_an_abandoned_fetch_is_forgotten(node: LoneNode) -> None:
    node.ask(fetch(3, 1, epoch=1), 18)
    node.step(RequestAbandoned("token"))
    assert of_type(node.propose(), ReplyRecords) == []
    assert node.core.next_deadline_ms() == 61_000


def test_a_token_may_be_used_again(node: LoneNode) -> None:
    node.ask(fetch(3, 1, epoch=1, max_wait_ms=100), 18)
    node.step(RequestAbandoned("token"))
    node.ask(fetch(3, 1, epoch=1, max_wait_ms=500), 18)
    assert node.pass_ms(100) == []
    assert len(node.pass_ms(400)) == 1


def test_parked_fetches_are_answered_when_the_leader_resigns(node: LoneNode) -> None:
    node.ask(fetch(3, 1, epoch=1), 18)
    node.step(ShutDown())
    answer = only(node.answers["token"].response)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader == LeaderIdAndEpoch(leader_id=1, leader_epoch=1)


def test_a_leader_that_shuts_down_still_serves_its_records(node: LoneNode) -> None:
    node.propose()
    node.step(ShutDown())
    node.ask(fetch(1, 1, epoch=1), 18)
    assert isinstance(node.answers["token"], ReplyRecords)
