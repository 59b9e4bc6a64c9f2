"""``kraft-wire storage format`` beside Kafka's StorageTool: which first voters an option makes, what is
refused, and that formatting again changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from compat.harness.kafka.cluster import NEWEST_KAFKA
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.tool_server import ToolServer
from kraft_wire.cli import main
from kraft_wire.log.batch import record_values
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.files import parse_meta_properties
from kraft_wire.log.snapshot import verify_snapshot
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.protocol.uuid import Uuid

CLUSTER = "kp5OoISbSiuz6YkkatmsqQ"
OTHER_CLUSTER = "4L6g3nShT-eMCtK--X86sw"
OWN = "7HTJwF4WQ5Ckqdz1kIuOOQ"
SELF = f"1@localhost:9193:{OWN}"
OTHER = "2@localhost:9293:0Hqdn6mPQ5GrP21WaEIN5Q"
CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
CONTROLLER = {
    "process.roles": "controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://localhost:9193",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
    "controller.quorum.bootstrap.servers": "localhost:9193",
}
STATIC = {**CONTROLLER, "controller.quorum.voters": "1@localhost:9193"}
BROKER = {
    **CONTROLLER,
    "process.roles": "broker",
    "listeners": "PLAINTEXT://localhost:9092",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
}
OPTIONS = {
    "nothing": (),
    "standalone": ("--standalone",),
    "itself": ("--initial-controllers", SELF),
    "itself-and-another": ("--initial-controllers", f"{SELF},{OTHER}"),
    "another": ("--initial-controllers", OTHER),
    "none": ("--no-initial-controllers",),
    "standalone-and-none": ("--standalone", "--no-initial-controllers"),
    "standalone-and-itself": ("--standalone", "--initial-controllers", SELF),
    "itself-and-none": ("--initial-controllers", SELF, "--no-initial-controllers"),
    "itself-twice": ("--initial-controllers", f"{SELF},{SELF}"),
    "no-directory-id": ("--initial-controllers", "1@localhost:9193"),
}
TWICE = ("standalone", "itself", "none")
KAFKA_S, OURS = "kafka", "ours"


class Formatter:
    """Formats a folder below ``folder`` with Kafka's tool or with ours. ``properties`` may change between."""

    def __init__(self, who: str, tools: ToolServer, folder: Path, properties: Mapping[str, str]) -> None:
        self._who = who
        self._tools = tools
        self.data = folder / who
        self._file = folder / f"{who}.properties"
        self.properties = {**properties, "log.dirs": str(self.data)}

    def run(self, options: Sequence[str], cluster_id: str = CLUSTER) -> bool:
        """Return whether the exit status is 0."""
        self._file.write_text("".join(f"{key}={value}\n" for key, value in self.properties.items()))
        words = ["format", "-t", cluster_id, "-c", str(self._file), *options]
        if self._who == OURS:
            return main(["storage", *words]) == 0
        return self._tools.run(find_jars(NEWEST_KAFKA), "kafka.tools.StorageTool", words).exit_code == 0

    def files(self) -> dict[str, bytes]:
        """Return the files of the folder, by path."""
        paths = self.data.rglob("*") if self.data.exists() else ()
        return {str(path.relative_to(self.data)): path.read_bytes() for path in paths if path.is_file()}

    def contents(self) -> dict[str, Any]:
        """Return what the files say. A directory id that the tool chose is shown as ``None``."""
        said: dict[str, Any] = dict.fromkeys(self.files())
        chosen: Uuid | None = None
        if "meta.properties" in said:
            identity = parse_meta_properties((self.data / "meta.properties").read_text())
            chosen = None if str(identity.directory_id) == OWN else identity.directory_id
            said["meta.properties"] = (identity.cluster_id, identity.node_id, chosen is None)
        if CHECKPOINT in said:
            said[CHECKPOINT] = _records(self.data / CHECKPOINT, chosen)
        return said


def _records(checkpoint: Path, chosen: Uuid | None) -> list[dict[str, Any]]:
    """Return the records between header and footer, first the control records."""
    header, *data, _footer = verify_snapshot(checkpoint.read_bytes())
    records = decode_control_batch(header)[1:]
    for record in records:
        for voter in record.voters if isinstance(record, VotersRecord) else ():
            if voter.voter_directory_id == chosen:
                voter.voter_directory_id = Uuid.ZERO
    records += [decode_metadata_record(value)[0] for batch in data for value in record_values(batch)]
    return [{"type": type(record).__name__, **msgspec.structs.asdict(record)} for record in records]


@pytest.fixture
def formatters(request: pytest.FixtureRequest, tool_server: ToolServer, tmp_path: Path) -> list[Formatter]:
    """Kafka's and ours, for a controller of a dynamic quorum unless a test names other properties."""
    properties = getattr(request, "param", CONTROLLER)
    return [Formatter(who, tool_server, tmp_path, properties) for who in (KAFKA_S, OURS)]


@pytest.mark.parametrize(
    "formatters", [CONTROLLER, STATIC, BROKER], indirect=True, ids=["dynamic", "static", "broker"]
)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_folder_and_the_exit_status_are_kafka_s(
    formatters: list[Formatter], options: Sequence[str]
) -> None:
    kafka_s, ours = formatters
    assert kafka_s.run(options) == ours.run(options)
    assert kafka_s.contents() == ours.contents()


@pytest.mark.parametrize("options", [OPTIONS[name] for name in TWICE], ids=TWICE)
def test_formatting_again_changes_nothing(formatters: list[Formatter], options: Sequence[str]) -> None:
    for formatter in formatters:
        assert formatter.run(options)
        formatted = formatter.files()
        assert not formatter.run(options), "only --ignore-formatted leaves formatted folders alone"
        assert formatter.run([*options, "--ignore-formatted"])
        assert not formatter.run([*options, "--ignore-formatted"], OTHER_CLUSTER)
        formatter.properties["node.id"] = "9"
        assert not formatter.run([*options, "--ignore-formatted"])
        assert formatter.files() == formatted


def test_a_new_folder_is_formatted_beside_a_formatted_one(formatters: list[Formatter]) -> None:
    for formatter in formatters:
        assert formatter.run(["--standalone"])
        formatted = formatter.files()
        second = formatter.data.with_name(f"{formatter.data.name}-second")
        formatter.properties["log.dirs"] = f"{formatter.data},{second}"
        assert formatter.run(["--standalone", "--ignore-formatted"])
        assert [path.name for path in second.iterdir()] == ["meta.properties"]
        assert formatter.files() == formatted
