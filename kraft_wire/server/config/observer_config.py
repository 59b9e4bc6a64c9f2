"""Make the configuration of ``kraft-wire observe`` from its options and a properties file. No I/O.

An observer is a server like a controller, with fewer choices: it never votes, its folder and its addresses
come from the command line, and it speaks PLAINTEXT only, in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kraft_wire.configs.own_keys import HTTP_LISTENER_KEY
from kraft_wire.server.config.controller_listeners import NAMES, PROTOCOL_MAP
from kraft_wire.server.config.reader import ConfigError
from kraft_wire.server.config.server_config import BOOTSTRAP, VOTERS, ServerConfig, server_config
from kraft_wire.wire.address import Address

LISTENER_NAME: Final = "CONTROLLER"
SECURITY_PREFIXES: Final = ("listener.name.", "sasl.", "security.protocol", "ssl.")

_SET_BY_OPTION: Final[Mapping[str, str]] = {
    "node.id": "--node-id",
    "broker.id": "--node-id",
    "log.dir": "--dir",
    "log.dirs": "--dir",
    "metadata.log.dir": "--dir",
    "listeners": "--listener",
    BOOTSTRAP: "--bootstrap",
    VOTERS: "--bootstrap",
}
"""Keys that an observer's file may not have, and the options that take their place."""

_NOT_FOR_OBSERVERS: Final = ("process.roles", "controller.quorum.auto.join.enable")


class ObserverOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command. ``listener`` and ``http`` are HOST:PORT; ``http`` is None for what the
    file says."""

    node_id: int
    folder: str
    bootstrap: Sequence[Address]
    listener: str
    http: str | None = None


def observer_config(
    options: ObserverOptions, properties: Mapping[str, str] | None = None, source: str = "kraft-wire observe"
) -> ServerConfig:
    """Return the configuration; ``properties`` are those of the file ``source``, with Kafka's keys and ours.

    Raises ConfigError, also for keys that would have to mean something else for an observer.
    """
    given = dict(properties or {})
    problems = [*_unfit_keys(given)]
    if problems:
        raise ConfigError(source, problems)
    config = server_config(given | _own_keys(options, given), source)
    return msgspec.structs.replace(config, is_observer=True)


def _own_keys(options: ObserverOptions, given: Mapping[str, str]) -> dict[str, str]:
    name = given.get(NAMES, LISTENER_NAME)
    keys = {
        "process.roles": "controller",
        "node.id": str(options.node_id),
        "log.dirs": options.folder,
        NAMES: name,
        "listeners": f"{name.partition(',')[0].strip()}://{options.listener}",
        BOOTSTRAP: ",".join(str(address) for address in options.bootstrap),
    }
    return keys if options.http is None else keys | {HTTP_LISTENER_KEY: options.http}


def _unfit_keys(given: Mapping[str, str]) -> Iterator[str]:
    for key in given:
        if key in _SET_BY_OPTION:
            yield f"{key}: an observer takes this from {_SET_BY_OPTION[key]}; remove the key"
        elif key in _NOT_FOR_OBSERVERS:
            yield f"{key}: an observer has no other role, and never votes; remove the key"
        elif key.startswith(SECURITY_PREFIXES):
            yield f"{key}: an observer has no TLS and no SASL yet, only PLAINTEXT; remove the key"
    protocols = given.get(PROTOCOL_MAP, "")
    if any(entry.rpartition(":")[2].strip() not in ("PLAINTEXT", "") for entry in protocols.split(",")):
        yield f"{PROTOCOL_MAP}={protocols}: an observer has no TLS and no SASL yet, only PLAINTEXT"
