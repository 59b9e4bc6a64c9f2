"""A controller's listeners: what it binds, and the addresses that it advertises (KafkaConfig's rules)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kraft_wire.server.config_endpoints import (
    NON_ROUTABLE_HOST,
    SECURITY_PROTOCOLS,
    BadAddress,
    Endpoint,
    StaticVoter,
    check_distinct_ports,
    parse_listeners,
    parse_protocol_map,
)
from kraft_wire.server.config_reader import ConfigReader

LISTENERS = "listeners"
ADVERTISED = "advertised.listeners"
NAMES = "controller.listener.names"
PROTOCOL_MAP = "listener.security.protocol.map"


def controller_listeners(reader: ConfigReader) -> tuple[Endpoint, ...]:
    """What a controller binds: only controller listeners, only PLAINTEXT."""
    listeners = _endpoints(reader, LISTENERS)
    try:
        check_distinct_ports(listeners)
    except BadAddress as error:
        reader.problem(f"{LISTENERS}: {error}")
    names = reader.get_list(NAMES)
    bound = {listener.name for listener in listeners}
    is_unreadable = bool(reader.get_list(LISTENERS)) and not listeners
    for name in names:
        if name not in bound and not is_unreadable:
            reader.problem(f"{NAMES}={name}: {LISTENERS} has no listener of that name (in upper case)")
    for listener in listeners:
        if listener.name not in names:
            reader.problem(f"{LISTENERS}: {listener.name} is not in {NAMES}, and a controller has no others")
        if listener.security_protocol != "PLAINTEXT":
            reader.problem(
                f"{PROTOCOL_MAP}: listener {listener.name} wants {listener.security_protocol}; "
                "only PLAINTEXT is supported so far"
            )
    return listeners


def advertised_controller_listeners(
    reader: ConfigReader, voters: Sequence[StaticVoter]
) -> tuple[Endpoint, ...]:
    """One endpoint for each of controller.listener.names that is bound or advertised, in that order.

    What advertised.listeners doesn't name is advertised as it is bound. The first listener, when bound to
    every address, takes its address from this node's entry in controller.quorum.voters.
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
    try:
        return parse_listeners(reader.get_list(key), _protocols(reader))
    except BadAddress as error:
        reader.problem(f"{key}: {error}")
        return ()


def _protocols(reader: ConfigReader) -> dict[str, str]:
    """Listener names to protocols. Where the map is not set, controller listeners are PLAINTEXT by default,
    unless a listener is named after a protocol that isn't."""
    names = reader.get_list(NAMES)
    try:
        protocols = parse_protocol_map(reader.get_text(PROTOCOL_MAP))
    except BadAddress as error:
        reader.problem(f"{PROTOCOL_MAP}: {error}")
        return {name: name for name in SECURITY_PROTOCOLS}
    bound_names = [entry.partition(":")[0].upper() for entry in reader.get_list(LISTENERS)]
    if not reader.is_set(PROTOCOL_MAP) and not set(SECURITY_PROTOCOLS[1:]) & {*names, *bound_names}:
        protocols |= dict.fromkeys(names, "PLAINTEXT")
    return protocols


def _by_name(endpoints: Sequence[Endpoint]) -> dict[str, Endpoint]:
    return {endpoint.name: endpoint for endpoint in endpoints}
