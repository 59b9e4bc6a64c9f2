"""The time that the controller works for clients: as Kafka's Rate over the last samples."""

from __future__ import annotations

import pytest

from kraft_wire.controller.quotas import table
from kraft_wire.controller.quotas.request_times import RequestTimes
from kraft_wire.metadata.quotas import CLIENT_ID, quota_entity

QUOTAS = {quota_entity({CLIENT_ID: None}): {"request_percentage": 10.0}}


def note(times: RequestTimes, used_ms: float, now_ms: int, client_id: str = "app") -> None:
    times.note(QUOTAS, "ANONYMOUS", client_id, used_ms, now_ms)


def throttle_ms(times: RequestTimes, now_ms: int, client_id: str = "app") -> int:
    return times.throttle_time_ms(QUOTAS, "ANONYMOUS", client_id, now_ms)


def test_a_tenth_of_ten_seconds_is_free_at_first() -> None:
    times = RequestTimes()
    note(times, 1_000, 0)
    assert throttle_ms(times, 0) == 0
    note(times, 50, 0)
    assert throttle_ms(times, 0) == 500, "50 ms too much, at 10 % of the time"


def test_the_wait_is_one_sample_at_most() -> None:
    times = RequestTimes()
    note(times, 60_000, 0)
    assert throttle_ms(times, 0) == 1_000


def test_what_was_used_long_ago_does_not_count() -> None:
    times = RequestTimes()
    note(times, 5_000, 0)
    assert throttle_ms(times, 10_999) == 1_000
    assert throttle_ms(times, 11_000) == 0


def test_the_average_of_the_samples_counts() -> None:
    times = RequestTimes()
    for second in range(30):
        note(times, 90, second * 1_000)
        assert throttle_ms(times, second * 1_000) == 0
    for second in range(30, 60):
        note(times, 150, second * 1_000)
    assert throttle_ms(times, 59_000) == 1_000


def test_clients_have_their_own_time() -> None:
    times = RequestTimes()
    note(times, 5_000, 0, "one")
    assert throttle_ms(times, 0, "one") == 1_000 and throttle_ms(times, 0, "other") == 0


def test_without_a_quota_nobody_waits() -> None:
    times = RequestTimes()
    times.note({}, "ANONYMOUS", "app", 60_000, 0)
    assert times.throttle_time_ms({}, "ANONYMOUS", "app", 0) == throttle_ms(times, 0) == 0


def test_one_sample_counts_as_two() -> None:
    times = RequestTimes(samples=1, sample_s=2)
    note(times, 300, 0)
    assert throttle_ms(times, 0) == 1_000


def test_clients_that_are_silent_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "FEW", 10)
    times = RequestTimes()
    for number in range(1_000):
        note(times, 1, 1_000 * number, f"client-{number}")
    assert len(times._percentages) <= 40


@pytest.mark.parametrize(
    ("percentage", "wait_ms"), [(0.0, 1_000), (1e-310, 1_000), (-1.0, 0), (float("nan"), 0)]
)
def test_what_a_log_of_old_may_have_ends_nothing(percentage: float, wait_ms: int) -> None:
    old = {quota_entity({CLIENT_ID: None}): {"request_percentage": percentage}}
    times = RequestTimes()
    times.note(old, "ANONYMOUS", "app", 10, 0)
    assert times.throttle_time_ms(old, "ANONYMOUS", "app", 0) == wait_ms
