"""BrokerHeartbeat: the state machine of Kafka's BrokerHeartbeatManager, and its records."""

from __future__ import annotations

import pytest

from kraft_wire.controller.brokers import broker_heartbeat
from kraft_wire.metadata.partitions.partition import NO_LEADER, Partition
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.protocol.uuid import Uuid
from tests.controller.controller_harness import SESSION_TIMEOUT_MS, Harness, directory, failure


def status(response: BrokerHeartbeatResponse) -> tuple[bool, bool, bool]:
    """Return (caught up, fenced, should shut down)."""
    assert response.error_code == 0
    return response.is_caught_up, response.is_fenced, response.should_shut_down


def partition(harness: Harness, topic: Uuid, index: int = 0) -> Partition:
    found = harness.metadata.partitions.get(topic, index)
    assert found is not None
    return found


def written(harness: Harness, request: BrokerHeartbeatRequest) -> list[tuple[str, int]]:
    """Apply the decision on a heartbeat. Returns the names and versions of its records."""
    result = harness.decide(broker_heartbeat, request, 2)
    harness.apply(result)
    return [(record.NAME, version) for record, version in result.records]


FENCED_BROKER_ASKS = [
    # want_fence, want_shut_down, caught up -> fenced, should shut down
    pytest.param(True, False, True, True, False, id="stay fenced"),
    pytest.param(False, False, False, True, False, id="unfence, not caught up"),
    pytest.param(False, False, True, False, False, id="unfence"),
    pytest.param(False, True, True, True, True, id="shut down"),
    pytest.param(True, True, False, True, True, id="shut down, fenced, not caught up"),
]


@pytest.mark.parametrize(
    ("want_fence", "want_shut_down", "caught_up", "fenced", "shut_down"), FENCED_BROKER_ASKS
)
def test_what_a_fenced_broker_gets(
    want_fence: bool, want_shut_down: bool, caught_up: bool, fenced: bool, shut_down: bool
) -> None:
    harness = Harness()
    epoch = harness.register(0)
    offset = epoch if caught_up else epoch - 1
    response = harness.heartbeat(0, want_fence=want_fence, want_shut_down=want_shut_down, offset=offset)
    assert status(response) == (caught_up, fenced, shut_down)
    assert harness.metadata.brokers[0].fenced is fenced


UNFENCED_BROKER_ASKS = [
    # want_fence, want_shut_down, leads -> fenced, should shut down
    pytest.param(False, False, True, False, False, id="nothing"),
    pytest.param(True, False, True, True, False, id="fence"),
    pytest.param(True, True, True, True, True, id="fence and shut down, leading"),
    pytest.param(False, True, False, True, True, id="shut down, leading nothing"),
    pytest.param(False, True, True, False, False, id="shut down, leading"),
]


@pytest.mark.parametrize(
    ("want_fence", "want_shut_down", "leads", "fenced", "shut_down"), UNFENCED_BROKER_ASKS
)
def test_what_an_unfenced_broker_gets(
    want_fence: bool, want_shut_down: bool, leads: bool, fenced: bool, shut_down: bool
) -> None:
    harness = Harness()
    harness.add_brokers(0, 1)
    harness.add_topic("t", [0, 1] if leads else [1, 0])
    response = harness.heartbeat(0, want_fence=want_fence, want_shut_down=want_shut_down)
    assert status(response) == (True, fenced, shut_down)
    assert harness.metadata.brokers[0].fenced is fenced


def test_catching_up_means_the_own_registration_not_the_end_of_the_log() -> None:
    """KAFKA-13955: the end of the log moves all the time."""
    harness = Harness()
    epoch = harness.register(0)
    harness.add_topic("t", [0])
    assert status(harness.heartbeat(0, offset=epoch)) == (True, False, False)


def test_a_heartbeat_that_changes_nothing_writes_nothing() -> None:
    harness = Harness()
    harness.add_brokers(0)
    assert written(harness, harness.heartbeat_request(0)) == []
    harness.heartbeat(0, want_fence=True)
    assert written(harness, harness.heartbeat_request(0, want_fence=True)) == []
    assert written(harness, harness.heartbeat_request(0, want_shut_down=True)) == []


def test_an_unregistered_broker_is_refused() -> None:
    harness = Harness()
    with pytest.raises(ApiError) as refused:
        harness.decide(broker_heartbeat, BrokerHeartbeatRequest(broker_id=0, broker_epoch=1), 2)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_an_older_incarnation_is_refused_and_does_not_keep_the_session_alive() -> None:
    harness = Harness()
    harness.add_brokers(0)
    old = harness.heartbeat_request(0)
    harness.now_ms += SESSION_TIMEOUT_MS + 1
    epoch = harness.register(0, 2)
    with pytest.raises(ApiError) as refused:
        harness.decide(broker_heartbeat, old, 2)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
    assert failure(BrokerHeartbeatResponse, old, 2, refused.value.code, "").error_code == 77
    assert not harness.state.sessions.has_valid_session(0, epoch, harness.now_ms)


