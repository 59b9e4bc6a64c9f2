"""Addresses in a properties file: listeners, voters, bootstrap servers. Pure text to value.

Every function raises ``BadAddress`` with the entry that it could not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kraft_wire.protocol.uuid import Uuid

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
NON_ROUTABLE_HOST = "0.0.0.0"
MAX_PORT = 65535

_LISTENER = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_HOST_PORT = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
_NODE_ID = re.compile(r"[0-9]{1,10}")


class BadAddress(ValueError):
    """Text that should be an address and is not."""


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """Where a listener is. An empty host is the wildcard; port 0 is any free port. Names are upper case."""

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"

    @property
    def address(self) -> str:
        return format_address(self.host, self.port)


class StaticVoter(msgspec.Struct, frozen=True, gc=False):
    """One entry of controller.quorum.voters."""

    id: int
    host: str
    port: int


class InitialController(msgspec.Struct, frozen=True, gc=False):
    """One voter of a dynamic quorum, as ``storage format --initial-controllers`` names it."""

    id: int
    host: str
    port: int
    directory_id: Uuid


def format_address(host: str, port: int) -> str:
    """``host:port``, with the brackets that an IPv6 address needs."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_host_port(text: str) -> tuple[str, int]:
    """``host:port`` or ``[v6]:port``, as Kafka's Utils.getHost and getPort read it."""
    match = _HOST_PORT.fullmatch(text)
    if match is None or not match[1]:
        raise BadAddress(f"{text!r} is not host:port")
    return match[1], _port(match[2], text)


def parse_listeners(entries: Iterable[str], protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """``NAME://host:port`` entries; ``protocols`` maps every upper-case listener name to its protocol."""
    endpoints: list[Endpoint] = []
    for entry in entries:
        match = _LISTENER.fullmatch(entry)
        if match is None or not match[1].strip():
            raise BadAddress(f"{entry!r} is not NAME://host:port")
        name = match[1].upper()
        if name not in protocols:
            raise BadAddress(f"listener {name} has no security protocol in listener.security.protocol.map")
        if any(endpoint.name == name for endpoint in endpoints):
            raise BadAddress(f"listener {name} is there twice")
        endpoints.append(Endpoint(name, match[2], _port(match[3], entry), protocols[name]))
    return tuple(endpoints)


def check_distinct_ports(endpoints: Sequence[Endpoint]) -> None:
    """Two listeners share a port only where one has an IPv4 and the other an IPv6 address."""
    for position, first in enumerate(endpoints):
        for second in endpoints[position + 1 :]:
            if first.port != second.port or first.port == 0:
                continue
            if {_ip_version(first.host), _ip_version(second.host)} != {4, 6}:
                raise BadAddress(f"listeners {first.name} and {second.name} both want port {first.port}")


def parse_protocol_map(text: str) -> dict[str, str]:
    """``NAME:PROTOCOL,...`` with names in upper case."""
    protocols: dict[str, str] = {}
    for entry in re.split(r"\s*,\s*", text.strip()) if text.strip() else ():
        name, colon, protocol = entry.rpartition(":")
        if not colon or not name.strip():
            raise BadAddress(f"{entry!r} is not LISTENER:PROTOCOL")
        if protocol.strip() not in SECURITY_PROTOCOLS:
            raise BadAddress(
                f"{entry!r} names no security protocol; there are {', '.join(SECURITY_PROTOCOLS)}"
            )
        protocols[name.strip().upper()] = protocol.strip()
    return protocols


def parse_voters(entries: Iterable[str]) -> tuple[StaticVoter, ...]:
    """``id@host:port`` entries of controller.quorum.voters."""
    voters: dict[int, StaticVoter] = {}
    for entry in entries:
        id_text, at, address = entry.partition("@")
        if not at or not _NODE_ID.fullmatch(id_text):
            raise BadAddress(f"{entry!r} is not id@host:port")
        host, port = parse_host_port(address)
        if int(id_text) in voters:
            raise BadAddress(f"node id {int(id_text)} is there twice")
        voters[int(id_text)] = StaticVoter(int(id_text), host, port)
    return tuple(voters.values())


def parse_initial_controllers(text: str) -> tuple[InitialController, ...]:
    """``id@host:port:directory-id,...``, sorted by id; at least one."""
    controllers: dict[int, InitialController] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        controller = _parse_initial_controller(entry)
        if controller.id in controllers:
            raise BadAddress(f"node id {controller.id} is there twice")
        controllers[controller.id] = controller
    if not controllers:
        raise BadAddress("names no controller; give id@host:port:directory-id, separated by commas")
    return tuple(controllers[id] for id in sorted(controllers))


def _parse_initial_controller(entry: str) -> InitialController:
    id_text, at, rest = entry.partition("@")
    address, colon, directory_text = rest.rpartition(":")
    if not at or not colon or not _NODE_ID.fullmatch(id_text):
        raise BadAddress(f"{entry!r} is not id@host:port:directory-id")
    host, port = parse_host_port(address)
    try:
        directory_id = Uuid.parse(directory_text)
    except ValueError:
        raise BadAddress(f"{directory_text!r} in {entry!r} is not a directory id (22 characters)") from None
    return InitialController(int(id_text), host, port, directory_id)


def _port(text: str, entry: str) -> int:
    port = int(text)
    if not 0 <= port <= MAX_PORT:
        raise BadAddress(f"the port in {entry!r} is not within 0 to {MAX_PORT}")
    return port


def _ip_version(host: str) -> int | None:
    if ":" in host:
        return 6
    return 4 if re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", host) else None
