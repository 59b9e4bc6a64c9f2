"""Parse the addresses of controllers."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from kraft_wire.security.errors import BadSetting
from kraft_wire.wire.address import Address

BOOTSTRAP: Final = "bootstrap.controllers"
"""The option that lists controllers."""


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Parse ``host:port,host:port``; an IPv6 address has brackets. Raises BadSetting."""
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    if not entries:
        raise BadSetting(f"{BOOTSTRAP}: give host:port of one or more controllers")
    return tuple(dict.fromkeys(_parse(entry) for entry in entries))


def _parse(entry: str) -> Address:
    problem = BadSetting(f"{BOOTSTRAP}: {entry!r} isn't host:port")
    try:
        parts = urlsplit(f"//{entry}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise problem from None
    if not host or not port or parts.netloc != entry or parts.username is not None:
        raise problem
    return Address(host, port)