def test_unfencing_comes_first_then_the_elections_that_it_allows() -> None:
    harness = Harness()
    harness.add_brokers(0)
    topic = harness.add_topic("t", [0])
    harness.heartbeat(0, want_fence=True)
    assert partition(harness, topic).leader == NO_LEADER
    assert written(harness, harness.heartbeat_request(0)) == [
        ("BrokerRegistrationChangeRecord", 0),
        ("PartitionChangeRecord", 2),
    ]
    assert partition(harness, topic).leader == 0


def test_partitions_leave_a_broker_before_it_is_fenced() -> None:
    harness = Harness()
    harness.add_brokers(0, 1)
    topic = harness.add_topic("t", [0, 1])
    assert written(harness, harness.heartbeat_request(0, want_fence=True)) == [
        ("PartitionChangeRecord", 2),
        ("BrokerRegistrationChangeRecord", 0),
    ]
    assert (partition(harness, topic).leader, partition(harness, topic).isr) == (1, (1,))


def test_controlled_shutdown_waits_until_every_active_broker_has_read_of_it() -> None:
    harness = Harness()
    harness.add_brokers(0, 1, 2)
    topic = harness.add_topic("t", [0, 1])
    request = harness.heartbeat_request(0, want_shut_down=True)
    assert written(harness, request) == [
        ("BrokerRegistrationChangeRecord", 1),
        ("PartitionChangeRecord", 2),
    ]
    mark = harness.state.next_offset - 1
    assert harness.state.sessions.controlled_shutdown_offset(0) == mark
    broker = harness.metadata.brokers[0]
    assert (broker.in_controlled_shutdown, broker.fenced) == (True, False)
    assert (partition(harness, topic).leader, partition(harness, topic).isr) == (1, (1,))

    harness.heartbeat(1, offset=mark)
    harness.heartbeat(2, offset=mark - 1)
    assert status(harness.heartbeat(0, want_shut_down=True)) == (True, False, False)
    harness.heartbeat(2, offset=mark)
    assert status(harness.heartbeat(0, want_shut_down=True)) == (True, True, True)
    broker = harness.metadata.brokers[0]
    assert (broker.in_controlled_shutdown, broker.fenced) == (True, True)


def test_registering_again_in_a_controlled_shutdown_does_not_end_it() -> None:
    """In Kafka 4.4.0 the mark is lost, and the broker is let go before the others have read of it."""
    harness = Harness()
    harness.add_brokers(0, 1)
    harness.add_topic("t", [0, 1])
    harness.heartbeat(0, want_shut_down=True)
    mark = harness.state.next_offset - 1
    harness.register(0)
    assert harness.state.sessions.controlled_shutdown_offset(0) == mark
    assert status(harness.heartbeat(0, want_shut_down=True)) == (True, False, False)
    harness.heartbeat(1, offset=mark)
    assert status(harness.heartbeat(0, want_shut_down=True)) == (True, True, True)


@pytest.mark.parametrize("changed", ["cordoned directories", "registration"])
def test_what_a_broker_has_read_outlives_a_change_of_its_registration(changed: str) -> None:
    """In Kafka 4.4.0 it is forgotten, and the other broker waits for the next heartbeat."""
    harness = Harness()
    harness.add_brokers(0, 1)
    harness.add_topic("t", [0, 1])
    harness.heartbeat(0, want_shut_down=True)
    if changed == "registration":
        harness.heartbeat(1)
        harness.register(1)
    else:
        harness.heartbeat(1, cordoned=[directory(1)])
    assert harness.heartbeat(0, want_shut_down=True).should_shut_down


def test_fenced_and_stopping_brokers_hold_no_shutdown_up() -> None:
    harness = Harness()
    harness.add_brokers(0, 1, 2, 3)
    harness.add_topic("t", [0, 3])
    harness.add_topic("u", [1, 3])
    harness.heartbeat(2, want_fence=True)
    harness.heartbeat(0, want_shut_down=True)
    harness.heartbeat(1, want_shut_down=True)
    harness.heartbeat(3)
    assert harness.heartbeat(0, want_shut_down=True).should_shut_down
    assert harness.heartbeat(1, want_shut_down=True).should_shut_down


def test_the_last_broker_shuts_down_though_nobody_can_lead_in_its_place() -> None:
    harness = Harness()
    harness.add_brokers(0)
    harness.add_topic("t", [0])
    first = harness.heartbeat(0, want_shut_down=True)
    assert not first.should_shut_down
    assert harness.metadata.partitions.count_led_by(0) == 0
    assert harness.heartbeat(0, want_shut_down=True).should_shut_down


