"""Where controllers listen."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlsplit

from kraft_wire.client.errors import BadSetting

BOOTSTRAP: Final = "bootstrap.controllers"
"""The option that names controllers."""
MAX_PORT: Final = 65535


class Address(NamedTuple):
    """A host, or its IP address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_addresses(text: str) -> tuple[Address, ...]:
    """``host:port,host:port``; an IPv6 address has brackets. Raises BadSetting."""
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
