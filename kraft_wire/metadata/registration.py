"""What brokers and controllers register: listeners and the features that they support."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import msgspec

from kraft_wire.metadata.errors import Contradiction

VersionRange = tuple[int, int]
"""Lowest and highest supported level of a feature."""

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Names by their number in records and requests."""


class Listener(msgspec.Struct, frozen=True, gc=False):
    """One endpoint: the listener's name (upper case), where it is, and its security protocol's number."""

    name: str
    host: str
    port: int
    security_protocol: int


class EndPoint(Protocol):
    """The endpoints of RegisterBrokerRecord and RegisterControllerRecord."""

    name: str
    host: str
    port: int
    security_protocol: int


class SupportedFeature(Protocol):
    """The features of RegisterBrokerRecord and RegisterControllerRecord."""

    name: str
    min_supported_version: int
    max_supported_version: int


def listeners_of(end_points: Iterable[EndPoint]) -> tuple[Listener, ...]:
    """A record's endpoints, in its order. Raises Contradiction for a nameless one or an unknown protocol."""
    listeners = tuple(
        [Listener(point.name, point.host, point.port, point.security_protocol) for point in end_points]
    )
    for listener in listeners:
        if not listener.name:
            raise Contradiction(f"a listener at {listener.host}:{listener.port} has no name")
        if not 0 <= listener.security_protocol < len(SECURITY_PROTOCOLS):
            raise Contradiction(
                f"listener {listener.name} has unknown security protocol {listener.security_protocol}"
            )
    return listeners


def features_of(features: Iterable[SupportedFeature]) -> Mapping[str, VersionRange]:
    """A record's supported features by name."""
    return {
        feature.name: (feature.min_supported_version, feature.max_supported_version) for feature in features
    }
