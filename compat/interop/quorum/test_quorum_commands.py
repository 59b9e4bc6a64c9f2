"""kraft-wire quorum status and describe, on quorums of ours and of Java's, beside Kafka's own tool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from compat.conftest import make_workspace
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.nodes import OurController, run_command
from compat.harness.kafka.quorum import ControllerQuorum
from compat.harness.kafka.reconfiguration import wait_for_registrations
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools
from compat.harness.processes import ProcessFailed
from kraft_wire.client.state_digests import NOT_SERVED


@pytest.fixture(params=["ours", "java"])
def quorum(
    request: pytest.FixtureRequest, tool_server: ToolServer, tmp_path: Path
) -> Iterator[ControllerQuorum]:
    """Three controllers that write nothing while they are idle."""
    kind: ControllerKind = request.param
    for workspace in make_workspace(tmp_path):
        quorum = ControllerQuorum(
            workspace, tool_server, [kind] * 3, properties={"metadata.max.idle.interval.ms": "0"}
        )
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.wait_until_equal()
        yield quorum


def test_describe_prints_what_kafka_s_tool_prints(quorum: ControllerQuorum, tools: KafkaTools) -> None:
    ours = _run("describe", "--status", "--bootstrap-controller", quorum.address_list)
    kafka_s = tools.quorum(quorum.address_list, "describe", "--status")
    assert _without_lags(ours) == _without_lags(kafka_s)
    ours = _run("describe", "--replication", "--bootstrap-controller", quorum.address_list)
    kafka_s = tools.quorum(quorum.address_list, "describe", "--replication")
    assert _without_times(ours) == _without_times(kafka_s)


def test_status_reads_any_quorum(quorum: ControllerQuorum) -> None:
    report = _status("--bootstrap-controller", quorum.address_list)
    leader = quorum.leader().node_id
    assert (report["leader_id"], report["kraft_version"]) == (leader, 1)
    assert {row["id"]: row["registered"] for row in report["replicas"]} == dict.fromkeys(quorum.ports, True)
    assert {row["auto_join"] for row in report["replicas"]} == {False}
    assert report["history"][-1]["voters"] == list(quorum.ports)
    follower = quorum.followers()[0]
    stale = _status("--stale", "--bootstrap-controller", follower.address)
    assert (stale["leader_id"], stale["last_known_leader_id"]) == (None, leader)
    for controller in quorum.running:
        controller.kill()
    folders = [f"--from-dir={controller.data_folder}" for controller in quorum.controllers.values()]
    from_disk = _status(*folders)
    assert {row["id"] for row in from_disk["replicas"]} == set(quorum.ports)
    assert [row["voters"] for row in from_disk["history"]][-1] == list(quorum.ports)


def test_kafka_s_tool_changes_the_log_levels_of_a_follower(
    quorum: ControllerQuorum, tools: KafkaTools
) -> None:
    follower = quorum.followers()[0]
    loggers = ("--entity-type", "broker-loggers", "--entity-name", str(follower.node_id))

    def level_of_root() -> str:
        described = tools.controller_configs(follower.address, "--describe", *loggers)
        (level,) = re.findall(r"^ *root=(\w+)", described, re.MULTILINE)
        return str(level)

    wait_for_registrations(quorum)
    assert level_of_root() == "INFO"
    tools.controller_configs(follower.address, "--alter", *loggers, "--add-config", "root=WARN")
    assert level_of_root() == "WARN"
    with pytest.raises(ProcessFailed, match=r"Invalid broker logger\(s\): no.such"):
        tools.controller_configs(follower.address, "--alter", *loggers, "--add-config", "no.such=WARN")


def test_digest_compares_the_states_of_ours_and_says_that_java_s_cannot_be_asked(
    tool_server: ToolServer, tmp_path: Path
) -> None:
    for workspace in make_workspace(tmp_path):
        quorum = ControllerQuorum(workspace, tool_server, ["ours", "java", "ours"])
        quorum.format()
        quorum.start()
        quorum.leader()
        wait_for_registrations(quorum)
        report = _status("--no-history", "--digest", "--bootstrap-controller", quorum.address_list)
        states = {row["id"]: row for row in report["states"]}
        ours = {id for id, controller in quorum.controllers.items() if isinstance(controller, OurController)}
        assert set(states) == set(quorum.ports)
        (state,) = {(states[id]["end_offset"], states[id]["digest"]) for id in ours}
        assert None not in state
        assert {states[id]["problem"] for id in set(states) - ours} == {NOT_SERVED}
        assert report["states_differ"] == ""


def _run(*words: str) -> str:
    done = run_command("quorum", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _status(*words: str) -> dict[str, Any]:
    report: dict[str, Any] = msgspec.json.decode(_run("status", "--json", *words))
    return report


def _without_lags(text: str) -> list[str]:
    return [re.sub(r"(MaxFollowerLag\w*: +)-?\d+", r"\1N", line) for line in text.strip().splitlines()]


def _without_times(text: str) -> list[list[str]]:
    """The table's cells without the times, which are those of the request."""
    rows = [[cell.strip() for cell in line.split("\t")] for line in text.strip().splitlines()]
    return [[*row[:4], *row[6:]] for row in rows]
