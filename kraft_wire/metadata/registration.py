"""Read what brokers and controllers register: listeners and supported features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from kraft_wire.metadata.errors import Contradiction
from kraft_wire.security.protocols import SECURITY_PROTOCOLS

VersionRange = tuple[int, int]
"""The lowest and highest supported level of a feature."""

"""The security protocols by their number in records and requests."""


class Listener(msgspec.Struct, frozen=True, gc=False):
    """An endpoint: the listener's name (upper case), host and port, and the number of its security
    protocol."""

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
    """Return a record's endpoints, in its order. Raises Contradiction for one without a name or with an
    unknown protocol."""
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
    """Return a record's supported features by name."""
    return {
        feature.name: (feature.min_supported_version, feature.max_supported_version) for feature in features
    }
