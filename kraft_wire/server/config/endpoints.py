"""Read the addresses in a properties file: listeners, voters, bootstrap servers. Pure text to value.

Functions for one address raise ``BadAddress``. Functions for several return ``Parsed``, so that all problems
of a file can be reported together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from kraft_wire.configs.nearest import nearest
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.security.protocols import SECURITY_PROTOCOLS
from kraft_wire.wire.address import MAX_PORT, format_address

NON_ROUTABLE_HOST = "0.0.0.0"

_LISTENER = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_HOST_PORT = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
_NODE_ID = re.compile(r"[0-9]{1,10}")


class BadAddress(ValueError):
    """A text isn't the address that it should be. The error's text names the entry."""


T = TypeVar("T")


class Parsed(NamedTuple, Generic[T]):
    """The entries that could be read, and what is wrong with the others."""

    values: tuple[T, ...]
    problems: tuple[str, ...]


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """A listener's address. An empty host is the wildcard, port 0 any free port. Names are upper case."""

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


def parse_host_port(text: str) -> tuple[str, int]:
    """Read ``host:port`` or ``[v6]:port``, as Kafka's Utils.getHost and getPort do. Raises BadAddress."""
    match = _HOST_PORT.fullmatch(text)
    if match is None or not match[1]:
        raise BadAddress(f"{text!r} is not host:port")
    return match[1], _port(match[2], text)


def parse_bootstrap_servers(entries: Iterable[str]) -> Parsed[tuple[str, int]]:
    """Read ``host:port`` entries."""
    return _parse_each(entries, parse_host_port)


def parse_listeners(entries: Iterable[str], protocols: Mapping[str, str]) -> Parsed[Endpoint]:
    """Read ``NAME://host:port`` entries. ``protocols`` maps upper-case listener names to protocols."""
    names: set[str] = set()

    def parse(entry: str) -> Endpoint:
        match = _LISTENER.fullmatch(entry)
        if match is None or not match[1].strip():
            raise BadAddress(f"{entry!r} is not NAME://host:port")
        name = match[1].upper()
        if name not in protocols:
            raise BadAddress(f"listener {name} has no security protocol in listener.security.protocol.map")
        if name in names:
            raise BadAddress(f"listener {name} is given twice")
        names.add(name)
        return Endpoint(name, match[2], _port(match[3], entry), protocols[name])

    return _parse_each(entries, parse)


def check_distinct_ports(endpoints: Sequence[Endpoint]) -> None:
    """Raise BadAddress if two listeners share a port; one may have an IPv4, the other an IPv6 address."""
    for position, first in enumerate(endpoints):
        for second in endpoints[position + 1 :]:
            if first.port != second.port or first.port == 0:
                continue
            if {_ip_version(first.host), _ip_version(second.host)} != {4, 6}:
                raise BadAddress(f"listeners {first.name} and {second.name} both want port {first.port}")


def parse_protocol_map(text: str) -> Parsed[tuple[str, str]]:
    """Read ``NAME:PROTOCOL,...``. Names are in upper case then."""
    entries = re.split(r"\s*,\s*", text.strip()) if text.strip() else ()
    return _parse_each(entries, _parse_protocol)


def _parse_protocol(entry: str) -> tuple[str, str]:
    name, colon, protocol = entry.rpartition(":")
    if not colon or not name.strip():
        raise BadAddress(f"{entry!r} is not LISTENER:PROTOCOL")
    if protocol.strip() not in SECURITY_PROTOCOLS:
        near = nearest(protocol.strip(), SECURITY_PROTOCOLS)
        known = ", ".join(SECURITY_PROTOCOLS)
        raise BadAddress(f"{entry!r}: unknown security protocol{near}; use one of {known}")
    return name.strip().upper(), protocol.strip()


def parse_voters(entries: Iterable[str]) -> Parsed[StaticVoter]:
    """Read ``id@host:port`` entries of controller.quorum.voters."""
    ids: set[int] = set()

    def parse(entry: str) -> StaticVoter:
        id_text, at, address = entry.partition("@")
        if not at or not _NODE_ID.fullmatch(id_text):
            raise BadAddress(f"{entry!r} is not id@host:port")
        host, port = parse_host_port(address)
        if int(id_text) in ids:
            raise BadAddress(f"node id {int(id_text)} is given twice")
        ids.add(int(id_text))
        return StaticVoter(int(id_text), host, port)

    return _parse_each(entries, parse)


def parse_initial_controllers(text: str) -> tuple[InitialController, ...]:
    """Read ``id@host:port:directory-id,...``, at least one; sorted by id. Raises BadAddress."""
    controllers: dict[int, InitialController] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        controller = _parse_initial_controller(entry)
        if controller.id in controllers:
            raise BadAddress(f"node id {controller.id} is given twice")
        for other in controllers.values():
            _check_distinct(other, controller)
        controllers[controller.id] = controller
    if not controllers:
        raise BadAddress("names no controller; give id@host:port:directory-id, separated by commas")
    return tuple(controllers[id] for id in sorted(controllers))


def _check_distinct(one: InitialController, other: InitialController) -> None:
    """Raise BadAddress for two controllers that can't run both: Kafka's tool formats their folders."""
    if (one.host.lower(), one.port) == (other.host.lower(), other.port):
        raise BadAddress(
            f"nodes {one.id} and {other.id} are both at {format_address(one.host, one.port)}: give each its "
            "own address"
        )


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


def _parse_each(entries: Iterable[str], parse: Callable[[str], T]) -> Parsed[T]:
    values: list[T] = []
    problems: list[str] = []
    for entry in entries:
        try:
            values.append(parse(entry))
        except BadAddress as error:
            problems.append(str(error))
    return Parsed(tuple(values), tuple(problems))


def _port(text: str, entry: str) -> int:
    port = int(text)
    if not 0 <= port <= MAX_PORT:
        raise BadAddress(f"the port in {entry!r} is not within 0 to {MAX_PORT}")
    return port


def _ip_version(host: str) -> int | None:
    if ":" in host:
        return 6
    return 4 if re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", host) else None
