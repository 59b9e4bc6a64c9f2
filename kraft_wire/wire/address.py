"""Addresses of nodes: a host and a port, and their text."""

from __future__ import annotations

from typing import Final, NamedTuple

MAX_PORT: Final = 65535
LONGEST_NAME: Final = 255
"""The names of hosts have 253 characters at most. Names of listeners may be no longer."""


class Address(NamedTuple):
    """A host name or IP address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return format_address(self.host, self.port)


def is_possible(address: Address) -> bool:
    """Whether an address that a peer names can be one at all."""
    has_host = bool(address.host.strip()) and len(address.host) <= LONGEST_NAME
    return has_host and 0 < address.port <= MAX_PORT


def format_address(host: str, port: int) -> str:
    """Return ``host:port``, with the brackets that an IPv6 address needs."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
