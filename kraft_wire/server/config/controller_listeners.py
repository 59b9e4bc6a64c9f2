"""Read a controller's listeners: what it binds, and what it advertises (KafkaConfig's rules)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kraft_wire.configs.nearest import nearest, nearest_of
from kraft_wire.configs.own_keys import DRAFT_LISTENERS_KEY, HTTP_LISTENER_KEY
from kraft_wire.security.protocols import SECURITY_PROTOCOLS
from kraft_wire.server.config.endpoints import (
    NON_ROUTABLE_HOST,
    BadAddress,
    Endpoint,
    StaticVoter,
    check_distinct_ports,
    parse_host_port,
    parse_listeners,
    parse_protocol_map,
)
from kraft_wire.server.config.reader import ConfigReader

LISTENERS = "listeners"
ADVERTISED = "advertised.listeners"
NAMES = "controller.listener.names"
PROTOCOL_MAP = "listener.security.protocol.map"


def controller_listeners(reader: ConfigReader) -> tuple[Endpoint, ...]:
    """Return what a controller binds: only controller listeners, only PLAINTEXT.

    The default, a listener named PLAINTEXT, is of no use to a controller.
    """
    if not reader.is_set(LISTENERS):
        reader.problem(f"{LISTENERS} is missing: give an address, such as CONTROLLER://:9093")
        return ()
    listeners = _endpoints(reader, LISTENERS)
    try:
        check_distinct_ports(listeners)
    except BadAddress as error:
        reader.problem(f"{LISTENERS}: {error}")
    _check_names(reader, [listener.name for listener in listeners])
    for listener in listeners:
        if listener.security_protocol != "PLAINTEXT":
            reader.problem(
                f"{PROTOCOL_MAP}: listener {listener.name} wants {listener.security_protocol}; "
                "only PLAINTEXT is supported so far"
            )
    return listeners


def drafted_listeners(reader: ConfigReader) -> tuple[str, ...]:
    """Return the names of the listeners that speak KIP-853 as it was drafted."""
    names = reader.get_list(NAMES)
    drafted = [name.upper() for name in reader.get_list(DRAFT_LISTENERS_KEY)]
    for name in drafted:
        if name not in names:
            reader.problem(f"{DRAFT_LISTENERS_KEY}: {name} is not in {NAMES}{nearest(name, names)}")
    return tuple(drafted)


def http_listener(reader: ConfigReader) -> Endpoint | None:
    """Return the address of the listener for metrics and health; None if there is none."""
    text = reader.get_text(HTTP_LISTENER_KEY)
    if not text:
        return None
    try:
        endpoint = Endpoint("HTTP", *parse_host_port(text))
        check_distinct_ports([endpoint, *_endpoints(reader, LISTENERS)])
    except BadAddress as error:
        reader.problem(f"{HTTP_LISTENER_KEY}: {error}")
        return None
    return endpoint


def _check_names(reader: ConfigReader, bound: Sequence[str]) -> None:
    """Check that listeners and controller.listener.names name the same listeners."""
    names = reader.get_list(NAMES)
    strangers = [name for name in bound if name not in names]
    are_all_readable = len(bound) == len(reader.get_list(LISTENERS))
    for name in names:
        if name in bound:
            continue
        near = nearest_of(name, strangers)
        if near is not None:
            strangers.remove(near)
            reader.problem(f"{NAMES}={name}: {LISTENERS} has no such listener; the nearest is {near}")
        elif are_all_readable:
            reader.problem(f"{NAMES}={name}: {LISTENERS} has no listener of that name (in upper case)")
    for name in strangers:
        reader.problem(f"{LISTENERS}: {name} is not in {NAMES}, and a controller has no others")


def advertised_controller_listeners(
    reader: ConfigReader, voters: Sequence[StaticVoter]
) -> tuple[Endpoint, ...]:
    """Return an endpoint for each of controller.listener.names that is bound or advertised, in that order.

    A listener that advertised.listeners doesn't name is advertised as it is bound. The first listener, if
    bound to every address, takes its address from this node's entry in controller.quorum.voters.
    """
    advertised = _by_name(_endpoints(reader, ADVERTISED))
    bound = _by_name(_endpoints(reader, LISTENERS))
    own_voter = next((voter for voter in voters if voter.id == reader.get("node.id")), None)
    endpoints = []
    for position, name in enumerate(reader.get_list(NAMES)):
        if (endpoint := advertised.get(name)) is not None:
            if endpoint.host == NON_ROUTABLE_HOST:
                reader.problem(f"{ADVERTISED}: nobody can reach {NON_ROUTABLE_HOST}; give an address")
            endpoints.append(endpoint)
        elif (endpoint := bound.get(name)) is not None:
            endpoints.append(_as_reached(endpoint, own_voter if position == 0 else None))
    return tuple(endpoints)


def _as_reached(endpoint: Endpoint, own_voter: StaticVoter | None) -> Endpoint:
    if endpoint.host not in ("", NON_ROUTABLE_HOST):
        return endpoint
    if own_voter is not None:
        return msgspec.structs.replace(endpoint, host=own_voter.host, port=own_voter.port)
    return msgspec.structs.replace(endpoint, host="")


def _endpoints(reader: ConfigReader, key: str) -> tuple[Endpoint, ...]:
    return reader.without_problems(key, parse_listeners(reader.get_list(key), _protocols(reader)))


def _protocols(reader: ConfigReader) -> dict[str, str]:
    """Map listener names to protocols.

    Without a map, controller listeners are PLAINTEXT, unless a listener is named after another protocol. A
    controller's other listeners are, too: their names are the problem then, not their protocols.
    """
    names = reader.get_list(NAMES)
    given = parse_protocol_map(reader.get_text(PROTOCOL_MAP))
    protocols = dict(reader.without_problems(PROTOCOL_MAP, given))
    bound_names = [entry.partition(":")[0].upper() for entry in reader.get_list(LISTENERS)]
    if given.problems:
        return dict.fromkeys([*names, *bound_names], "PLAINTEXT") | protocols
    if not reader.is_set(PROTOCOL_MAP) and not set(SECURITY_PROTOCOLS[1:]) & {*names, *bound_names}:
        protocols |= dict.fromkeys(names, "PLAINTEXT")
    if reader.get_list("process.roles") == ["controller"]:
        protocols = dict.fromkeys(set(bound_names) - set(names), "PLAINTEXT") | protocols
    return protocols


def _by_name(endpoints: Sequence[Endpoint]) -> dict[str, Endpoint]:
    return {endpoint.name: endpoint for endpoint in endpoints}
