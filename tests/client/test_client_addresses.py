"""bootstrap.controllers."""

from __future__ import annotations

import pytest

from kraft_wire.client.addresses import parse_addresses
from kraft_wire.security.errors import BadSetting
from kraft_wire.wire.address import Address


def test_controllers_are_named_one_after_the_other() -> None:
    addresses = parse_addresses(" a.example:9093,[::1]:9094 , 10.0.0.7:1,a.example:9093,")
    assert addresses == (Address("a.example", 9093), Address("::1", 9094), Address("10.0.0.7", 1))
    assert [str(address) for address in addresses] == ["a.example:9093", "[::1]:9094", "10.0.0.7:1"]


@pytest.mark.parametrize(
    "entry", ["host", "host:", ":9093", "host:0", "host:65536", "host:x", "u@host:1", "host:1/x", "[::1:1"]
)
def test_what_is_no_address_is_named(entry: str) -> None:
    with pytest.raises(BadSetting) as error:
        parse_addresses(f"good:1,{entry}")
    assert str(error.value) == f"bootstrap.controllers: {entry!r} isn't host:port"


def test_none_is_too_few() -> None:
    with pytest.raises(BadSetting, match="give host:port of one or more controllers"):
        parse_addresses(" , ")
