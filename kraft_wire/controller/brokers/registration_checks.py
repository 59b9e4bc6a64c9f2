"""Check the listeners and features that brokers and controllers register.

A bad listener is rejected because it would break every reader of the record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kraft_wire.metadata.registration import EndPoint
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.security.protocols import SECURITY_PROTOCOLS
from kraft_wire.wire.address import LONGEST_NAME, MAX_PORT

MOST_LISTENERS: Final = 100
MOST_FEATURES: Final = 100
"""Kafka has no such limits. Registrations stay in the log and in each snapshot, whoever sent them."""


def check_feature_count(node: str, count: int, code: ErrorCode) -> None:
    """Raise ApiError(code) for a node that names too many features."""
    if count > MOST_FEATURES:
        raise ApiError(code, f"{node} names {count} features; {MOST_FEATURES} are allowed")


def check_listeners(node: str, listeners: Iterable[EndPoint], code: ErrorCode) -> None:
    """Raise ApiError(code) for a listener without name, host, port or known protocol, or a repeated name.

    ``node`` is the text for the node in the error. Java's controllers fail on some of these with an internal
    error and resign (ListenerInfo).
    """
    names: set[str] = set()
    for number, listener in enumerate(listeners, start=1):
        if number > MOST_LISTENERS:
            raise ApiError(code, f"{node} has more than {MOST_LISTENERS} listeners")
        if fault := _fault(listener, names):
            raise ApiError(code, f"{node}: listener {listener.name[:LONGEST_NAME]!r} {fault}")
        names.add(listener.name)


def _fault(listener: EndPoint, names: set[str]) -> str:
    if not listener.name.strip():
        return "has no name"
    if listener.name in names:
        return "is listed twice"
    if not listener.host.strip():
        return "has no host"
    if max(len(listener.name), len(listener.host)) > LONGEST_NAME:
        return f"has a name or host of more than {LONGEST_NAME} characters"
    if not 0 < listener.port <= MAX_PORT:
        return f"has port {listener.port}, which is not between 1 and {MAX_PORT}"
    if not 0 <= listener.security_protocol < len(SECURITY_PROTOCOLS):
        return (
            f"has security protocol {listener.security_protocol}, "
            f"which is not between 0 and {len(SECURITY_PROTOCOLS) - 1}"
        )
    return ""
