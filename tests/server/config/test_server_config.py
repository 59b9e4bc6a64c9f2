"""server.properties: Kafka's keys, defaults and rules, and what is said of files that break them."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from kraft_wire.controller.settings import Settings
from kraft_wire.server.config.endpoints import Endpoint, StaticVoter
from kraft_wire.server.config.reader import KEYS, ConfigError
from kraft_wire.server.config.server_config import (
    MetadataLogSettings,
    QuorumSettings,
    SocketSettings,
    load_node_config,
    load_properties,
    load_server_config,
    node_config,
    server_config,
)

MINIMAL = {
    "process.roles": "controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9193",
    "listeners": "CONTROLLER://127.0.0.1:9193",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/data",
}
BROKER = {
    "process.roles": "broker",
    "node.id": "2",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9193",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/data/a, /data/b",
}


def problems_of(changes: dict[str, str], *without: str) -> tuple[str, ...]:
    properties = {key: value for key, value in (MINIMAL | changes).items() if key not in without}
    with pytest.raises(ConfigError) as caught:
        server_config(properties, "server.properties")
    return caught.value.problems


def test_a_small_file_gives_kafkas_defaults() -> None:
    config = server_config(MINIMAL, "server.properties")
    assert config.node_id == 1
    assert config.process_roles == ("controller",)
    assert config.listeners == (Endpoint("CONTROLLER", "127.0.0.1", 9193),)
    assert config.advertised_listeners == config.listeners
    assert config.quorum == QuorumSettings(bootstrap_servers=(("127.0.0.1", 9193),))
    assert config.sockets == SocketSettings()
    assert config.metadata_log == MetadataLogSettings()
    assert config.settings == Settings(node_id=1, static_configs=MINIMAL)
    assert (config.log_dirs, config.metadata_log_dir) == (("/data",), "/data")
    assert (config.voters, config.warnings) == ((), ())


@pytest.mark.parametrize(
    ("group", "prefix"),
    [(Settings, ""), (SocketSettings, ""), (MetadataLogSettings, ""), (QuorumSettings, "controller.quorum.")],
)
def test_the_defaults_in_code_are_those_of_the_facts(group: type[msgspec.Struct], prefix: str) -> None:
    for field in msgspec.structs.fields(group):
        key = KEYS.get(prefix + field.name.replace("_", "."))
        if key is None:
            assert field.name == "static_configs"
        elif key.default is not None and key.type != "LIST":
            assert field.default == key.parse(key.default), field.name


def test_values_reach_the_settings() -> None:
    config = server_config(
        MINIMAL
        | {
            "num.partitions": " 7 ",
            "delete.topic.enable": "FALSE",
            "controller.quorum.election.timeout.ms": "123",
            "socket.request.max.bytes": "4096",
            "internal.metadata.log.segment.bytes": "10000",
            "metadata.log.dir": "/meta",
            "metadata.max.retention.bytes": "-1",
            "kraft.wire.max.request.entries": "170",
        },
        "server.properties",
    )
    assert config.settings.kraft_wire_max_request_entries == 170
    assert not config.warnings
    assert config.settings.num_partitions == 7
    assert config.settings.delete_topic_enable is False
    assert config.settings.metadata_max_retention_bytes == -1
    assert config.settings.static_configs["num.partitions"] == " 7 "
    assert config.quorum.election_timeout_ms == 123
    assert config.sockets.socket_request_max_bytes == 4096
    assert config.metadata_log.segment_bytes == 10_000
    assert config.metadata_log_dir == "/meta"
    assert config.directories == ("/data", "/meta")


def test_broker_id_stands_in_for_node_id() -> None:
    properties = {key: value for key, value in MINIMAL.items() if key != "node.id"}
    assert server_config(properties | {"broker.id": "4"}, "f").node_id == 4
    assert problems_of({"broker.id": "4"}) == ("broker.id differs from node.id; remove broker.id",)


def test_every_problem_is_told_at_once_under_the_file_s_name() -> None:
    properties = {
        "process.roles": "controler",
        "node.id": "-1",
        "num.partitions": "0",
        "broker.session.timeout.ms": "99999999999",
        "metadata.log.segment.bytes": "1_000",
        "listeners": "CONTROLLER:9193",
    }
    with pytest.raises(ConfigError) as caught:
        server_config(properties, "server.properties")
    text = str(caught.value)
    assert text.splitlines()[0] == f"server.properties: {len(caught.value.problems)} problems"
    for line in (
        "process.roles=controler: controler is not one of broker, controller",
        "node.id=-1: must be at least 0",
        "num.partitions=0: must be at least 1",
        "broker.session.timeout.ms=99999999999: must be a whole number of 32 bits",
        "metadata.log.segment.bytes=1_000: must be a whole number of 32 bits",
        "controller.listener.names is missing",
        "listeners: 'CONTROLLER:9193' is not NAME://host:port",
        "neither controller.quorum.bootstrap.servers nor controller.quorum.voters is set; "
        "name the controllers in the first one",
    ):
        assert f"  {line}" in text.splitlines()


def test_one_problem_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^f: num\.partitions=0: must be at least 1$"):
        server_config(MINIMAL | {"num.partitions": "0"}, "f")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"process.roles": "broker,controller"},
            "process.roles=broker,controller: kraft-wire is a controller only; set process.roles=controller "
            "and run brokers as Kafka processes of their own",
        ),
        (
            {"listener.security.protocol.map": "CONTROLLER:SSL"},
            "listener.security.protocol.map: listener CONTROLLER wants SSL; "
            "only PLAINTEXT is supported so far",
        ),
        (
            {"listener.security.protocol.map": "CONTROLLER:PLAIN"},
            "listener.security.protocol.map: 'CONTROLLER:PLAIN': unknown security protocol; "
            "the nearest is PLAINTEXT; use one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        (
            {"listeners": "CONTROLLER://:9193,EXTRA://:9194", "controller.listener.names": "CONTROLLER"},
            "listeners: EXTRA is not in controller.listener.names, and a controller has no others",
        ),
        (
            {"listeners": "CONTROLLER://:9193,PLAINTEXT://:9194"},
            "listeners: PLAINTEXT is not in controller.listener.names, and a controller has no others",
        ),
        (
            {"controller.listener.names": "CONTROLLER,OTHER"},
            "controller.listener.names=OTHER: listeners has no listener of that name (in upper case)",
        ),
        (
            {"listeners": "CONTROLLER://:9193,B://:9193", "controller.listener.names": "CONTROLLER,B"},
            "listeners: listeners CONTROLLER and B both want port 9193",
        ),
        (
            {"listeners": "CONTROLLER://:99999"},
            "listeners: the port in 'CONTROLLER://:99999' is not within 0 to 65535",
        ),
        (
            {"advertised.listeners": "CONTROLLER://0.0.0.0:9193"},
            "advertised.listeners: nobody can reach 0.0.0.0; give an address",
        ),
        ({"controller.quorum.voters": "1@:9193"}, "controller.quorum.voters: ':9193' is not host:port"),
        ({"controller.quorum.voters": "1@h:1,1@g:1"}, "controller.quorum.voters: node id 1 is given twice"),
        ({"controller.quorum.voters": "x@h:1"}, "controller.quorum.voters: 'x@h:1' is not id@host:port"),
        (
            {"controller.quorum.voters": "2@h:1,3@h:1"},
            "controller.quorum.voters has ids [2, 3], but node.id is 1",
        ),
        (
            {"controller.quorum.bootstrap.servers": "h"},
            "controller.quorum.bootstrap.servers: 'h' is not host:port",
        ),
        ({"log.roll.ms": "0"}, "log.roll.ms=0: must be at least 1"),
        ({"log.retention.hours": "0"}, "log.retention.hours=0: must be at least 1, or negative for no limit"),
        ({"delete.topic.enable": "yes"}, "delete.topic.enable=yes: must be true or false"),
        (
            {"compression.type": "brotli"},
            "compression.type=brotli: must be one of uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            {"authorizer.class.name": "org.example.Authorizer"},
            "authorizer.class.name is not supported: there is no authorization yet, so every "
            "request would be permitted; remove it",
        ),
    ],
)
def test_what_is_refused(changes: dict[str, str], problem: str) -> None:
    assert problem in problems_of(changes)


def test_an_empty_file_lacks_the_role_first() -> None:
    assert problems_of(
        {},
        "process.roles",
        "node.id",
        "controller.listener.names",
        "listeners",
        "controller.quorum.bootstrap.servers",
    ) == (
        "process.roles is missing",
        "node.id is missing",
        "controller.listener.names is missing",
        "listeners is missing: give an address, such as CONTROLLER://:9093",
        "neither controller.quorum.bootstrap.servers nor controller.quorum.voters is set; "
        "name the controllers in the first one",
    )


def test_a_required_key_that_is_missing_is_named() -> None:
    assert problems_of({}, "node.id") == ("node.id is missing",)


def test_keys_without_effect_become_warnings() -> None:
    config = server_config(
        MINIMAL
        | {
            "num.io.threads": "4",
            "listener.name.controller.ssl.keystore.location": "/x",
            "retention.ms": "5",
            "log.retention.ms": "5",
            "min.insync.replicas": "2",
            "group.consumer.max.session.timeout.ms": "70000",
            "config.providers": "",
            "controller.quorum.append.linger.ms": "5",
        },
        "f",
    )
    assert config.warnings == (
        "config.providers has no effect: kraft-wire doesn't use this Kafka key",
        "controller.quorum.append.linger.ms has no effect: kraft-wire doesn't use this Kafka key",
        "listener.name.controller.ssl.keystore.location has no effect: kraft-wire doesn't use this Kafka key",
        "num.io.threads has no effect: kraft-wire doesn't use this Kafka key",
        "retention.ms is not a key of Kafka 4.4.0 and is ignored; the nearest is log.retention.ms",
    )


def test_a_session_timeout_below_two_heartbeats_is_warned_of() -> None:
    config = server_config(MINIMAL | {"broker.session.timeout.ms": "3000"}, "f")
    assert config.warnings == (
        "broker.session.timeout.ms=3000 is less than two heartbeats of 2000 ms: live brokers will be fenced",
    )


def test_listeners_may_share_a_port_between_ip_versions() -> None:
    config = server_config(
        MINIMAL | {"listeners": "A://127.0.0.1:9193,b://[::1]:9193", "controller.listener.names": "A,B"},
        "f",
    )
    assert config.listeners == (Endpoint("A", "127.0.0.1", 9193), Endpoint("B", "::1", 9193))
    assert [endpoint.address for endpoint in config.listeners] == ["127.0.0.1:9193", "[::1]:9193"]


def test_advertised_listeners_win_over_bound_ones_in_the_order_of_the_names() -> None:
    config = server_config(
        MINIMAL
        | {
            "listeners": "A://:9193,B://0.0.0.0:9194",
            "controller.listener.names": "B,A",
            "advertised.listeners": "A://host.example:19193",
        },
        "f",
    )
    assert config.advertised_listeners == (Endpoint("B", "", 9194), Endpoint("A", "host.example", 19193))


def test_a_wildcard_listener_is_advertised_under_the_static_voter_s_address() -> None:
    config = server_config(
        MINIMAL | {"listeners": "CONTROLLER://:9193", "controller.quorum.voters": "1@c1.example:9193"}, "f"
    )
    assert config.voters == (StaticVoter(1, "c1.example", 9193),)
    assert config.advertised_listeners == (Endpoint("CONTROLLER", "c1.example", 9193),)


def test_a_broker_s_file_gives_what_formatting_needs() -> None:
    config = node_config(BROKER, "f")
    assert not config.is_controller
    assert config.directories == ("/data/a", "/data/b")
    assert config.metadata_log_dir == "/data/a"
    assert config.advertised_listeners == ()
    with pytest.raises(ConfigError, match="kraft-wire is a controller only"):
        server_config(BROKER, "f")


def test_files_are_read_as_java_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(
        b"# comment\n! too\nnode.id : 5\nlog.dirs=/a,\\\n   /b\nx=caf\\u00e9 \xe9\n" + b"node.id=6\n"
    )
    assert load_properties(str(path)) == {"node.id": "6", "log.dirs": "/a,/b", "x": "café é"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.properties")
    with pytest.raises(ConfigError, match=r"missing\.properties: cannot be read: No such file"):
        load_node_config(missing)
    broken = tmp_path / "broken.properties"
    broken.write_text("a=\\u12")
    with pytest.raises(ConfigError, match=r"broken\.properties: is not a properties file"):
        load_properties(str(broken))


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in MINIMAL.items()))
    config = load_server_config(str(path), ["node.id=9", "num.partitions = 3", "foo=a=b"])
    assert (config.node_id, config.settings.num_partitions) == (9, 3)
    assert config.settings.static_configs["foo"] == "a=b"
    with pytest.raises(ConfigError, match=r"--override 'node\.id' is not key=value"):
        load_server_config(str(path), ["node.id"])
    with pytest.raises(ConfigError, match="--override '=9' is not key=value"):
        load_server_config(str(path), ["=9"])


@pytest.mark.parametrize("listeners", ["garbage", "CONTROLLER://127.0.0.1:99999"])
def test_listeners_that_cannot_be_read_are_one_problem(listeners: str) -> None:
    (problem,) = problems_of({"listeners": listeners})
    assert problem.startswith("listeners: ")


def test_every_entry_of_a_list_is_checked() -> None:
    changes = {
        "listeners": "CONTROLLER://127.0.0.1:9193,FOO,CONTROLLER://:9194,B://:99999",
        "controller.listener.names": "CONTROLLER,B",
        "controller.quorum.voters": "x@h:1,1@h,2@h:1",
        "controller.quorum.bootstrap.servers": "h,g",
        "num.partitions": "0",
    }
    assert sorted(problems_of(changes)) == [
        "controller.quorum.bootstrap.servers: 'g' is not host:port",
        "controller.quorum.bootstrap.servers: 'h' is not host:port",
        "controller.quorum.voters: 'h' is not host:port",
        "controller.quorum.voters: 'x@h:1' is not id@host:port",
        "listeners: 'FOO' is not NAME://host:port",
        "listeners: listener CONTROLLER is given twice",
        "listeners: the port in 'B://:99999' is not within 0 to 65535",
        "num.partitions=0: must be at least 1",
    ]


def test_every_entry_of_the_protocol_map_is_checked() -> None:
    problems = problems_of({"listener.security.protocol.map": "CONTROLLER:PLAN,FOO,B:SSL"})
    assert len(problems) == 2
    assert problems[1] == "listener.security.protocol.map: 'FOO' is not LISTENER:PROTOCOL"


def test_a_typo_in_the_names_of_listeners_is_named_as_one() -> None:
    names = "controller.listener.names"
    assert problems_of({names: "CONTROLER"}) == (
        f"{names}=CONTROLER: listeners has no such listener; the nearest is CONTROLLER",
    )
    listeners = {"listeners": "CONTROLLER://:1,EXTRA://:2"}
    assert problems_of({names: "CONTROLER"} | listeners) == (
        f"{names}=CONTROLER: listeners has no such listener; the nearest is CONTROLLER",
        f"listeners: EXTRA is not in {names}, and a controller has no others",
    )


def test_a_listener_that_is_bound_is_no_typo_of_another() -> None:
    listeners = {"listeners": "CONTROLLER://:1,CONTROLLER2://:2"}
    assert problems_of(listeners) == (
        "listeners: CONTROLLER2 is not in controller.listener.names, and a controller has no others",
    )


def test_warnings_are_not_lost_beside_problems() -> None:
    with pytest.raises(ConfigError) as caught:
        server_config(MINIMAL | {"num.partitions": "0", "num.io.threads": "3", "listners": "x"}, "f")
    assert str(caught.value).splitlines() == [
        "f: num.partitions=0: must be at least 1",
        "  warning: listners is not a key of Kafka 4.4.0 and is ignored; the nearest is listeners",
        "  warning: num.io.threads has no effect: kraft-wire doesn't use this Kafka key",
    ]


def test_a_misspelt_key_of_our_own_is_an_error() -> None:
    """Otherwise the default would stay."""
    problem = "kraft.wire.max.held.byte is not a key of kraft-wire; the nearest is kraft.wire.max.held.bytes"
    with pytest.raises(ConfigError, match=f"^f: {re.escape(problem)}$"):
        server_config(MINIMAL | {"kraft.wire.max.held.byte": "20000000"}, "f")


def test_no_listener_speaks_the_draft_by_default() -> None:
    assert server_config(MINIMAL, "f").drafted_listeners == ()


def test_a_listener_speaks_the_draft_if_it_is_named() -> None:
    key = {"kraft.wire.kip853.draft.listeners": "controller"}
    assert server_config(MINIMAL | key, "f").drafted_listeners == ("CONTROLLER",)


def test_a_drafted_listener_must_be_a_controller_listener() -> None:
    assert problems_of({"kraft.wire.kip853.draft.listeners": "CONTROLER"}) == (
        "kraft.wire.kip853.draft.listeners: CONTROLER is not in controller.listener.names; the nearest is "
        "CONTROLLER",
    )


def test_there_is_no_http_listener_by_default() -> None:
    assert server_config(MINIMAL, "f").http_listener is None


def test_the_address_of_the_http_listener() -> None:
    key = {"kraft.wire.http.listener": "[::1]:0"}
    assert server_config(MINIMAL | key, "f").http_listener == Endpoint("HTTP", "::1", 0)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("9404", "'9404' is not host:port"),
        ("localhost:99999", "99999"),
        ("localhost:9093", "both want port 9093"),
    ],
)
def test_a_bad_address_of_the_http_listener_is_a_problem(address: str, problem: str) -> None:
    (text,) = problems_of({"kraft.wire.http.listener": address, "listeners": "CONTROLLER://:9093"})
    assert text.startswith("kraft.wire.http.listener: ")
    assert problem in text


def test_exporters_are_read_by_their_names() -> None:
    keys = {
        "kraft.wire.exporters": "audit",
        "kraft.wire.exporter.audit.type": "jsonl",
        "kraft.wire.exporter.audit.path": "/var/audit",
    }
    config = server_config(MINIMAL | keys, "f")
    assert [exporter.name for exporter in config.exporters] == ["audit"]
    assert config.warnings == ()
    assert server_config(MINIMAL, "f").exporters == ()


def test_problems_of_exporters_are_told_with_all_others() -> None:
    keys = {"kraft.wire.exporters": "audit", "kraft.wire.exporter.audit.typ": "jsonl", "node.id": "-1"}
    assert problems_of(keys) == (
        "node.id=-1: must be at least 0",
        "kraft.wire.exporter.audit.type: is missing",
        "kraft.wire.exporter.audit.typ: an exporter of this type has no such key; the nearest is type",
    )
    assert problems_of({"kraft.wire.exporter.audit.type": "jsonl"}) == (
        "kraft.wire.exporter.audit.type: kraft.wire.exporters names no exporter 'audit'",
    )
    assert problems_of({"kraft.wire.exporter": "audit"}) == (
        "kraft.wire.exporter is not a key of kraft-wire; the nearest is kraft.wire.exporters",
    )