def test_a_broker_that_is_fenced_while_it_shuts_down_may_stop_at_once() -> None:
    harness = Harness()
    harness.add_brokers(0, 1)
    harness.add_topic("t", [0, 1])
    harness.heartbeat(0, want_shut_down=True)
    epoch = harness.metadata.brokers[0].epoch
    change = BrokerRegistrationChangeRecord(broker_id=0, broker_epoch=epoch, fenced=1)
    harness.replay([(change, 0)])
    assert status(harness.heartbeat(0, want_shut_down=True)) == (True, True, True)


def test_an_old_heartbeat_does_not_bring_a_broker_back_that_was_let_go() -> None:
    """The heartbeat was sent before the shutdown and arrives after it: the broker can no longer lead."""
    harness = Harness()
    harness.add_brokers(0)
    harness.add_topic("t", [0])
    harness.heartbeat(0, want_shut_down=True)
    assert harness.heartbeat(0, want_shut_down=True).should_shut_down
    assert harness.heartbeat(0).is_fenced
    assert harness.metadata.brokers[0].fenced


def test_a_new_controller_takes_a_begun_shutdown_up_with_a_mark_of_its_own() -> None:
    harness = Harness()
    harness.add_brokers(0, 1)
    harness.add_topic("t", [0, 1])
    harness.heartbeat(0, want_shut_down=True)
    harness.state.sessions.activate(harness.metadata.brokers.values(), harness.now_ms)
    harness.add_topic("u", [0, 1])
    mark = harness.state.next_offset
    assert written(harness, harness.heartbeat_request(0, want_shut_down=True)) == [
        ("PartitionChangeRecord", 2)
    ]
    assert harness.state.sessions.controlled_shutdown_offset(0) == mark
    assert not harness.heartbeat(0, want_shut_down=True).should_shut_down
    harness.heartbeat(1)
    assert harness.heartbeat(0, want_shut_down=True).should_shut_down


def test_a_granted_shutdown_is_granted_again_if_its_answer_was_lost() -> None:
    harness = Harness()
    harness.add_brokers(0)
    assert harness.heartbeat(0, want_shut_down=True).should_shut_down
    assert harness.heartbeat(0, want_shut_down=True).should_shut_down
    assert harness.register(0, 2) == harness.state.next_offset - 1


def test_lost_directories_take_their_replicas_out_of_the_isr() -> None:
    harness = Harness()
    harness.register(0, log_dirs=[directory(0), directory(0, 1)])
    harness.heartbeat(0)
    harness.add_brokers(1)
    topic = harness.add_topic("t", [0, 1])
    request = harness.heartbeat_request(0, offline=[directory(0), directory(5)])
    assert written(harness, request) == [
        ("PartitionChangeRecord", 2),
        ("BrokerRegistrationChangeRecord", 2),
    ]
    assert harness.metadata.brokers[0].directories == (directory(0, 1),)
    assert (partition(harness, topic).leader, partition(harness, topic).isr) == (1, (1,))
    assert written(harness, harness.heartbeat_request(0, offline=[directory(0)])) == []


def cordoned(harness: Harness) -> tuple[Uuid, ...] | None:
    return harness.metadata.brokers[0].cordoned_directories


def test_cordoned_directories_are_recorded_when_they_change() -> None:
    harness = Harness()
    harness.add_brokers(0)
    assert written(harness, harness.heartbeat_request(0)) == []
    assert written(harness, harness.heartbeat_request(0, cordoned=[])) == [
        ("BrokerRegistrationChangeRecord", 3)
    ]
    assert cordoned(harness) == ()
    assert written(harness, harness.heartbeat_request(0, cordoned=[])) == []
    assert written(harness, harness.heartbeat_request(0, cordoned=[directory(0)])) == [
        ("BrokerRegistrationChangeRecord", 3)
    ]
    assert cordoned(harness) == (directory(0),)


@pytest.mark.parametrize("level", [16, 29])
def test_directories_are_ignored_where_the_metadata_version_cannot_say_it(level: int) -> None:
    harness = Harness(level)
    harness.add_brokers(0)
    request = harness.heartbeat_request(
        0, cordoned=[directory(0)], offline=[directory(0)] if level < 17 else []
    )
    assert written(harness, request) == []


def test_decisions_on_many_partitions_need_not_be_one_batch() -> None:
    harness = Harness()
    harness.add_brokers(0, 1)
    harness.add_topic("t", *([0, 1] for _ in range(20)))
    result = harness.decide(broker_heartbeat, harness.heartbeat_request(0, want_fence=True), 2)
    assert not result.atomic
    assert sum(isinstance(record, PartitionChangeRecord) for record, _ in result.records) == 20
