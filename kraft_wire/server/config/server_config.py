"""Read Kafka's server.properties as typed values, with its defaults and rules (KafkaConfig, QuorumConfig).

``load_server_config`` reads what ``kraft-wire server`` needs, ``load_node_config`` the part that formatting
needs, which a broker's file has as well. All problems in a file are reported together, in one
``ConfigError``. Keys without an effect here, and keys that Kafka itself ignores, become ``warnings``. Fields
exist only for keys that have an effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import javaproperties
import msgspec

from kraft_wire.configs.own_keys import MAX_HELD_BYTES
from kraft_wire.controller.settings import Settings
from kraft_wire.raft.config import MAX_WANTED_BYTES, MAX_WANTED_MS, QuorumTimings
from kraft_wire.security.secret import Secret
from kraft_wire.server.config.controller_listeners import (
    advertised_controller_listeners,
    controller_listeners,
    drafted_listeners,
    http_listener,
)
from kraft_wire.server.config.endpoints import (
    Endpoint,
    StaticVoter,
    parse_bootstrap_servers,
    parse_voters,
)
from kraft_wire.server.config.exporter_keys import exporters
from kraft_wire.server.config.policies import check_policies
from kraft_wire.server.config.reader import ConfigError, ConfigReader, config_key
from kraft_wire.wire.framing import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from kraft_wire.exporters.settings import ExporterSettings
else:
    ExporterSettings = object  # its module is imported only if there are exporters

QUORUM_PREFIX = "controller.quorum."
VOTERS = f"{QUORUM_PREFIX}voters"
BOOTSTRAP = f"{QUORUM_PREFIX}bootstrap.servers"


class NodeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The properties that every Kafka node has.

    ``advertised_listeners`` are the controller listeners at the addresses by which others reach them, in the
    order of ``controller_listener_names``; an empty host stands for this machine's name.
    """

    node_id: int
    process_roles: tuple[str, ...]
    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    controller_listener_names: tuple[str, ...]
    advertised_listeners: tuple[Endpoint, ...]
    voters: tuple[StaticVoter, ...]
    unstable_feature_versions_enable: bool = False

    @property
    def is_controller(self) -> bool:
        return "controller" in self.process_roles

    @property
    def directories(self) -> tuple[str, ...]:
        """All folders of the node, sorted."""
        return tuple(sorted({*self.log_dirs, self.metadata_log_dir}))


class QuorumSettings(QuorumTimings, frozen=True, kw_only=True):
    """The settings controller.quorum.*: one field per key, without the prefix."""

    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    auto_join_enable: bool = False


class SocketSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of listeners and connections: one field per key.

    ``kraft_wire_max_held_bytes`` bounds the requests and unsent responses of all connections.
    """

    socket_request_max_bytes: int = MAX_FRAME_BYTES
    socket_listen_backlog_size: int = 50
    connections_max_idle_ms: int = 600_000
    max_connections: int = 2**31 - 1
    kraft_wire_max_held_bytes: int = MAX_HELD_BYTES


class MetadataLogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes and ages of the metadata log's files: one field per key."""

    metadata_log_segment_bytes: int = 1024 * 1024 * 1024
    metadata_log_segment_ms: int = 604_800_000
    internal_metadata_log_segment_bytes: int | None = None
    kraft_wire_exporters_max_log_bytes: int = MAX_WANTED_BYTES
    kraft_wire_exporters_max_log_ms: int = MAX_WANTED_MS

    @property
    def segment_bytes(self) -> int:
        """The largest size of a segment. The internal key, which allows smaller ones, takes precedence."""
        return self.internal_metadata_log_segment_bytes or self.metadata_log_segment_bytes


class ServerConfig(NodeConfig, frozen=True, kw_only=True):
    """A controller's properties. ``listeners`` are the addresses to bind; port 0 is any free port. Those of
    ``drafted_listeners`` speak KIP-853 as it was drafted. ``http_listener`` is None if there is none.
    ``exporters`` run while this node is the active controller. ``is_observer``: the node never votes, and
    readers of the log read from it."""

    listeners: tuple[Endpoint, ...]
    drafted_listeners: tuple[str, ...]
    http_listener: Endpoint | None = None
    exporters: tuple[ExporterSettings, ...] = ()
    quorum: QuorumSettings
    sockets: SocketSettings
    metadata_log: MetadataLogSettings
    settings: Settings
    warnings: tuple[str, ...] = ()
    is_observer: bool = False


def load_server_config(path: str, overrides: Iterable[str] = ()) -> ServerConfig:
    """Read a controller's file; the ``key=value`` texts of ``overrides`` win over it. Raises ConfigError."""
    return server_config(_with_overrides(load_properties(path), overrides, path), path)


def load_node_config(path: str) -> NodeConfig:
    """Read the part of a controller's or broker's file that ``storage`` needs. Raises ConfigError."""
    return node_config(load_properties(path), path)


def load_properties(path: str) -> dict[str, str]:
    """Read the keys and values of a file, as Java does. Raises ConfigError."""
    try:
        with Path(path).open("rb") as file:
            return dict(javaproperties.load(file))
    except OSError as error:
        raise ConfigError(path, [f"cannot be read: {error.strerror}"]) from None
    except javaproperties.InvalidUEscapeError as error:
        raise ConfigError(path, [f"is not a properties file: {error}"]) from None


