"""Fencing of silent brokers (ReplicationControlManager.maybeFenceOneStaleBroker)."""

from __future__ import annotations

import pytest

from kraft_wire.controller.brokers.fencing import check_period_ms, fence_one_stale_broker
from kraft_wire.controller.decision.context import Round
from kraft_wire.controller.decision.sessions import BrokerHeard, SessionEnded
from tests.controller.controller_harness import SESSION_TIMEOUT_MS, Harness

NOTHING = Round(session_changes=[])


def one_pass(harness: Harness) -> Round:
    done = fence_one_stale_broker(harness.state, harness.context())
    harness.apply(done)
    return done


def fenced(harness: Harness) -> list[int]:
    return sorted(broker.id for broker in harness.metadata.brokers.values() if broker.fenced)


def test_brokers_are_looked_at_eight_times_a_timeout() -> None:
    assert check_period_ms(9000) == 1125
    assert check_period_ms(3) == 1


def test_nobody_is_fenced_within_the_timeout() -> None:
    harness = Harness()
    harness.add_brokers(0, 1)
    harness.now_ms += SESSION_TIMEOUT_MS
    assert one_pass(harness) == NOTHING
    assert fenced(harness) == []


def test_one_broker_a_pass_the_longest_silent_first() -> None:
    harness = Harness()
    harness.add_brokers(0, 1, 2)
    topic = harness.add_topic("t", [1, 0, 2])
    for broker_id in (1, 0):
        harness.now_ms += 10
        harness.heartbeat(broker_id)
    harness.now_ms += SESSION_TIMEOUT_MS - 5
    harness.heartbeat(2)
    harness.now_ms += 100

    assert one_pass(harness).more
    assert fenced(harness) == [1]
    partition = harness.metadata.partitions.get(topic, 0)
    assert partition is not None
    assert (partition.leader, partition.isr) == (0, (0, 2))

    assert not one_pass(harness).more
    assert fenced(harness) == [0, 1]
    assert one_pass(harness) == NOTHING
    assert fenced(harness) == [0, 1]


def test_a_fenced_broker_that_falls_silent_is_not_written_again() -> None:
    harness = Harness()
    harness.register(0)
    harness.heartbeat(0, want_fence=True)
    harness.now_ms += SESSION_TIMEOUT_MS + 1
    assert one_pass(harness) == Round(session_changes=[SessionEnded(0)])
    assert one_pass(harness) == NOTHING


def test_a_session_of_a_broker_that_was_unregistered_is_dropped() -> None:
    harness = Harness()
    harness.add_brokers(0, 1)
    harness.state.sessions.apply([BrokerHeard(9, 1, 0, harness.now_ms)])
    harness.now_ms += SESSION_TIMEOUT_MS + 1
    assert [record.NAME for record, _ in one_pass(harness).records] == ["BrokerRegistrationChangeRecord"]
    assert [record.NAME for record, _ in one_pass(harness).records] == ["BrokerRegistrationChangeRecord"]
    assert one_pass(harness) == Round(session_changes=[SessionEnded(9)])
    assert one_pass(harness) == NOTHING
    assert fenced(harness) == [0, 1]


@pytest.mark.parametrize(("elr_level", "isr", "elr"), [(0, (0,), ()), (1, (), (0,))])
def test_a_fenced_broker_leads_again_with_its_next_heartbeat(
    elr_level: int, isr: tuple[int, ...], elr: tuple[int, ...]
) -> None:
    """The last member stays in the ISR, or moves to the ELR if ELRs are enabled."""
    harness = Harness(features={"eligible.leader.replicas.version": elr_level})
    harness.add_brokers(0)
    topic = harness.add_topic("t", [0])
    harness.now_ms += SESSION_TIMEOUT_MS + 1
    one_pass(harness)
    partition = harness.metadata.partitions.get(topic, 0)
    assert partition is not None
    assert (partition.leader, partition.isr, partition.elr) == (-1, isr, elr)
    assert not harness.heartbeat(0).is_fenced
    partition = harness.metadata.partitions.get(topic, 0)
    assert partition is not None
    assert (partition.leader, partition.isr) == (0, (0,))


def test_a_shutdown_under_control_ends_when_the_broker_is_fenced() -> None:
    harness = Harness()
    harness.add_brokers(0, 1)
    harness.add_topic("t", [0, 1])
    harness.heartbeat(0, want_shut_down=True)
    harness.now_ms += SESSION_TIMEOUT_MS + 1
    harness.heartbeat(1)
    one_pass(harness)
    assert not harness.state.sessions.is_shutting_down(0)
    assert harness.heartbeat(0, want_shut_down=True).should_shut_down
