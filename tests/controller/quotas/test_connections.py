"""New connections from an address are limited: as Kafka's ConnectionQuotas."""

from __future__ import annotations

from kraft_wire.controller.quotas.connections import ConnectionRates
from kraft_wire.metadata.quotas import IP, quota_entity

RATE = "connection_creation_rate"
QUOTAS = {quota_entity({IP: None}): {RATE: 2.0}, quota_entity({IP: "10.0.0.9"}): {RATE: 100.0}}


def accepted(rates: ConnectionRates, count: int, now_ms: int, address: str = "10.0.0.1") -> list[int]:
    """Return how long each of so many connections is held."""
    return [rates.accept(QUOTAS, address, now_ms) for _ in range(count)]


def test_two_a_second_are_twenty_at_once_and_then_none() -> None:
    rates = ConnectionRates()
    held = accepted(rates, 22, 0)
    assert held[:20] == [0] * 20
    assert held[20:] == [500, 500], "one too many, at two a second"


def test_refused_connections_do_not_count() -> None:
    rates = ConnectionRates()
    accepted(rates, 1_000, 0)
    assert accepted(rates, 1, 11_000) == [0]


def test_an_address_may_have_a_quota_of_its_own() -> None:
    assert not any(accepted(ConnectionRates(), 900, 0, "10.0.0.9"))


def test_addresses_are_counted_one_by_one() -> None:
    rates = ConnectionRates()
    accepted(rates, 100, 0)
    assert accepted(rates, 1, 0, "10.0.0.2") == [0]


def test_without_a_quota_all_are_accepted() -> None:
    rates = ConnectionRates()
    assert not any(rates.accept({}, "10.0.0.1", 0) for _ in range(1_000))


def test_addresses_are_equal_however_they_are_spelt() -> None:
    for spelt, seen in (
        ("2001:DB8::1", "2001:db8::1"),
        ("[::1]", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
    ):
        quotas = {quota_entity({IP: spelt}): {RATE: 1.0}}
        rates = ConnectionRates()
        assert any(rates.accept(quotas, seen, 0) for _ in range(20)), spelt


def test_what_a_log_of_old_may_have_ends_nothing() -> None:
    nothing = {quota_entity({IP: None}): {RATE: 0.0}}
    assert ConnectionRates().accept(nothing, "10.0.0.1", 0) == 1_000
    for limit in (-1.0, float("nan"), float("inf")):
        assert ConnectionRates().accept({quota_entity({IP: None}): {RATE: limit}}, "10.0.0.1", 0) == 0
