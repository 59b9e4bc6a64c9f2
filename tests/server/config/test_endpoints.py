"""Addresses in properties files and on the command line."""

from __future__ import annotations

import pytest

from kraft_wire.protocol.uuid import Uuid
from kraft_wire.server.config.endpoints import (
    BadAddress,
    InitialController,
    parse_host_port,
    parse_initial_controllers,
    parse_protocol_map,
)
from kraft_wire.wire.address import format_address

DIRECTORY = Uuid(bytes(range(16)))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9093", ("localhost", 9093)),
        ("[::1]:9093", ("::1", 9093)),
        ("[fe80::1%eth0]:1", ("fe80::1%eth0", 1)),
        ("PLAINTEXT://h:1", ("h", 1)),
        ("a_b.c-d:65535", ("a_b.c-d", 65535)),
    ],
)
def test_host_and_port(text: str, address: tuple[str, int]) -> None:
    assert parse_host_port(text) == address


@pytest.mark.parametrize("text", ["", "h", "h:", ":1", "h:x", "h:65536", "h h:1", "h:1:"])
def test_what_is_no_host_and_port(text: str) -> None:
    with pytest.raises(BadAddress):
        parse_host_port(text)


def test_initial_controllers_are_sorted_by_id() -> None:
    text = f" 2@[::1]:9093:{DIRECTORY} , 1@c1.example:9094:{DIRECTORY},"
    assert parse_initial_controllers(text) == (
        InitialController(1, "c1.example", 9094, DIRECTORY),
        InitialController(2, "::1", 9093, DIRECTORY),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "names no controller"),
        (f"1@h:1:{DIRECTORY},1@h:2:{DIRECTORY}", "node id 1 is given twice"),
        (f"1@h:1:{DIRECTORY},2@H:1:{DIRECTORY}", "nodes 1 and 2 are both at h:1: give each its own"),
        (f"h:1:{DIRECTORY}", "is not id@host:port:directory-id"),
        (f"-1@h:1:{DIRECTORY}", "is not id@host:port:directory-id"),
        ("1@h:1", "'h' is not host:port"),
        ("1@h:1:short", "'short' in '1@h:1:short' is not a directory id"),
        (f"1@h:70000:{DIRECTORY}", "not within 0 to 65535"),
    ],
)
def test_what_is_no_initial_controller(text: str, reason: str) -> None:
    with pytest.raises(BadAddress, match=reason):
        parse_initial_controllers(text)


def test_the_protocol_map_has_upper_case_names() -> None:
    assert parse_protocol_map(" a : PLAINTEXT , B:SSL ") == ((("A", "PLAINTEXT"), ("B", "SSL")), ())
    assert parse_protocol_map("") == ((), ())
    assert parse_protocol_map("PLAINTEXT").problems == ("'PLAINTEXT' is not LISTENER:PROTOCOL",)


def test_an_ipv6_address_is_printed_in_brackets() -> None:
    assert format_address("::1", 9093) == "[::1]:9093"
    assert format_address("h", 9093) == "h:9093"
