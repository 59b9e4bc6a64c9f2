"""New connections from an address are limited: as Kafka's ConnectionQuotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NoReturn

import pytest

from kraft_wire.controller.quotas.connections import ConnectionRates
from kraft_wire.metadata.journal import Journal
from kraft_wire.metadata.quotas import ClientQuotas, QuotaEntity
from kraft_wire.protocol.messages.client_quota_record import ClientQuotaRecord, EntityData
from tests.controller.lone_controller import active_controller

RATE = "connection_creation_rate"


def limits(by_address: Mapping[str | None, float]) -> ClientQuotas:
    """Return the quotas of addresses, as they spell them."""
    quotas = ClientQuotas(Journal())
    for offset, (address, limit) in enumerate(by_address.items()):
        quotas.replay(ClientQuotaRecord([EntityData("ip", address)], RATE, limit, False), offset)
    return quotas


QUOTAS = limits({None: 2.0, "10.0.0.9": 100.0})


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
    assert not any(rates.accept(limits({}), "10.0.0.1", 0) for _ in range(1_000))


def test_addresses_are_equal_however_they_are_spelt() -> None:
    for spelt, seen in (
        ("2001:DB8::1", "2001:db8::1"),
        ("[::1]", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
    ):
        quotas = limits({spelt: 1.0})
        rates = ConnectionRates()
        assert any(rates.accept(quotas, seen, 0) for _ in range(20)), spelt


def test_what_a_log_of_old_may_have_ends_nothing() -> None:
    nothing = limits({None: 0.0})
    assert ConnectionRates().accept(nothing, "10.0.0.1", 0) == 1_000
    for limit in (-1.0, float("nan"), float("inf")):
        assert ConnectionRates().accept(limits({None: limit}), "10.0.0.1", 0) == 0


def test_an_address_without_that_limit_has_the_default() -> None:
    quotas = limits({None: 0.0})
    quotas.replay(ClientQuotaRecord([EntityData("ip", "10.0.0.1")], "another", 1.0, False), 1)
    assert ConnectionRates().accept(quotas, "10.0.0.1", 0) == 1_000


class Unsearchable(dict[QuotaEntity, dict[str, float]]):
    """Quotas that nobody may search one by one."""

    def __iter__(self) -> Iterator[NoReturn]:
        raise AssertionError("all quotas are searched")

    items = keys = values = __iter__  # type: ignore[assignment]


def test_the_quotas_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users' quotas may be very many, and each new connection has to wait."""
    node = active_controller().node
    quotas = node.state.metadata.quotas
    for offset, (kind, name) in enumerate([("user", "ann"), ("ip", None), ("ip", "::FFFF:10.0.0.9")], 1_000):
        limit = 1_000.0 if name else 0.0
        quotas.replay(ClientQuotaRecord([EntityData(kind, name)], RATE, limit, False), offset)
    monkeypatch.setattr(quotas, "_values", Unsearchable(quotas._values))
    assert node.accept_connection("10.0.0.9", 0) == 0
    assert node.accept_connection("10.0.0.1", 0) == 1_000
