"""Kafka's server.properties as typed values: its keys, its defaults, its rules (KafkaConfig, QuorumConfig).

``load_server_config`` reads what ``kraft-wire server`` needs; ``load_node_config`` the part that formatting a
folder needs, which Kafka's brokers have too. Everything that is wrong with a file is told at once, in one
``ConfigError``. Keys without an effect here, and keys that Kafka itself ignores, become ``warnings``: a field
exists only for a key that something heeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import javaproperties
import msgspec

from kraft_wire.controller.settings import Settings
from kraft_wire.server.config_endpoints import (
    BadAddress,
    Endpoint,
    StaticVoter,
    parse_host_port,
    parse_voters,
)
from kraft_wire.server.config_listeners import advertised_controller_listeners, controller_listeners
from kraft_wire.server.config_reader import ConfigError, ConfigReader, config_key

QUORUM_PREFIX = "controller.quorum."


class NodeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What any Kafka node is, as its properties file says it.

    ``advertised_listeners`` are the controller listeners under the names that others reach them by, in the
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
        """Every folder that the node keeps something in, sorted."""
        return tuple(sorted({*self.log_dirs, self.metadata_log_dir}))


class QuorumSettings(msgspec.Struct, frozen=True, kw_only=True):
    """controller.quorum.*: one field a key, without the prefix."""

    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    election_timeout_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_bytes: int = 1024 * 1024
    fetch_snapshot_max_bytes: int = 1024 * 1024


class SocketSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of listeners and connections: one field a key."""

    socket_request_max_bytes: int = 100 * 1024 * 1024
    socket_listen_backlog_size: int = 50
    connections_max_idle_ms: int = 600_000
    max_connections: int = 2**31 - 1


class MetadataLogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes and ages of the metadata log's files: one field a key."""

    metadata_log_segment_bytes: int = 1024 * 1024 * 1024
    metadata_log_segment_ms: int = 604_800_000
    internal_metadata_log_segment_bytes: int | None = None

    @property
    def segment_bytes(self) -> int:
        """A segment's largest size: the internal key, which may be below Kafka's minimum, comes first."""
        return self.internal_metadata_log_segment_bytes or self.metadata_log_segment_bytes


class ServerConfig(NodeConfig, frozen=True, kw_only=True):
    """A controller's properties file. ``listeners`` are what to bind, port 0 being any free port."""

    listeners: tuple[Endpoint, ...]
    quorum: QuorumSettings
    sockets: SocketSettings
    metadata_log: MetadataLogSettings
    settings: Settings
    warnings: tuple[str, ...] = ()


def load_server_config(path: str, overrides: Iterable[str] = ()) -> ServerConfig:
    """Read a controller's file; the ``key=value`` texts of ``overrides`` win over it. Raises ConfigError."""
    return server_config(_with_overrides(load_properties(path), overrides, path), path)


def load_node_config(path: str) -> NodeConfig:
    """Read of a controller's or broker's file what ``storage`` commands need. Raises ConfigError."""
    return node_config(load_properties(path), path)


def load_properties(path: str) -> dict[str, str]:
    """The file's keys and values, read as Java reads them. Raises ConfigError."""
    try:
        with Path(path).open("rb") as file:
            return dict(javaproperties.load(file))
    except OSError as error:
        raise ConfigError(path, [f"cannot be read: {error.strerror}"]) from None
    except javaproperties.InvalidUEscapeError as error:
        raise ConfigError(path, [f"is not a properties file: {error}"]) from None


def node_config(properties: Mapping[str, str], source: str) -> NodeConfig:
    """Like ``load_node_config``, of properties that are already read; errors name ``source``."""
    reader = ConfigReader(properties, source)
    fields = _node_fields(reader)
    reader.raise_problems()
    return msgspec.convert(fields, NodeConfig)


def server_config(properties: Mapping[str, str], source: str) -> ServerConfig:
    """Like ``load_server_config``, of properties that are already read; errors name ``source``."""
    reader = ConfigReader(properties, source)
    fields = _node_fields(reader) | {
        "listeners": controller_listeners(reader),
        "quorum": _group(reader, QuorumSettings, QUORUM_PREFIX) | {"bootstrap_servers": _bootstrap(reader)},
        "sockets": _group(reader, SocketSettings),
        "metadata_log": _group(reader, MetadataLogSettings),
        "settings": _group(reader, Settings) | {"static_configs": dict(properties)},
    }
    _check_role(reader)
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
        reader.problem("log.dirs names no folder")
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
    """The fields of a settings class that are keys of Kafka's."""
    keys = {field: prefix + field.replace("_", ".") for field in group.__struct_fields__}
    return {field: reader.get(key) for field, key in keys.items() if config_key(key) is not None}


def _voters(reader: ConfigReader) -> tuple[StaticVoter, ...]:
    try:
        return parse_voters(reader.get_list("controller.quorum.voters"))
    except BadAddress as error:
        reader.problem(f"controller.quorum.voters: {error}")
        return ()


def _bootstrap(reader: ConfigReader) -> tuple[tuple[str, int], ...]:
    try:
        return tuple(
            parse_host_port(entry) for entry in reader.get_list("controller.quorum.bootstrap.servers")
        )
    except BadAddress as error:
        reader.problem(f"controller.quorum.bootstrap.servers: {error}")
        return ()


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
    if not voter_ids and not reader.get_list("controller.quorum.bootstrap.servers"):
        reader.problem(
            "neither controller.quorum.bootstrap.servers nor controller.quorum.voters is set; "
            "name the controllers in the first one"
        )
    node_id = reader.get("node.id")
    if voter_ids and node_id is not None and node_id not in voter_ids:
        reader.problem(f"controller.quorum.voters has ids {voter_ids}, but node.id is {node_id}")


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
            "brokers that live will be fenced"
        )
