"""The configuration of ``kraft-wire observe``, from its options and a properties file."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.server.config.endpoints import Endpoint
from kraft_wire.server.config.observer_config import ObserverOptions, observer_config
from kraft_wire.server.config.reader import ConfigError
from kraft_wire.wire.address import Address

BOOTSTRAP = (Address("host1", 9093), Address("::1", 9094))


def options(**changes: Any) -> ObserverOptions:
    return ObserverOptions(
        **{"node_id": 7, "folder": "/data", "bootstrap": BOOTSTRAP, "listener": "host4:9095", **changes}
    )


def problems_of(properties: dict[str, str], **changes: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        observer_config(options(**changes), properties, "observer.properties")
    return caught.value.problems


def test_the_options_say_where_it_is_and_whom_it_follows() -> None:
    config = observer_config(options(http="host4:9096"))
    assert config.is_observer
    assert (config.node_id, config.log_dirs, config.metadata_log_dir) == (7, ("/data",), "/data")
    assert config.quorum.bootstrap_servers == (("host1", 9093), ("::1", 9094))
    assert not config.quorum.auto_join_enable
    assert config.voters == ()
    assert config.listeners == (Endpoint("CONTROLLER", "host4", 9095),)
    assert config.advertised_listeners == config.listeners
    assert config.http_listener == Endpoint("HTTP", "host4", 9096)
    assert config.warnings == ()


def test_a_file_adds_other_keys() -> None:
    properties = {
        "controller.listener.names": "CTRL",
        "advertised.listeners": "CTRL://observer.example:9095",
        "metadata.max.retention.bytes": "12345678",
        "kraft.wire.http.listener": "host4:9096",
        "listener.security.protocol.map": "CTRL:PLAINTEXT",
    }
    config = observer_config(options(listener="0.0.0.0:9095"), properties)
    assert config.listeners == (Endpoint("CTRL", "0.0.0.0", 9095),)
    assert config.advertised_listeners == (Endpoint("CTRL", "observer.example", 9095),)
    assert config.settings.metadata_max_retention_bytes == 12345678
    assert config.http_listener == Endpoint("HTTP", "host4", 9096)


def test_the_option_for_http_wins_over_the_file() -> None:
    config = observer_config(options(http="host4:1"), {"kraft.wire.http.listener": "host4:2"})
    assert config.http_listener == Endpoint("HTTP", "host4", 1)


@pytest.mark.parametrize(
    ("key", "option"),
    [
        ("node.id", "--node-id"),
        ("broker.id", "--node-id"),
        ("log.dir", "--dir"),
        ("log.dirs", "--dir"),
        ("metadata.log.dir", "--dir"),
        ("listeners", "--listener"),
        ("controller.quorum.bootstrap.servers", "--bootstrap"),
        ("controller.quorum.voters", "--bootstrap"),
    ],
)
def test_what_an_option_says_is_refused_in_the_file(key: str, option: str) -> None:
    (problem,) = problems_of({key: "1"})
    assert problem == f"{key}: an observer takes this from {option}; remove the key"


@pytest.mark.parametrize("key", ["process.roles", "controller.quorum.auto.join.enable"])
def test_an_observer_gets_no_other_role(key: str) -> None:
    (problem,) = problems_of({key: "true"})
    assert problem.startswith(f"{key}: an observer has no other role, and never votes")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("security.protocol", "SSL"),
        ("sasl.mechanism", "PLAIN"),
        ("ssl.truststore.location", "/a"),
        ("listener.name.controller.sasl.enabled.mechanisms", "PLAIN"),
        ("listener.security.protocol.map", "CONTROLLER:SASL_SSL"),
    ],
)
def test_security_options_are_refused_and_not_ignored(key: str, value: str) -> None:
    (problem,) = problems_of({key: value})
    assert problem.startswith(key)
    assert "no TLS and no SASL yet" in problem


def test_problems_of_the_options_name_the_key_that_they_set() -> None:
    (problem,) = problems_of({}, listener="host4")
    assert "host4" in problem


def test_all_unfit_keys_are_told_together() -> None:
    assert len(problems_of({"node.id": "1", "ssl.key.password": "x"})) == 2
