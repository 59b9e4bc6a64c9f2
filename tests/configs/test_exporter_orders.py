"""Orders for exporters, which operators set as dynamic configurations."""

from __future__ import annotations

import pytest

from kraft_wire.configs.exporter_orders import Orders, check_order, is_order, orders_in, paused_key, reset_key
from kraft_wire.configs.types import InvalidConfigValue


def test_orders_are_read_by_exporter() -> None:
    values = {
        paused_key("audit"): " TRUE ",
        reset_key("audit"): "snapshot+tail@1",
        paused_key("lake"): "false",
        "kraft.wire.exporter.lake.path": "/x",
        "log.retention.ms": "5",
    }
    assert orders_in(values) == {"audit": Orders(is_paused=True, reset="snapshot+tail@1"), "lake": Orders()}


@pytest.mark.parametrize(
    ("reset", "start"), [("snapshot+tail@", "snapshot+tail"), ("tail@x@y", "tail"), ("12@7", 12)]
)
def test_a_reset_says_where_an_exporter_begins(reset: str, start: object) -> None:
    assert Orders(reset=reset).start == start


def test_without_a_reset_it_begins_where_it_is_configured_to() -> None:
    assert Orders().start is None


BAD = [
    (paused_key("a"), "maybe"),
    (reset_key("a"), "tail"),
    (reset_key("a"), "-3@1"),
    (reset_key("a"), "top@1"),
]


@pytest.mark.parametrize(("key", "value"), BAD)
def test_a_value_that_can_not_be_used_is_refused_and_as_good_as_none(key: str, value: str) -> None:
    assert is_order(key)
    with pytest.raises(InvalidConfigValue, match=r"kraft\.wire\.exporter\.a\."):
        check_order(key, value)
    assert orders_in({key: value}) == {}


def test_other_keys_are_no_orders() -> None:
    assert not any(map(is_order, ["kraft.wire.exporter.a.path", "kraft.wire.exporters", "log.retention.ms"]))
