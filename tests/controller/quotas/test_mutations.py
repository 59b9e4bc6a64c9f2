"""The token bucket of changed partitions: as Kafka's TokenBucket and its strict and permissive quotas."""

from __future__ import annotations

import pytest

from kraft_wire.controller.quotas import table
from kraft_wire.controller.quotas.mutations import MutationQuota, MutationQuotas
from kraft_wire.metadata.quotas import CLIENT_ID, quota_entity
from kraft_wire.protocol.errors import ApiError, ErrorCode

WINDOW_S = 11
RATE = 10.0
QUOTAS = {quota_entity({CLIENT_ID: None}): {"controller_mutation_rate": RATE}}


def quota_of(
    quotas: MutationQuotas, now_ms: int, client_id: str = "app", *, is_strict: bool = True
) -> MutationQuota:
    return quotas.of(QUOTAS, "ANONYMOUS", client_id, now_ms, is_strict=is_strict)


def test_a_window_of_tokens_is_there_at_first_and_one_request_may_take_more() -> None:
    quotas = MutationQuotas(WINDOW_S)
    quota = quota_of(quotas, 0)
    quota.spend(100)
    quota.spend(60)
    assert quota.throttle_time_ms == 0
    with pytest.raises(ApiError, match="_mutation_rate=10 allows; try again in 5000 ms") as error:
        quota.spend(1)
    assert error.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert quota.throttle_time_ms == 5_000, "50 tokens are missing, ten come in a second"


def test_what_was_refused_takes_no_tokens() -> None:
    quotas = MutationQuotas(WINDOW_S)
    quota_of(quotas, 0).spend(120)
    for now_ms in (0, 500, 999):
        with pytest.raises(ApiError):
            quota_of(quotas, now_ms).spend(1000)
    quota_of(quotas, 1_000).spend(1)


def test_tokens_come_up_to_those_of_a_window() -> None:
    quotas = MutationQuotas(WINDOW_S)
    quota_of(quotas, 0).spend(160)
    quota = quota_of(quotas, 3_600_000)
    quota.spend(110)
    quota.spend(10)
    with pytest.raises(ApiError):
        quota.spend(1)


def test_a_quota_that_is_not_strict_refuses_nothing_and_says_how_long_to_wait() -> None:
    quotas = MutationQuotas(WINDOW_S)
    quota = quota_of(quotas, 0, is_strict=False)
    quota.spend(110)
    assert quota.throttle_time_ms == 0
    quota.spend(10)
    quota.spend(10)
    assert quota.throttle_time_ms == 2_000
    with pytest.raises(ApiError):
        quota_of(quotas, 0).spend(1)


def test_clients_have_their_own_tokens() -> None:
    quotas = MutationQuotas(WINDOW_S)
    quota_of(quotas, 0, "one").spend(1_000)
    quota_of(quotas, 0, "other").spend(1)
    with pytest.raises(ApiError):
        quota_of(quotas, 0, "one").spend(1)


def test_without_a_quota_everything_is_free() -> None:
    quota = MutationQuotas(WINDOW_S).of({}, "ANONYMOUS", "app", 0, is_strict=True)
    quota.go_on(5, counts=True)
    for _ in range(3):
        quota.spend(1_000_000)
    assert quota.throttle_time_ms == 0


def test_another_rate_holds_from_the_next_request_on() -> None:
    quotas = MutationQuotas(WINDOW_S)
    quota_of(quotas, 0).spend(120)
    more = {quota_entity({CLIENT_ID: None}): {"controller_mutation_rate": 1000.0}}
    quotas.of(more, "ANONYMOUS", "app", 10, is_strict=True).spend(5)


@pytest.mark.parametrize("rate", [0.0, 1e-310, 0.001])
def test_a_wait_that_no_response_can_name_is_the_longest_that_one_can(rate: float) -> None:
    """A log may have the rate 0."""
    quotas = MutationQuotas(WINDOW_S)
    slow = {quota_entity({CLIENT_ID: None}): {"controller_mutation_rate": rate}}
    for is_strict in (False, True):
        quota = quotas.of(slow, "ANONYMOUS", f"app {is_strict}", 0, is_strict=is_strict)
        quota.spend(3_000_000)
        if is_strict:
            with pytest.raises(ApiError):
                quota.spend(1)
        assert quota.throttle_time_ms == 2**31 - 1


def test_a_step_that_does_not_count_spends_nothing() -> None:
    quotas = MutationQuotas(WINDOW_S)
    quota = quota_of(quotas, 0)
    quota.go_on(0, counts=False)
    for _ in range(5):
        quota.spend(100)
    quota.go_on(0, counts=True)
    quota.spend(110)
    quota.spend(1)
    with pytest.raises(ApiError):
        quota.spend(1)


def test_clients_that_need_no_bucket_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "FEW", 10)
    quotas = MutationQuotas(WINDOW_S)
    quota_of(quotas, 0, "busy").spend(20_000)
    for number in range(1_000):
        quota_of(quotas, 1_000 * number, f"client-{number}").spend(1)
    assert len(quotas._buckets) <= 40
    with pytest.raises(ApiError):
        quota_of(quotas, 1_000_000, "busy").spend(1)
