"""StateDigest: when a node begins to make the digest of its state, of what, and when it answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kraft_wire.controller.apis import CONTROLLER_APIS, EXPORTER_APIS, OBSERVER_APIS, OUR_CONTROLLER_APIS
from kraft_wire.controller.decision.context import Result
from kraft_wire.controller.node.digests import MOST_AHEAD, PAUSE_FACTOR, WAIT_MS
from kraft_wire.controller.node.effects import MakeDigest
from kraft_wire.controller.node.events import CommittedBatches, DigestFailed, DigestMade, StateLoaded
from kraft_wire.log.batch import Batch, encode_batch, split_batches
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.digest import FORMULA, digest_of
from kraft_wire.metadata.features.supported import bootstrap_records
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.no_op_record import NoOpRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.own_messages.state_digest_request import StateDigestRequest
from kraft_wire.protocol.own_messages.state_digest_response import StateDigestResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import InstallSnapshot
from kraft_wire.raft.events import CanLead, RequestAbandoned, SnapshotVerified, Tick
from tests.controller.controller_harness import CLUSTER_ID
from tests.controller.lone_controller import LoneController
from tests.controller.node.node_requests import controller_with_broker, create_topic, lose_leadership

MADE = DigestMade(b"d" * 32, 7)
UNKNOWN_TYPE = b"\x01\x63\x00\x00"


def ask(controller: LoneController, ahead: int, token: str = "digest", cluster_id: str | None = None) -> None:
    offset = controller.disk.end_offset + ahead
    controller.ask(token, StateDigestRequest(cluster_id or CLUSTER_ID, offset), 0)


def begun(controller: LoneController) -> list[MakeDigest]:
    return [effect for effect in controller.effects if isinstance(effect, MakeDigest)]


def error_of(controller: LoneController, token: str = "digest") -> ErrorCode:
    return ErrorCode.of(controller.answer(token, StateDigestResponse).error_code)


def topic(name: str) -> bytes:
    return encode_metadata_record(TopicRecord(name, Uuid(name.encode().ljust(16))), 0)


def standby() -> LoneController:
    """Return a node that is not active any more, and has applied its log."""
    controller = controller_with_broker()
    controller.step(CanLead(False))
    lose_leadership(controller)
    assert not controller.node.is_active
    return controller


def follow(controller: LoneController, *batches: Sequence[bytes]) -> list[Batch]:
    """Give a standby committed batches of these records, all in one step."""
    assert controller.disk.election is not None
    read = []
    for values in batches:
        data = encode_batch(controller.disk.end_offset, controller.disk.election.leader_epoch, 0, values)
        ((batch,), _) = split_batches(data)
        controller.disk.batches.append(batch)
        read.append(batch)
    controller.step(CommittedBatches(read, read[-1].header.next_offset))
    return read


# The active controller.


def test_the_active_controller_begins_at_the_batch_and_answers_after_its_commit() -> None:
    controller = controller_with_broker()
    ask(controller, 1)
    assert begun(controller) == []
    controller.ask("topic", create_topic("a"), 7)
    end_offset = controller.disk.end_offset
    (wanted,) = begun(controller)
    assert wanted.end_offset == end_offset == wanted.metadata.last_applied_offset + 1
    controller.step(MADE)
    assert "digest" not in controller.replies
    controller.flush()
    assert controller.answer("topic", CreateTopicsResponse).topics[0].error_code == ErrorCode.NONE
    answer = controller.answer("digest", StateDigestResponse)
    assert answer == StateDigestResponse(
        node_id=controller.state.node_id,
        end_offset=end_offset,
        formula=FORMULA,
        digest=MADE.digest,
        record_count=7,
    )


def test_a_digest_that_is_made_after_the_commit_is_answered_at_once() -> None:
    controller = controller_with_broker()
    ask(controller, 1)
    controller.ask("topic", create_topic("a"), 7)
    controller.flush()
    assert "digest" not in controller.replies
    controller.step(MADE)
    assert error_of(controller) is ErrorCode.NONE


def test_an_offset_within_a_batch_stands_for_its_end() -> None:
    controller = controller_with_broker()
    start = controller.disk.end_offset
    ask(controller, 2)
    controller.ask("topic", create_topic("a"), 7)  # a topic and a partition
    assert controller.disk.end_offset > start + 1
    (wanted,) = begun(controller)
    assert wanted.end_offset == controller.disk.end_offset


def test_of_several_batches_of_one_step_the_first_that_reaches_the_offset_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever makes the digest undoes the others: nothing of them is committed."""
    controller = controller_with_broker()
    start = controller.disk.end_offset
    ask(controller, 1)
    many = Result(CreateTopicsResponse(), [(NoOpRecord(), 0)] * 25_000, atomic=False)
    with monkeypatch.context() as context:
        context.setattr("kraft_wire.controller.decision.api_table.Api.handler", lambda api: lambda *_: many)
        controller.ask("many", create_topic("a"), 7)
    ends = [batch.header.next_offset for batch in controller.disk.batches]
    (wanted,) = begun(controller)
    assert wanted.end_offset == min(end for end in ends if end > start)
    assert wanted.end_offset < controller.disk.end_offset
    wanted.metadata.undo_to(wanted.end_offset)
    assert wanted.metadata.last_applied_offset == wanted.end_offset - 1


