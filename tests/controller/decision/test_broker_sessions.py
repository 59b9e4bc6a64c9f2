"""Sessions: the scenarios of Kafka's heartbeat tests, and the session after a granted shutdown."""

from __future__ import annotations

import pytest

from kraft_wire.controller.decision.sessions import (
    BrokerHeard,
    BrokerRegistered,
    BrokerSessions,
    BrokerUnregistered,
    SessionEnded,
    ShutdownBegun,
)
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
    sessions.apply([BrokerHeard(0, 100, 5, at_ms=1000)])
    assert sessions.has_valid_session(0, 100, now_ms=1000 + TIMEOUT_MS)
    assert not sessions.has_valid_session(0, 100, now_ms=1001 + TIMEOUT_MS)


def test_a_session_belongs_to_one_epoch(sessions: BrokerSessions) -> None:
    sessions.apply([BrokerHeard(0, 100, 5, at_ms=1000)])
    assert not sessions.has_valid_session(0, 101, now_ms=1000)
    assert not sessions.has_valid_session(1, 100, now_ms=1000)


def test_registering_does_not_begin_to_count(sessions: BrokerSessions) -> None:
    sessions.apply([BrokerRegistered(0, 100)])
    assert not sessions.has_valid_session(0, 100, now_ms=0)
    assert sessions.stale_brokers(now_ms=10**9) == []


def test_a_new_epoch_voids_what_was_known(sessions: BrokerSessions) -> None:
    sessions.apply([BrokerHeard(0, 100, 5, at_ms=1000)])
    sessions.apply([ShutdownBegun(0, 50)])
    sessions.apply([BrokerRegistered(0, 200)])
    assert sessions.metadata_offset(0) == -1
    assert not sessions.is_shutting_down(0)
    assert not sessions.has_valid_session(0, 100, now_ms=1000)


def test_registering_again_at_the_same_epoch_keeps_the_session(sessions: BrokerSessions) -> None:
    sessions.apply([BrokerHeard(0, 100, 5, at_ms=1000)])
    sessions.apply([BrokerRegistered(0, 100)])
    assert sessions.metadata_offset(0) == 5
    assert sessions.has_valid_session(0, 100, now_ms=1000)


def test_stale_brokers_come_longest_silent_first(sessions: BrokerSessions) -> None:
    sessions.apply([BrokerHeard(0, 10, 0, at_ms=300)])
    sessions.apply([BrokerHeard(1, 11, 0, at_ms=100)])
    sessions.apply([BrokerHeard(2, 12, 0, at_ms=9000)])
    assert sessions.stale_brokers(now_ms=301 + TIMEOUT_MS) == [(1, 11), (0, 10)]


def test_an_expired_session_is_reported_once(sessions: BrokerSessions) -> None:
    sessions.apply([BrokerHeard(0, 10, 0, at_ms=0)])
    sessions.apply([SessionEnded(0)])
    assert sessions.stale_brokers(now_ms=10**9) == []
    sessions.apply([BrokerHeard(0, 10, 3, at_ms=20_000)])
    assert sessions.stale_brokers(now_ms=20_001 + TIMEOUT_MS) == [(0, 10)]


def test_a_term_begins_with_the_unfenced_brokers_alone(sessions: BrokerSessions) -> None:
    """KAFKA-19130: a broker that was fenced when the controller changed may restart at once."""
    sessions.apply([BrokerHeard(7, 70, 5, at_ms=0)])
    sessions.activate([registration(0, 100, fenced=False), registration(1, 101, fenced=True)], now_ms=5000)
    assert sessions.has_valid_session(0, 100, now_ms=5000 + TIMEOUT_MS)
    assert not sessions.has_valid_session(1, 101, now_ms=5000)
    assert sessions.metadata_offset(7) == -1


def test_the_mark_of_a_controlled_shutdown_does_not_move(sessions: BrokerSessions) -> None:
    sessions.apply([BrokerHeard(0, 100, 5, at_ms=0)])
    sessions.apply([ShutdownBegun(0, 50)])
    sessions.apply([ShutdownBegun(0, 90)])
    assert sessions.controlled_shutdown_offset(0) == 50
    sessions.apply([SessionEnded(0)])
    assert not sessions.is_shutting_down(0)


def test_the_lowest_offset_counts_silent_brokers_as_unknown(sessions: BrokerSessions) -> None:
    sessions.apply([BrokerHeard(0, 100, 50, at_ms=0)])
    sessions.apply([BrokerHeard(1, 101, 40, at_ms=0)])
    assert sessions.lowest_offset([0, 1]) == 40
    assert sessions.lowest_offset([0, 1, 2]) == -1
    assert sessions.lowest_offset([]) is None


def test_a_granted_shutdown_ends_the_session_at_once(sessions: BrokerSessions) -> None:
    sessions.apply([BrokerHeard(0, 100, 5, at_ms=0)])
    sessions.apply([SessionEnded(0)])
    assert not sessions.has_valid_session(0, 100, now_ms=0)
    assert sessions.stale_brokers(now_ms=10**9) == []


def test_a_removed_broker_is_forgotten(sessions: BrokerSessions) -> None:
    sessions.apply([BrokerHeard(0, 100, 5, at_ms=0)])
    sessions.apply([BrokerUnregistered(0)])
    assert sessions.metadata_offset(0) == -1
    assert sessions.stale_brokers(now_ms=10**9) == []
