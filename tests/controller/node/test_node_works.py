"""Works take several steps, and everybody else is served in between."""

from __future__ import annotations

from itertools import count

import msgspec
import pytest

from kraft_wire.controller.brokers import leaving, unregister_broker
from kraft_wire.controller.decision.context import Result
from kraft_wire.controller.decision.work import SliceLimits, WorkKey, WorkKind
from kraft_wire.controller.forwarding import envelope
from kraft_wire.controller.node import decisions
from kraft_wire.controller.node.effects import HandlerFailed, RecordsAppended, TaskFailed, WorkFailed
from kraft_wire.controller.node.known_waits import KnownWaits
from kraft_wire.controller.node.speculative_writes import Released
from kraft_wire.controller.topics import create_topics
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.fence_broker_record import FenceBrokerRecord
from kraft_wire.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kraft_wire.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.events import RequestAbandoned
from kraft_wire.security.principal import Principal
from kraft_wire.wire.headers import encode_request
from tests.controller.controller_harness import directory
from tests.controller.lone_controller import LoneController, active_controller
from tests.controller.node.node_requests import create_topic, lose_leadership, register_broker

BROKERS = (1, 2, 3)
PARTITIONS = 60
ALL_APPLIED = 2**40
_numbers = count()


@pytest.fixture
def controller() -> LoneController:
    """Brokers 1 to 3 and a topic with a replica of each partition on each broker."""
    made = active_controller()
    made.state.slice_limits = SliceLimits(window_rows=7, few_changes=0)
    for broker_id in BROKERS:
        made.ask(("register", broker_id), register_broker(broker_id), 4)
        made.flush()
        beat(made, broker_id)
    topic = CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=len(BROKERS))
    made.ask("create", CreateTopicsRequest(topics=[topic]), 7)
    made.flush()
    return made


def beat(controller: LoneController, broker_id: int, *, stop: bool = False) -> BrokerHeartbeatResponse:
    epoch = controller.answer(("register", broker_id), BrokerRegistrationResponse).broker_epoch
    request = BrokerHeartbeatRequest(
        broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=ALL_APPLIED, want_shut_down=stop
    )
    token = "beat", next(_numbers)
    controller.ask(token, request, 1)
    controller.flush()
    return controller.answer(token, BrokerHeartbeatResponse)


def with_broker(controller: LoneController, broker_id: int) -> int:
    """The number of partitions whose ISR has the broker."""
    return len(controller.state.metadata.partitions.with_isr_member(broker_id))


def is_fenced(controller: LoneController, broker_id: int) -> bool:
    return controller.state.metadata.brokers[broker_id].fenced


def pieces(controller: LoneController) -> list[int]:
    """Let the controller work to the end; return the number of records of each batch."""
    before = len(controller.effects)
    while controller.state.in_work:
        controller.tick()
        controller.flush()
    return [len(each.records) for each in controller.effects[before:] if isinstance(each, RecordsAppended)]


def test_a_controlled_shutdown_goes_on_while_others_are_served(controller: LoneController) -> None:
    assert not beat(controller, 1, stop=True).should_shut_down
    assert controller.state.in_work == {WorkKey(WorkKind.SHUT_DOWN, 1): 1}
    assert 0 < with_broker(controller, 1) < PARTITIONS
    assert not beat(controller, 2).is_fenced
    controller.ask("more", create_topic("more"), 7)
    controller.flush()
    assert controller.answer("more", CreateTopicsResponse).topics[0].error_code == 0
    assert not beat(controller, 1, stop=True).should_shut_down, "it is still in ISRs"
    assert len(pieces(controller)) > 3 and with_broker(controller, 1) == 0
    answer = beat(controller, 1, stop=True)
    assert answer.should_shut_down and answer.is_fenced


def test_a_silent_broker_counts_as_fenced_at_once_and_is_fenced_last(controller: LoneController) -> None:
    for _ in range(30):
        controller.now_ms += 500
        beat(controller, 2)
        beat(controller, 3)
        controller.tick()
        if controller.state.in_work:
            break
    assert controller.state.in_work == {WorkKey(WorkKind.FENCE, 1): 1}
    assert not is_fenced(controller, 1) and with_broker(controller, 1)
    assert beat(controller, 1).is_fenced
    controller.ask("new", CreateTopicsRequest(topics=[CreatableTopic("new", 6, 3)]), 7)
    controller.flush()
    pieces(controller)
    assert is_fenced(controller, 1) and with_broker(controller, 1) == 0
    assert not beat(controller, 1).is_fenced, "it comes back with its next heartbeat"


