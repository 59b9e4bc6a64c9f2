"""Run ``kraft-wire quorum migrate --check`` on a quorum, and do what it says."""

from __future__ import annotations

import shlex
import subprocess
from typing import Any

import msgspec

from compat.harness.kafka.nodes import JvmBroker, run_command
from compat.harness.kafka.quorum import Controller, ControllerQuorum
from compat.harness.kafka.tools import KafkaTools
from compat.harness.waiting import wait_until

Report = dict[str, Any]
IN_THE_WAY = 15


def check(quorum: ControllerQuorum, to: str, *, with_files: bool = True) -> Report:
    """Run the check, with the files of all nodes or with none, and return its report."""
    nodes = (*quorum.controllers.values(), *quorum.brokers.values())
    files = [f"--config={node.properties_file}" for node in nodes] if with_files else []
    options = ("--check", "--to", to, "--json", "--bootstrap-controller", quorum.address_list)
    ended = run_command("quorum", "migrate", *options, *files)
    assert ended.returncode in (0, IN_THE_WAY), ended.stdout + ended.stderr
    report: Report = msgspec.json.decode(ended.stdout)
    assert report["is_blocked"] == (ended.returncode == IN_THE_WAY)
    return report


def check_until_free(quorum: ControllerQuorum, to: str) -> Report:
    """Wait until nothing is in the way, and return the report: after a restart voters have to catch up."""
    reports: list[Report] = []

    def is_free() -> bool:
        reports.append(check(quorum, to))
        return not reports[-1]["is_blocked"]

    wait_until(is_free, "nothing to be in the way")
    return reports[-1]


def findings(report: Report, kind: str = "in the way") -> list[Report]:
    """Return the findings of a kind: first those of the nodes, then those of the cluster."""
    found = [*(each for node in report["nodes"] for each in node["findings"]), *report["findings"]]
    return [each for each in found if each["kind"] == kind]


def node_of(quorum: ControllerQuorum, name: str) -> Controller | JvmBroker:
    """Return the node of a finding or a step, such as "controller 100"."""
    kind, _, id = name.partition(" ")
    return quorum.controllers[int(id)] if kind == "controller" else quorum.brokers[int(id)]


def follow(quorum: ControllerQuorum, tools: KafkaTools, report: Report) -> None:
    """Do what a report says is next. Nodes are stopped and started as processes of the test."""
    step = report["next"]
    for line in step["commands"]:
        words = shlex.split(line, comments=True)
        match words:
            case ["kafka-features.sh", *options]:
                tools.run("org.apache.kafka.tools.FeatureCommand", options).check()
            case ["kill", pid]:
                node = node_of(quorum, step["node"])
                assert int(pid) == node.running_process.pid
                node.stop()
            case []:
                assert line.startswith(f"# stop {step['node']}"), line
                node_of(quorum, step["node"]).stop()
            case [*start, file] if start in (["kafka-server-start.sh"], ["kraft-wire", "server"]):
                node = node_of(quorum, step["node"])
                assert file == str(node.properties_file)
                node.start()
            case _:
                subprocess.run(line, shell=True, check=True)
