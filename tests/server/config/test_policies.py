"""Policies of other packages are found as entry points, and can't do harm by failing."""

from __future__ import annotations

import logging
from importlib import invalidate_caches
from pathlib import Path

import pytest

from kraft_wire.controller.policies import NewTopic
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.server.config.policies import ALTER_CONFIG, CREATE_TOPIC, make_policies
from kraft_wire.server.config.reader import ConfigError
from kraft_wire.server.config.server_config import server_config

MINIMAL = {
    "process.roles": "controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://localhost:9093",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "log.dirs": "/data",
}
TOPIC = NewTopic("some-topic", 1, 1, None, {})
MODULE = """
from kraft_wire.controller.policies import PolicyViolation

NUMBER = 1


class Prefix:
    def __init__(self, properties):
        self.prefix = properties["topic.prefix"]

    def validate(self, topic):
        if topic.topic == "boom":
            raise ZeroDivisionError("secret " + topic.topic)
        if not topic.topic.startswith(self.prefix):
            raise PolicyViolation(f"names begin with {self.prefix}")
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with one good policy and two bad ones."""
    (tmp_path / "topic_rules.py").write_text(MODULE)
    info = tmp_path / "topic_rules-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: topic-rules\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[kraft_wire.create_topic_policies]\n"
        "prefix = topic_rules:Prefix\n"
        "gone = topic_rules_gone:Prefix\n"
        "number = topic_rules:NUMBER\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    invalidate_caches()


def problems_of(key: str, name: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as error:
        server_config(MINIMAL | {key: name}, "f")
    return error.value.problems


def test_a_policy_gets_the_properties_and_decides() -> None:
    properties = MINIMAL | {CREATE_TOPIC: " prefix ", "topic.prefix": "team-"}
    server_config(properties, "f")
    policies = make_policies(properties)
    assert policies.alter_config is None
    policies.check_topic(lambda: NewTopic("team-a", 1, 1, None, {}))
    with pytest.raises(ApiError, match="names begin with team-") as error:
        policies.check_topic(lambda: TOPIC)
    assert error.value.code == ErrorCode.POLICY_VIOLATION


def test_without_a_policy_everything_is_allowed() -> None:
    server_config(MINIMAL | {CREATE_TOPIC: "", ALTER_CONFIG: " "}, "f")
    policies = make_policies({CREATE_TOPIC: "", ALTER_CONFIG: " "})
    assert (policies.create_topic, policies.alter_config) == (None, None)


def test_a_java_class_is_a_problem_that_names_what_there_is() -> None:
    (problem,) = problems_of(CREATE_TOPIC, "org.example.Policy")
    assert problem == (
        "create.topic.policy.class.name=org.example.Policy: no installed package has an entry point of this "
        "name in the group kraft_wire.create_topic_policies; known are: gone, number, prefix. Java classes "
        "can't run here: write the policy in Python, or remove the key"
    )
    (problem,) = problems_of(ALTER_CONFIG, "prefix")
    assert "in the group kraft_wire.alter_config_policies; known are: none" in problem


def test_a_policy_that_can_not_be_loaded_is_a_problem() -> None:
    (gone,) = problems_of(CREATE_TOPIC, "gone")
    assert "gone can't be loaded from topic_rules_gone:Prefix: ModuleNotFoundError" in gone
    (number,) = problems_of(CREATE_TOPIC, "number")
    assert number == "create.topic.policy.class.name=number: topic_rules:NUMBER is no class and no function"


def test_a_policy_that_can_not_be_made_keeps_the_controller_from_starting() -> None:
    with pytest.raises(ConfigError) as error:
        make_policies({CREATE_TOPIC: "prefix"})
    assert str(error.value) == (
        "create.topic.policy.class.name=prefix: the policy failed: KeyError: 'topic.prefix'"
    )


def test_a_policy_that_fails_refuses_what_it_was_asked_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    policies = make_policies({CREATE_TOPIC: "prefix", "topic.prefix": ""})
    with pytest.raises(ApiError, match="failed with ZeroDivisionError") as error:
        policies.check_topic(lambda: NewTopic("boom", 1, 1, None, {}))
    assert error.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
    (record,) = caplog.records
    assert (record.levelno, record.message) == (logging.ERROR, "policy failed")
    fields = record.__dict__["fields"]
    assert fields["asked"] == "topic boom" and "in validate" in fields["traceback"]
    assert "secret boom" not in str(fields), "an error may quote secret values"
    policies.check_topic(lambda: TOPIC)