def test_the_answer_comes_with_the_last_piece(controller: LoneController) -> None:
    controller.ask("unregister", UnregisterBrokerRequest(broker_id=3), 0)
    controller.flush()
    assert "unregister" not in controller.replies and 3 in controller.state.metadata.brokers
    pieces(controller)
    assert controller.answer("unregister", UnregisterBrokerResponse).error_code == 0
    assert 3 not in controller.state.metadata.brokers and with_broker(controller, 3) == 0


def test_a_registration_that_is_sent_again_meanwhile_gets_the_same_epoch(controller: LoneController) -> None:
    """The client gave up waiting, and the broker asks again. Both requests are of one incarnation."""
    controller.now_ms += 20_000
    again = register_broker(1)
    again.incarnation_id = directory(1, 6)
    for token in ("first", "second"):
        controller.ask(token, again, 4)
        controller.flush()
    assert controller.state.in_work == {WorkKey(WorkKind.REGISTER, 1): 2}
    pieces(controller)
    answers = [controller.answer(token, BrokerRegistrationResponse) for token in ("first", "second")]
    assert [answer.error_code for answer in answers] == [ErrorCode.NONE] * 2
    epoch = controller.state.metadata.brokers[1].epoch
    assert [answer.broker_epoch for answer in answers] == [epoch] * 2


def test_works_take_turns(controller: LoneController) -> None:
    for broker_id in (1, 2):
        beat(controller, broker_id, stop=True)
    first, second = with_broker(controller, 1), with_broker(controller, 2)
    for _ in range(4):
        controller.tick()
        controller.flush()
    assert 0 < with_broker(controller, 1) < first and 0 < with_broker(controller, 2) < second


