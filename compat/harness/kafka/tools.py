"""Call Kafka's command-line tools: those of 4.3.1, against servers of any version."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from compat.harness.kafka.jars import TOOLS_VERSION, find_jars
from compat.harness.kafka.tool_server import ToolResult, ToolServer, ToolTimeout
from compat.harness.processes import ProcessFailed
from compat.harness.waiting import PATIENCE_S, WaitTimeout, wait_until

SHELL = "org.apache.kafka.shell.MetadataShell"
SHELL_TIMEOUT_S = 15.0
SHELL_TRIES = 6
RECORD_PREFIX = "payload: "


class MetadataRecord(msgspec.Struct, frozen=True):
    """A metadata record as DumpLogSegments prints it."""

    type: str
    version: int
    data: dict[str, Any]

    def concerns(self, **fields: object) -> bool:
        """Whether the record's fields have these values; the names are Kafka's."""
        return all(self.data.get(name) == value for name, value in fields.items())


class KafkaTools:
    """A method for each tool. It returns what the tool printed and raises ProcessFailed if the tool fails."""

    def __init__(self, server: ToolServer) -> None:
        self.server = server
        self._jars = find_jars(TOOLS_VERSION)

    def run(
        self, main_class: str, arguments: Sequence[str | Path], timeout_s: float = PATIENCE_S
    ) -> ToolResult:
        """Run any tool without checking its result."""
        return self.server.run(self._jars, main_class, arguments, timeout_s)

    def topics(self, bootstrap: str, *options: str) -> str:
        return self.admin("TopicCommand", bootstrap, *options)

    def features(self, bootstrap: str, *options: str) -> str:
        return self.admin("FeatureCommand", bootstrap, *options)

    def try_features(self, bootstrap: str, *options: str) -> bool:
        """Run FeatureCommand. Returns whether it did as it was told."""
        arguments = ["--bootstrap-server", bootstrap, *options]
        return self.run("org.apache.kafka.tools.FeatureCommand", arguments).exit_code == 0

    def leader_election(self, bootstrap: str, *options: str) -> str:
        return self.admin("LeaderElectionCommand", bootstrap, *options)

    def configs(self, bootstrap: str, *options: str) -> str:
        arguments = ["--bootstrap-server", bootstrap, *options]
        return self.run("kafka.admin.ConfigCommand", arguments).check().stdout

    def controller_configs(self, controller: str, *options: str) -> str:
        """Run ConfigCommand against a controller."""
        arguments = ["--bootstrap-controller", controller, *options]
        return self.run("kafka.admin.ConfigCommand", arguments).check().stdout

    def controller_acls(self, controller: str, *options: str) -> str:
        """Run AclCommand against a controller."""
        arguments = ["--bootstrap-controller", controller, *options]
        return self.run("org.apache.kafka.tools.AclCommand", arguments).check().stdout

    def quorum(self, controller: str, *options: str) -> str:
        """Run MetadataQuorumCommand against a controller."""
        arguments = ["--bootstrap-controller", controller, *options]
        return self.run("org.apache.kafka.tools.MetadataQuorumCommand", arguments).check().stdout

    def cluster_id(self, bootstrap: str) -> str:
        arguments = ["cluster-id", "--bootstrap-server", bootstrap]
        printed = self.run("org.apache.kafka.tools.ClusterTool", arguments).check().stdout
        return printed.partition("Cluster ID: ")[2].strip()

    def unregister(self, bootstrap: str, broker_id: int) -> str:
        arguments = ["unregister", "--bootstrap-server", bootstrap, "--id", str(broker_id)]
        return self.run("org.apache.kafka.tools.ClusterTool", arguments).check().stdout

    def dump_log(self, *files: Path) -> ToolResult:
        """Run DumpLogSegments on metadata segments or snapshots and check its result; warnings are in
        ``stderr``."""
        names = ",".join(str(file) for file in files)
        arguments = ["--cluster-metadata-decoder", "--skip-record-metadata", "--files", names]
        return self.run("org.apache.kafka.tools.DumpLogSegments", arguments).check()

    def metadata_records(self, *files: Path) -> list[MetadataRecord]:
        """Return the metadata records of these files, in order."""
        return parse_records(self.dump_log(*files).stdout)

    def metadata_shell(self, file: Path, *command: str) -> ToolResult:
        """Run one command of the metadata shell on a segment or snapshot. ``wait_for_shell`` is safer.

        The command is tried several times, because the shell can wait forever: if its loader has applied the
        only batch before its reader has reached the end of the file, MetadataLoader publishes no commit, and
        only a published commit counts the offset as applied.
        """
        arguments: list[str | Path] = ["--snapshot", file, *command]
        for _ in range(SHELL_TRIES - 1):
            try:
                return self.run(SHELL, arguments, SHELL_TIMEOUT_S).check()
            except ToolTimeout:
                continue
        return self.run(SHELL, arguments, SHELL_TIMEOUT_S).check()

    def wait_for_shell(self, file: Path, *command: str, expected: Callable[[str], bool]) -> ToolResult:
        """Repeat a command until its answer is as expected; the shell may answer before it has read the
        file."""
        answers: list[ToolResult] = []

        def answered() -> bool:
            answers.append(self.metadata_shell(file, *command))
            return expected(answers[-1].stdout)

        wait_until(answered, f"the metadata shell's answer to {command} on {file.name}")
        return answers[-1]

    def admin(self, tool: str, bootstrap: str, *options: str | Path) -> str:
        """Run a tool that is an admin client, such as AclCommand."""
        arguments = ["--bootstrap-server", bootstrap, *options]
        return self.run(f"org.apache.kafka.tools.{tool}", arguments).check().stdout


def until_read(tool: Callable[[], str]) -> str:
    """Run a tool again while it fails: its broker may not have read the change on which it builds."""
    printed: list[str] = []
    failures: list[str] = []

    def succeeded() -> bool:
        try:
            printed.append(tool())
        except ProcessFailed as failure:
            failures.append(str(failure))
        return bool(printed)

    try:
        wait_until(succeeded, "a tool to succeed")
    except WaitTimeout as timeout:
        raise ProcessFailed(failures[-1]) from timeout
    return printed[-1]


def parse_records(dumped: str) -> list[MetadataRecord]:
    """Return the metadata records in a dump that was made with --skip-record-metadata."""
    payloads = (line.partition(RECORD_PREFIX)[2] for line in dumped.splitlines())
    decoded = (json.loads(payload) for payload in payloads if payload.startswith("{"))
    return [
        MetadataRecord(record["type"], record["version"], record["data"])
        for record in decoded
        if "data" in record
    ]


def segments(data_folder: Path) -> list[Path]:
    """Return the segments of a node's metadata log, the oldest first."""
    return sorted((data_folder / "__cluster_metadata-0").glob("*.log"))


def snapshots(data_folder: Path) -> list[Path]:
    """Return the snapshots of a node's metadata log, the oldest first; the bootstrap snapshot is included."""
    return sorted((data_folder / "__cluster_metadata-0").glob("*.checkpoint"))