def test_a_log_that_does_not_grow_has_a_digest_at_its_end() -> None:
    controller = controller_with_broker()
    ask(controller, 0)
    (wanted,) = begun(controller)
    assert wanted.end_offset == controller.disk.end_offset == wanted.metadata.last_applied_offset + 1
    controller.step(MADE)
    answer = controller.answer("digest", StateDigestResponse)
    assert answer.end_offset == wanted.end_offset


def test_there_is_no_state_before_the_first_record() -> None:
    controller = controller_with_broker()
    ask(controller, -controller.disk.end_offset)
    assert error_of(controller) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("ahead", [-1, -3])
def test_an_offset_that_was_reached_before_is_refused(ahead: int) -> None:
    controller = controller_with_broker()
    ask(controller, ahead)
    assert error_of(controller) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert begun(controller) == []


def test_without_the_commit_there_is_no_digest() -> None:
    controller = controller_with_broker()
    ask(controller, 1)
    controller.ask("topic", create_topic("a"), 7)
    controller.step(MADE)
    lose_leadership(controller)
    assert error_of(controller) is ErrorCode.LEADER_NOT_AVAILABLE
    ask(controller, 1, "next")
    assert "next" not in controller.replies, "it waits"


def test_a_digest_of_what_was_never_committed_is_dropped_when_it_is_made() -> None:
    controller = controller_with_broker()
    ask(controller, 1)
    controller.ask("topic", create_topic("a"), 7)
    lose_leadership(controller)
    assert error_of(controller) is ErrorCode.LEADER_NOT_AVAILABLE
    ask(controller, 1, "meanwhile")
    assert error_of(controller, "meanwhile") is ErrorCode.THROTTLING_QUOTA_EXCEEDED, "a child is at work"
    controller.step(MADE)
    ask(controller, 1, "next")
    assert "next" not in controller.replies, "it waits"


def test_a_committed_digest_is_answered_after_the_leadership_is_lost() -> None:
    controller = controller_with_broker()
    ask(controller, 1)
    controller.ask("topic", create_topic("a"), 7)
    controller.flush()
    lose_leadership(controller)
    controller.step(MADE)
    assert error_of(controller) is ErrorCode.NONE


# Standbys.


def test_a_standby_applies_nothing_after_the_batch_in_that_step() -> None:
    controller = standby()
    ask(controller, 2)
    _, second, third = follow(controller, [topic("a")], [topic("b"), topic("c")], [topic("d")])
    (wanted,) = begun(controller)
    assert wanted.end_offset == second.header.next_offset
    assert wanted.metadata.last_applied_offset == second.header.last_offset
    assert controller.node.next_deadline_ms() == controller.now_ms, "it goes on as soon as possible"
    controller.step(MADE)
    assert controller.state.metadata.last_applied_offset == third.header.last_offset
    answer = controller.answer("digest", StateDigestResponse)
    assert answer.end_offset == second.header.next_offset


def test_what_comes_after_the_pause_is_applied_in_order() -> None:
    controller = standby()
    ask(controller, 1)
    follow(controller, [topic("a")], [topic("b")])
    (last,) = follow(controller, [topic("c")])
    assert controller.state.metadata.last_applied_offset == last.header.last_offset
    assert len(begun(controller)) == 1


def test_both_kinds_of_nodes_begin_with_the_same_state() -> None:
    leader, follower = controller_with_broker(), standby()
    ask(leader, 1)
    ask(follower, 1)
    before = leader.disk.end_offset
    assert before == follower.disk.end_offset
    leader.ask("topic", create_topic("a"), 7)
    batch = leader.disk.batches[-1]
    follower.disk.batches.append(batch)
    follower.step(CommittedBatches([batch], batch.header.next_offset))
    (of_leader,), (of_follower,) = begun(leader), begun(follower)
    assert of_leader.end_offset == of_follower.end_offset
    assert digest_of(of_leader.metadata) == digest_of(of_follower.metadata)


def test_a_snapshot_past_the_offset_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = standby()
    ask(controller, 1)
    snapshot_id = SnapshotId(controller.disk.end_offset + 50, 9)
    with monkeypatch.context() as context:
        context.setattr(controller.node.core, "step", lambda event, now: [InstallSnapshot(snapshot_id)])
        controller.step(SnapshotVerified(snapshot_id, 1000, 0, ()))
    assert "digest" not in controller.replies
    records = [record for record, _ in bootstrap_records()]
    controller.step(StateLoaded(snapshot_id, MetadataState.from_snapshot(records, 9)))
    assert error_of(controller) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_node_whose_replay_is_stopped_says_so() -> None:
    controller = standby()
    ask(controller, 2)
    follow(controller, [UNKNOWN_TYPE])
    assert error_of(controller) is ErrorCode.UNSUPPORTED_VERSION
    assert begun(controller) == []