def test_a_work_waits_for_the_commit_of_what_it_wrote(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MOST_UNCOMMITTED_RECORDS", 5)
    beat(controller, 1, stop=True)
    controller.tick()
    left = with_broker(controller, 1)
    deadline_ms = controller.node.next_deadline_ms()
    assert deadline_ms is None or deadline_ms > controller.now_ms
    controller.tick()
    assert with_broker(controller, 1) == left
    controller.flush()
    controller.tick()
    assert with_broker(controller, 1) < left


def test_clients_writes_that_are_not_committed_hold_no_work_up(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MOST_UNCOMMITTED_RECORDS", 50)
    beat(controller, 1, stop=True)
    ask_for_topic(controller, "bulk", partitions=100)
    left = with_broker(controller, 1)
    controller.tick()
    assert with_broker(controller, 1) < left


def ask_for_topic(controller: LoneController, name: str, partitions: int = 1) -> None:
    controller.ask(name, CreateTopicsRequest(topics=[CreatableTopic(name, partitions, 1)]), 7)


def has_topic(controller: LoneController, name: str) -> bool:
    return controller.state.metadata.topics.by_name(name) is not None


def test_clients_writes_wait_while_too_much_of_theirs_is_not_committed(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the leadership were lost, all of that would be undone in one step."""
    monkeypatch.setattr(decisions, "MOST_UNCOMMITTED_RECORDS", 50)
    ask_for_topic(controller, "large", partitions=100)
    for name in ("a", "b"):
        ask_for_topic(controller, name)
    controller.tick()
    assert has_topic(controller, "large") and not has_topic(controller, "a")
    controller.flush()
    ask_for_topic(controller, "c")
    assert not has_topic(controller, "c"), "those that waited come first"
    for name in ("a", "b", "c"):
        controller.tick()
        assert has_topic(controller, name)
    controller.flush()
    assert [controller.answer(name, CreateTopicsResponse).topics[0].error_code for name in "abc"] == [0] * 3
    ask_for_topic(controller, "d")
    assert has_topic(controller, "d")


def test_single_records_count_more_than_those_in_columns(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take longer to undo."""
    monkeypatch.setattr(decisions, "MOST_UNCOMMITTED_RECORDS", 110)
    ask_for_topic(controller, "in-columns", partitions=100)
    for name in ("a", "b"):
        ask_for_topic(controller, name)
    assert has_topic(controller, "a") and not has_topic(controller, "b")


def test_requests_of_brokers_do_not_wait_for_what_clients_wrote(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MOST_UNCOMMITTED_RECORDS", 50)
    ask_for_topic(controller, "large", partitions=100)
    end = controller.node.core.log_end_offset
    controller.ask("new broker", register_broker(9), 4)
    assert controller.node.core.log_end_offset > end


def test_a_write_that_waits_is_refused_when_the_leadership_is_lost(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MOST_UNCOMMITTED_RECORDS", 50)
    for name in ("large", "waits"):
        ask_for_topic(controller, name, partitions=100)
    lose_leadership(controller)
    for name in ("large", "waits"):
        (topic,) = controller.answer(name, CreateTopicsResponse).topics
        assert topic.error_code == ErrorCode.NOT_CONTROLLER
        assert not has_topic(controller, name)


def test_a_write_that_waits_is_not_begun_for_a_client_that_has_gone(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MOST_UNCOMMITTED_RECORDS", 50)
    for name in ("large", "gone", "here"):
        ask_for_topic(controller, name, partitions=100)
    controller.step(RequestAbandoned("gone"))
    controller.flush()
    for _ in range(3):
        controller.tick()
    assert has_topic(controller, "here") and not has_topic(controller, "gone")


def ask_for_ten_topics(controller: LoneController, name: str) -> None:
    """Ask for so many topics that they take several steps, a trial first."""
    topics = [CreatableTopic(f"{name}-{number}", 1, 1) for number in range(10)]
    controller.ask(name, CreateTopicsRequest(topics=topics), 7)


@pytest.fixture
def two_topics_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(create_topics, "TOPICS_PER_PIECE", 2)


@pytest.mark.usefixtures("two_topics_a_piece")
def test_however_many_clients_have_works_a_broker_waits_for_few(controller: LoneController) -> None:
    for number in range(12):
        ask_for_ten_topics(controller, f"client-{number}")
    beat(controller, 1, stop=True)
    steps = 0
    while WorkKey(WorkKind.SHUT_DOWN, 1) in controller.state.in_work:
        controller.tick()
        controller.flush()
        steps += 1
    assert steps <= 15, "three of four steps are its own: alone it takes nine"
    assert controller.state.in_work == {WorkKey(WorkKind.CREATE_TOPICS): 12}


@pytest.mark.usefixtures("two_topics_a_piece")
def test_nothing_is_done_for_a_client_that_has_gone(controller: LoneController) -> None:
    ask_for_ten_topics(controller, "gone")
    ask_for_ten_topics(controller, "here")
    create = WorkKey(WorkKind.CREATE_TOPICS)
    assert controller.state.in_work == {create: 2}
    controller.step(RequestAbandoned("gone"))
    assert controller.state.in_work == {create: 1}
    pieces(controller)
    assert controller.answer("here", CreateTopicsResponse).topics[9].error_code == 0
    topics = controller.state.metadata.topics
    assert topics.by_name("gone-0") is None and topics.by_name("here-9") is not None


@pytest.mark.usefixtures("two_topics_a_piece")
def test_nothing_is_done_for_an_envelope_whose_broker_has_gone(
    controller: LoneController,
) -> None:
    topics = [CreatableTopic(f"t-{number}", 1, 1) for number in range(10)]
    inner = encode_request(CreateTopicsRequest.API_KEY, 7, 1, "client", CreateTopicsRequest(topics=topics))
    principal = envelope.encode_principal(Principal())
    request = EnvelopeRequest(request_data=inner, request_principal=principal, client_host_address=bytes(4))
    controller.ask("envelope", request, 0)
    assert controller.state.in_work == {WorkKey(WorkKind.CREATE_TOPICS): 1}
    controller.step(RequestAbandoned("envelope"))
    assert not controller.state.in_work


@pytest.mark.usefixtures("two_topics_a_piece")
def test_what_is_written_in_part_is_completed_though_the_client_has_gone(controller: LoneController) -> None:
    ask_for_ten_topics(controller, "gone")
    topics = controller.state.metadata.topics
    while topics.by_name("gone-0") is None:
        controller.tick()
    assert topics.by_name("gone-9") is None
    controller.step(RequestAbandoned("gone"))
    pieces(controller)
    assert topics.by_name("gone-9") is not None


def test_a_lost_leadership_names_few_items_of_each_request(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that wait are refused in one step, and one error is enough for a client to try the next node."""
    monkeypatch.setattr(decisions, "MOST_ITEMS_TO_REFUSE", 3)
    monkeypatch.setattr(create_topics, "TOPICS_PER_PIECE", 2)
    ask_for_ten_topics(controller, "many")
    lose_leadership(controller)
    topics = controller.answer("many", CreateTopicsResponse).topics
    assert [topic.error_code for topic in topics] == [ErrorCode.NOT_CONTROLLER] * 3


def test_a_lost_leadership_ends_works_and_refuses_their_requests(controller: LoneController) -> None:
    controller.ask("unregister", UnregisterBrokerRequest(broker_id=3), 0)
    lose_leadership(controller)
    assert controller.answer("unregister", UnregisterBrokerResponse).error_code == ErrorCode.NOT_CONTROLLER
    assert not controller.state.in_work and with_broker(controller, 3) == PARTITIONS


def test_a_leader_that_stops_leaves_the_rest_to_its_successor(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leads until the others know, but may append nothing any more."""
    beat(controller, 1, stop=True)
    left = with_broker(controller, 1)
    monkeypatch.setattr(RaftCore, "accepts_proposals", property(lambda core: False))
    controller.tick()
    assert with_broker(controller, 1) == left > 0
    assert controller.node.next_deadline_ms() != controller.now_ms


def test_records_that_contradict_the_metadata_fail_their_request_alone(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could replay them: they must not get into the log."""
    end_offset = controller.node.core.log_end_offset
    brokers = dict(controller.state.metadata.brokers)

    def contradict(*given: object) -> Result:
        records = [(FenceBrokerRecord(1, brokers[1].epoch), 0), (FenceBrokerRecord(1, -7), 0)]
        return Result(UnregisterBrokerResponse(), records)

    monkeypatch.setattr(unregister_broker, "handle", contradict)
    controller.ask("unregister", UnregisterBrokerRequest(broker_id=3), 0)
    answer = controller.answer("unregister", UnregisterBrokerResponse)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert any(isinstance(each, HandlerFailed) for each in controller.effects)
    assert controller.node.core.log_end_offset == end_offset
    assert controller.state.metadata.brokers == brokers
    monkeypatch.undo()
    beat(controller, 1)


def test_a_task_that_fails_is_tried_again(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []

    def fail(*given: object) -> None:
        runs.append(given)
        raise ZeroDivisionError

    schedule = controller.node._decisions._schedule
    for name, task in schedule._tasks.items():
        schedule._tasks[name] = msgspec.structs.replace(task, run=fail)
    for _ in range(3):
        controller.tick(1000)
    assert len(runs) >= 3
    assert all(failed.task for failed in controller.effects if isinstance(failed, TaskFailed))
    assert any(isinstance(each, TaskFailed) for each in controller.effects)


def test_a_work_that_fails_ends_alone(controller: LoneController, monkeypatch: pytest.MonkeyPatch) -> None:
    controller.ask("unregister", UnregisterBrokerRequest(broker_id=3), 0)
    controller.flush()

    def fail(*given: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(leaving.BrokerLeaving, "decide", fail)
    controller.tick()
    (failure,) = [each for each in controller.effects if isinstance(each, WorkFailed)]
    assert failure.key == WorkKey(WorkKind.UNREGISTER, 3)
    answer = controller.answer("unregister", UnregisterBrokerResponse)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR and not controller.state.in_work


def ask_for_many_topics(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch, *, validate_only: bool = False
) -> None:
    """Let a client ask for three topics, which are created one in each step, after a trial."""
    monkeypatch.setattr(create_topics, "TOPICS_PER_PIECE", 1)
    topics = [CreatableTopic(f"many-{number}", 1, 1) for number in range(3)]
    controller.ask("many", CreateTopicsRequest(topics=topics, validate_only=validate_only), 7)


def many_topics(controller: LoneController) -> int:
    return sum(topic.name.startswith("many-") for topic in controller.state.metadata.topics)


def test_many_topics_are_created_in_pieces_after_a_trial(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_for_many_topics(controller, monkeypatch)
    created = []
    while controller.state.in_work:
        created.append(many_topics(controller))
        controller.tick()
    controller.flush()
    assert created == [0, 0, 0, 1, 2]
    assert [each.error_code for each in controller.answer("many", CreateTopicsResponse).topics] == [0] * 3
    assert many_topics(controller) == 3


def test_a_lost_leadership_takes_back_the_pieces_that_are_not_committed(
    controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_for_many_topics(controller, monkeypatch)
    while not many_topics(controller):
        controller.tick()
    lose_leadership(controller)
    answers = controller.answer("many", CreateTopicsResponse).topics
    assert {each.error_code for each in answers} == {ErrorCode.NOT_CONTROLLER}
    assert not controller.state.in_work and many_topics(controller) == 0


@pytest.mark.parametrize("validate_only", [False, True])
def test_only_an_answer_of_a_work_that_wrote_waits_until_brokers_know(
    validate_only: bool, controller: LoneController, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def must_hold(self: KnownWaits, released: Released) -> bool:
        asked.append(released.changes)
        return False

    monkeypatch.setattr(KnownWaits, "must_hold", must_hold)
    ask_for_many_topics(controller, monkeypatch, validate_only=validate_only)
    pieces(controller)
    controller.flush()
    assert asked[-1] is not validate_only
    assert many_topics(controller) == (0 if validate_only else 3)