def node_config(properties: Mapping[str, str], source: str) -> NodeConfig:
    """Return what ``load_node_config`` does, from properties; errors name ``source``."""
    reader = ConfigReader(properties, source)
    fields = _node_fields(reader)
    reader.raise_problems()
    return msgspec.convert(fields, NodeConfig)


def server_config(properties: Mapping[str, str], source: str) -> ServerConfig:
    """Return what ``load_server_config`` does, from properties; errors name ``source``."""
    reader = ConfigReader(properties, source)
    fields = _node_fields(reader) | {
        "listeners": controller_listeners(reader),
        "drafted_listeners": drafted_listeners(reader),
        "http_listener": http_listener(reader),
        "exporters": exporters(reader),
        "quorum": _group(reader, QuorumSettings, QUORUM_PREFIX) | {"bootstrap_servers": _bootstrap(reader)},
        "sockets": _group(reader, SocketSettings),
        "metadata_log": _group(reader, MetadataLogSettings),
        "settings": _group(reader, Settings)
        | {
            "static_configs": dict(properties),
            "delegation_token_secret_key": _secret(reader, "delegation.token.secret.key"),
        },
    }
    _check_role(reader)
    check_policies(reader)
    _check_quorum(reader)
    _check_limits(reader)
    reader.note_unused_keys()
    reader.raise_problems()
    return msgspec.convert(fields | {"warnings": tuple(reader.warnings)}, ServerConfig)


def _with_overrides(properties: dict[str, str], overrides: Iterable[str], source: str) -> dict[str, str]:
    malformed = [
        f"--override {text!r} is not key=value"
        for text in overrides
        if "=" not in text or not text.partition("=")[0].strip()
    ]
    if malformed:
        raise ConfigError(source, malformed)
    return properties | {
        key.strip(): value.strip() for key, _, value in (text.partition("=") for text in overrides)
    }


def _node_fields(reader: ConfigReader) -> dict[str, object]:
    log_dirs = reader.get_list("log.dirs") or reader.get_list("log.dir")
    if not log_dirs:
        reader.problem("log.dirs is empty: give at least one folder")
    return {
        "node_id": reader.get("node.id"),
        "process_roles": reader.get_list("process.roles"),
        "log_dirs": log_dirs,
        "metadata_log_dir": reader.get("metadata.log.dir") or (log_dirs[0] if log_dirs else ""),
        "controller_listener_names": reader.get_list("controller.listener.names"),
        "advertised_listeners": advertised_controller_listeners(reader, _voters(reader)),
        "voters": _voters(reader),
        "unstable_feature_versions_enable": reader.get("unstable.feature.versions.enable"),
    }


def _group(reader: ConfigReader, group: type[msgspec.Struct], prefix: str = "") -> dict[str, object]:
    """Return the values of the fields of a settings class that are Kafka's keys."""
    keys = {field: prefix + field.replace("_", ".") for field in group.__struct_fields__}
    return {field: reader.get(key) for field, key in keys.items() if config_key(key) is not None}


def _secret(reader: ConfigReader, key: str) -> Secret | None:
    text = reader.get_text(key)
    return Secret(text) if text else None


def _voters(reader: ConfigReader) -> tuple[StaticVoter, ...]:
    return reader.without_problems(VOTERS, parse_voters(reader.get_list(VOTERS)))


def _bootstrap(reader: ConfigReader) -> tuple[tuple[str, int], ...]:
    return reader.without_problems(BOOTSTRAP, parse_bootstrap_servers(reader.get_list(BOOTSTRAP)))


def _check_role(reader: ConfigReader) -> None:
    roles = reader.get_list("process.roles")
    if "broker" in roles or (roles and "controller" not in roles):
        reader.problem(
            f"process.roles={','.join(roles)}: kraft-wire is a controller only; set process.roles=controller "
            "and run brokers as Kafka processes of their own"
        )
    if reader.is_set("broker.id") and reader.get("broker.id") != reader.get("node.id"):
        reader.problem("broker.id differs from node.id; remove broker.id")


def _check_quorum(reader: ConfigReader) -> None:
    voter_ids = sorted(voter.id for voter in _voters(reader))
    if not reader.get_list(VOTERS) and not reader.get_list(BOOTSTRAP):
        reader.problem(f"neither {BOOTSTRAP} nor {VOTERS} is set; name the controllers in the first one")
    node_id = reader.get("node.id")
    if (
        len(voter_ids) == len(reader.get_list(VOTERS)) > 0
        and node_id is not None
        and node_id not in voter_ids
    ):
        reader.problem(f"{VOTERS} has ids {voter_ids}, but node.id is {node_id}")


def _check_limits(reader: ConfigReader) -> None:
    for key, minimum in (("log.roll.ms", 1), ("log.roll.jitter.ms", 0)):
        if reader.is_set(key) and reader.get_int(key) < minimum:
            reader.problem(f"{key}={reader.get_int(key)}: must be at least {minimum}")
    retention_keys = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
    retention_key = next(filter(reader.is_set, retention_keys), retention_keys[-1])
    if reader.get_int(retention_key) == 0:
        reader.problem(f"{retention_key}=0: must be at least 1, or negative for no limit")
    heartbeat_ms = reader.get_int("broker.heartbeat.interval.ms")
    session_ms = reader.get_int("broker.session.timeout.ms")
    if 2 * heartbeat_ms > session_ms:
        reader.warnings.append(
            f"broker.session.timeout.ms={session_ms} is less than two heartbeats of {heartbeat_ms} ms: "
            "live brokers will be fenced"
        )
