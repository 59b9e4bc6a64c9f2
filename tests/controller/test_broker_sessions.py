"""Sessions: the scenarios of Kafka's heartbeat tests, and ours after a granted shutdown."""

from __future__ import annotations

import pytest

from kraft_wire.controller.sessions import BrokerSessions
from kraft_wire.metadata.brokers import BrokerRegistration
from kraft_wire.protocol.uuid import Uuid

TIMEOUT_MS = 9000


def registration(broker_id: int, epoch: int, *, fenced: bool) -> BrokerRegistration:
    return BrokerRegistration(
        id=broker_id,
        epoch=epoch,
        incarnation_id=Uuid.ONE,
        listeners=(),
        features={},
        rack=None,
        fenced=fenced,
        in_controlled_shutdown=False,
        directories=(),
        cordoned_directories=None,
        registration_offset=epoch,
    )


@pytest.fixture
def sessions() -> BrokerSessions:
    return BrokerSessions(TIMEOUT_MS)


def test_a_session_is_valid_up_to_and_including_the_timeout(sessions: BrokerSessions) -> None:
    sessions.heard(0, 100, 5, now_ms=1000)
    assert sessions.has_valid_session(0, 100, now_ms=1000 + TIMEOUT_MS)
    assert not sessions.has_valid_session(0, 100, now_ms=1001 + TIMEOUT_MS)


def test_a_session_belongs_to_one_epoch(sessions: BrokerSessions) -> None:
    sessions.heard(0, 100, 5, now_ms=1000)
    assert not sessions.has_valid_session(0, 101, now_ms=1000)
    assert not sessions.has_valid_session(1, 100, now_ms=1000)


def test_registering_does_not_begin_to_count(sessions: BrokerSessions) -> None:
    sessions.begin(0, 100)
    assert not sessions.has_valid_session(0, 100, now_ms=0)
    assert sessions.stale_brokers(now_ms=10**9) == []


def test_a_new_epoch_voids_what_was_known(sessions: BrokerSessions) -> None:
    sessions.heard(0, 100, 5, now_ms=1000)
    sessions.enter_controlled_shutdown(0, 50)
    sessions.begin(0, 200)
    assert sessions.metadata_offset(0) == -1
    assert not sessions.is_shutting_down(0)
    assert not sessions.has_valid_session(0, 100, now_ms=1000)


def test_registering_again_at_the_same_epoch_keeps_the_session(sessions: BrokerSessions) -> None:
    sessions.heard(0, 100, 5, now_ms=1000)
    sessions.begin(0, 100)
    assert sessions.metadata_offset(0) == 5
    assert sessions.has_valid_session(0, 100, now_ms=1000)


def test_stale_brokers_come_longest_silent_first(sessions: BrokerSessions) -> None:
    sessions.heard(0, 10, 0, now_ms=300)
    sessions.heard(1, 11, 0, now_ms=100)
    sessions.heard(2, 12, 0, now_ms=9000)
    assert sessions.stale_brokers(now_ms=301 + TIMEOUT_MS) == [(1, 11), (0, 10)]
    assert sessions.next_expiry_ms() == 101 + TIMEOUT_MS


def test_an_expired_session_is_reported_once(sessions: BrokerSessions) -> None:
    sessions.heard(0, 10, 0, now_ms=0)
    sessions.expire(0)
    assert sessions.stale_brokers(now_ms=10**9) == []
    assert sessions.next_expiry_ms() is None
    sessions.heard(0, 10, 3, now_ms=20_000)
    assert sessions.stale_brokers(now_ms=20_001 + TIMEOUT_MS) == [(0, 10)]


def test_a_term_begins_with_the_unfenced_brokers_alone(sessions: BrokerSessions) -> None:
    """KAFKA-19130: a broker that was fenced when the controller changed may restart at once."""
    sessions.heard(7, 70, 5, now_ms=0)
    sessions.activate([registration(0, 100, fenced=False), registration(1, 101, fenced=True)], now_ms=5000)
    assert sessions.has_valid_session(0, 100, now_ms=5000 + TIMEOUT_MS)
    assert not sessions.has_valid_session(1, 101, now_ms=5000)
    assert sessions.metadata_offset(7) == -1


def test_the_mark_of_a_controlled_shutdown_does_not_move(sessions: BrokerSessions) -> None:
    sessions.heard(0, 100, 5, now_ms=0)
    sessions.enter_controlled_shutdown(0, 50)
    sessions.enter_controlled_shutdown(0, 90)
    assert sessions.controlled_shutdown_offset(0) == 50
    sessions.leave_controlled_shutdown(0)
    assert not sessions.is_shutting_down(0)


def test_the_lowest_offset_counts_silent_brokers_as_unknown(sessions: BrokerSessions) -> None:
    sessions.heard(0, 100, 50, now_ms=0)
    sessions.heard(1, 101, 40, now_ms=0)
    assert sessions.lowest_offset([0, 1]) == 40
    assert sessions.lowest_offset([0, 1, 2]) == -1
    assert sessions.lowest_offset([]) is None


def test_a_granted_shutdown_ends_the_session_at_once(sessions: BrokerSessions) -> None:
    sessions.heard(0, 100, 5, now_ms=0)
    sessions.shutdown_granted(0)
    assert not sessions.has_valid_session(0, 100, now_ms=0)
    assert sessions.stale_brokers(now_ms=10**9) == []


def test_a_removed_broker_is_forgotten(sessions: BrokerSessions) -> None:
    sessions.heard(0, 100, 5, now_ms=0)
    sessions.remove(0)
    assert sessions.metadata_offset(0) == -1
    assert sessions.stale_brokers(now_ms=10**9) == []