# What is refused, and how a wait ends.


def test_nodes_of_other_clusters_get_no_digest() -> None:
    controller = controller_with_broker()
    ask(controller, 1, cluster_id="another")
    assert error_of(controller) is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_an_offset_that_no_log_reaches_in_time_is_refused() -> None:
    controller = controller_with_broker()
    ask(controller, MOST_AHEAD + 1)
    assert error_of(controller) is ErrorCode.INVALID_REQUEST
    ask(controller, MOST_AHEAD, "next")
    assert "next" not in controller.replies, "it waits"


def test_who_asks_for_the_last_offset_again_gets_the_same_digest() -> None:
    controller = standby()
    start = controller.disk.end_offset
    ask(controller, 1)
    (batch,) = follow(controller, [topic("a"), topic("b")])
    controller.step(MADE)
    for offset in range(start + 1, batch.header.next_offset + 1):
        controller.ask(f"at {offset}", StateDigestRequest(CLUSTER_ID, offset), 0)
        assert controller.answer(f"at {offset}", StateDigestResponse).digest == MADE.digest
    assert len(begun(controller)) == 1
    controller.ask("before", StateDigestRequest(CLUSTER_ID, start), 0)
    assert error_of(controller, "before") is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_node_pauses_after_a_digest() -> None:
    controller = standby()
    ask(controller, 1)
    follow(controller, [topic("a")])
    controller.now_ms += 50
    controller.step(MADE)
    ask(controller, 1, "soon")
    assert error_of(controller, "soon") is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    controller.now_ms += 50 * PAUSE_FACTOR
    ask(controller, 1, "later")
    assert "later" not in controller.replies, "it waits"


def test_a_refusal_says_where_the_log_ends() -> None:
    controller = controller_with_broker()
    ask(controller, -1)
    answer = controller.answer("digest", StateDigestResponse)
    assert (answer.node_id, answer.end_offset) == (controller.state.node_id, controller.disk.end_offset)


def test_there_is_one_request_at_a_time() -> None:
    controller = controller_with_broker()
    ask(controller, 1)
    ask(controller, 1, "second")
    assert error_of(controller, "second") is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    controller.ask("topic", create_topic("a"), 7)
    ask(controller, 1, "third")
    assert error_of(controller, "third") is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    controller.flush()
    controller.step(MADE)
    assert error_of(controller) is ErrorCode.NONE
    ask(controller, 1, "fourth")
    assert "fourth" not in controller.replies, "it waits"


def test_a_wait_ends_after_a_while() -> None:
    controller = standby()
    ask(controller, 1)
    asked_ms = controller.now_ms
    controller.now_ms += WAIT_MS - 1
    controller.step(DigestProbe)
    assert "digest" not in controller.replies
    controller.now_ms = asked_ms + WAIT_MS
    controller.step(DigestProbe)
    assert error_of(controller) is ErrorCode.REQUEST_TIMED_OUT


DigestProbe = RequestAbandoned("nobody")
"""An event that changes nothing: a Tick would make the lone voter a leader."""


def test_a_failed_digest_is_told_with_its_reason() -> None:
    controller = controller_with_broker()
    ask(controller, 1)
    controller.ask("topic", create_topic("a"), 7)
    controller.step(DigestFailed("its process was killed"))
    answer = controller.answer("digest", StateDigestResponse)
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        "its process was killed",
    )


def test_a_client_that_has_gone_makes_room_for_another() -> None:
    controller = controller_with_broker()
    ask(controller, 1)
    controller.step(RequestAbandoned("digest"))
    ask(controller, 1, "second")
    controller.ask("topic", create_topic("a"), 7)
    assert len(begun(controller)) == 1
    controller.step(RequestAbandoned("second"))
    controller.step(MADE)
    controller.flush()
    assert {"digest", "second"} & controller.replies.keys() == set()
    ask(controller, 1, "third")
    assert "third" not in controller.replies, "it waits"


def test_the_wait_is_a_deadline_of_the_node() -> None:
    controller = controller_with_broker()
    controller.live(20_000)
    ask(controller, MOST_AHEAD)
    controller.live(WAIT_MS + 1)
    assert error_of(controller) is ErrorCode.REQUEST_TIMED_OUT
    controller.step(Tick())


def test_all_our_nodes_serve_it_and_kafka_has_no_such_api() -> None:
    key = StateDigestRequest.API_KEY
    assert CONTROLLER_APIS.find(key) is None
    assert all(table.find(key) for table in (OUR_CONTROLLER_APIS, EXPORTER_APIS, OBSERVER_APIS))
