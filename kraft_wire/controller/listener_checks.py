"""Listeners that brokers and controllers register: what would break whoever reads the record is refused."""

from __future__ import annotations

from collections.abc import Iterable

from kraft_wire.metadata.registration import SECURITY_PROTOCOLS, EndPoint
from kraft_wire.protocol.errors import ApiError, ErrorCode

MAX_PORT = 65535


def check_listeners(who: str, listeners: Iterable[EndPoint], code: ErrorCode) -> None:
    """Raise ApiError(code) for a listener without name, host, port or known protocol, or a name given twice.

    Java's controllers fail on some of these with an internal error and resign (ListenerInfo).
    """
    names: set[str] = set()
    for listener in listeners:
        if fault := _fault(listener, names):
            raise ApiError(code, f"{who}: listener {listener.name!r} {fault}")
        names.add(listener.name)


def _fault(listener: EndPoint, names: set[str]) -> str:
    if not listener.name:
        return "has no name"
    if listener.name in names:
        return "is there twice"
    if not listener.host.strip():
        return "has no host"
    if not 0 < listener.port <= MAX_PORT:
        return f"has port {listener.port}, which is not 1 to {MAX_PORT}"
    if not 0 <= listener.security_protocol < len(SECURITY_PROTOCOLS):
        return f"has security protocol {listener.security_protocol}, not 0 to {len(SECURITY_PROTOCOLS) - 1}"
    return ""
