"""Run controllers of ours as processes, write to them, and read their logs with the client."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shutil import rmtree

from kraft_wire.cli.quorum.changes.majorities import liveness_of
from kraft_wire.client.addresses import parse_addresses
from kraft_wire.client.live_log import FETCH_BYTES, LiveLog, LogEnds
from kraft_wire.client.quorum import QuorumClient
from kraft_wire.client.quorum_description import QuorumDescription
from kraft_wire.client.settings import QuorumSettings
from kraft_wire.log.batch import Batch, split_batches
from kraft_wire.log.snapshot import SUFFIX, SnapshotId, parse_snapshot_file_name
from kraft_wire.protocol.uuid import Uuid
from tests.support.controller_process import (
    CLUSTER_ID,
    COMMAND,
    GIVE_UP_S,
    NODE_ID,
    Client,
    ControllerProcess,
    ServerProcess,
    formatted,
)
from tests.support.waiting import wait_until

QUIET: Mapping[str, str] = {"metadata.max.idle.interval.ms": "0"}
"""Settings with which the controller writes no NoOpRecords."""
SNAPSHOT_BYTES = 1500
SNAPSHOTS: Mapping[str, str] = {
    **QUIET,
    "metadata.log.max.record.bytes.between.snapshots": str(SNAPSHOT_BYTES),
}
TRIMMED: Mapping[str, str] = {
    **SNAPSHOTS,
    "internal.metadata.log.segment.bytes": "1500",
    "metadata.max.retention.bytes": "9000",
}


def settings(*addresses: str, api_timeout_ms: int = 60_000) -> QuorumSettings:
    return QuorumSettings(parse_addresses(",".join(addresses)), api_timeout_ms=api_timeout_ms)


def address_of(process: ControllerProcess) -> str:
    """Return the address of a controller once it is active."""
    process.wait_for("active controller")
    address: str = process.wait_for("listening")["address"]
    return address


def read(log: LiveLog, start_offset: int, end_offset: int, max_bytes: int = FETCH_BYTES) -> bytes:
    """Return the batches that contain a range of offsets, without the other bytes in the answers."""
    return b"".join(
        served.data[position : position + header.size_bytes]
        for served in log.batches(start_offset, end_offset, max_bytes)
        for position, header in served.batches
    )


def write(client: Client, values: range) -> None:
    """Write one record for each value."""
    for value in values:
        client.set_config("log.retention.ms", str(1_000_000 + value))


def batches_on_disk(process: ServerProcess) -> list[Batch]:
    """Return the batches in the segments of a controller."""
    data = b"".join(file.read_bytes() for file in sorted(process.log_dir.glob("*.log")))
    return split_batches(data)[0]


def snapshots_on_disk(process: ServerProcess) -> list[SnapshotId]:
    """Return the snapshots of a controller, oldest first, without that of format."""
    names = (file.name for file in process.log_dir.glob(f"*{SUFFIX}"))
    return sorted(id for name in names if (id := parse_snapshot_file_name(name)) and id.end_offset)


def settled(process: ControllerProcess, log: LiveLog) -> tuple[LogEnds, list[SnapshotId]]:
    """Wait until no further snapshot is due and nothing is being trimmed.

    Returns the ends of the log and its snapshots. ``process`` must be the only writer, and idle.
    """
    while True:
        ends = log.ends()
        ids = [id for id in snapshots_on_disk(process) if id.end_offset >= ends.log_start_offset]
        with suppress(FileNotFoundError):  # a segment was deleted while it was listed
            batches = batches_on_disk(process)
            after = [batch for batch in batches if ids and batch.header.base_offset >= ids[-1].end_offset]
            is_quiet = sum(len(batch.data) for batch in after) < SNAPSHOT_BYTES
            if is_quiet and ids[-1:] == [ends.newest_snapshot] and log.ends() == ends:
                return ends, ids


class Controllers:
    """A quorum of the voters 1, 2 and 3, and observers that ``add_observer`` starts.

    If they are ``drafted``, they speak KIP-853's draft with each other, on listeners of their own at
    ``raft_addresses``.
    """

    def __init__(self, folder: Path, *, drafted: bool = False) -> None:
        self.addresses = _free_addresses((1, 2, 3))
        self.raft_addresses = _free_addresses((1, 2, 3)) if drafted else self.addresses
        self._is_drafted = drafted
        voters = ",".join(
            f"{id}@{address}:{Uuid(bytes([id] * 16))}" for id, address in self.raft_addresses.items()
        )
        self._root = folder
        self._bootstrap = ",".join(self.raft_addresses.values())
        initial = ("--initial-controllers", voters)
        self._files = {id: self._format(folder / str(id), id, initial) for id in self.addresses}
        self._stack = ExitStack()
        self.processes: dict[int, ControllerProcess] = {}

    def add_observer(self, id: int, **settings: str) -> Path:
        """Format and start a controller that observes; ``settings`` have underscores for dots. Returns its
        properties file."""
        self.addresses |= _free_addresses([id])
        if self._is_drafted:
            self.raft_addresses |= _free_addresses([id])
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        self._files[id] = self._format(self._root / str(id), id, ("--no-initial-controllers",), dotted)
        self.start_one(id)
        return self._files[id]

    def add_successor(self, id: int, of: int) -> Path:
        """Format and start a controller that observes, at the address of one that is gone. Returns its
        properties file."""
        self.addresses[id] = self.addresses.pop(of)
        self._files[id] = self._format(self._root / str(id), id, ("--no-initial-controllers",))
        self.start_one(id)
        return self._files[id]

    def _format(
        self, folder: Path, id: int, voters: Sequence[str], settings: Mapping[str, str] | None = None
    ) -> Path:
        folder.mkdir()
        properties = {
            "process.roles": "controller",
            "node.id": str(id),
            "controller.quorum.bootstrap.servers": self._bootstrap,
            "log.dirs": str(folder / "data"),
            **self._listeners(id),
            **SNAPSHOTS,
            **(settings or {}),
        }
        file = folder / "controller.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        _format_folder(file, voters)
        return file

    def _listeners(self, id: int) -> dict[str, str]:
        listener = f"CONTROLLER://{self.addresses[id]}"
        if not self._is_drafted:
            return {"listeners": listener, "controller.listener.names": "CONTROLLER"}
        return {
            "listeners": f"DRAFT://{self.raft_addresses[id]},{listener}",
            "controller.listener.names": "DRAFT,CONTROLLER",
            "kraft.wire.kip853.draft.listeners": "DRAFT",
        }

    def configure(self, settings: Mapping[str, str]) -> None:
        """Change the properties of the voters, which takes effect when they start."""
        for id in (1, 2, 3):
            with self.file(id).open("a") as file:
                file.writelines(f"{key}={value}\n" for key, value in settings.items())

    def replace_disk(self, id: int) -> None:
        """Kill a controller and start it again on an empty folder, as an observer."""
        self.kill(id)
        rmtree(self.folder(id))
        _format_folder(self._files[id], ("--no-initial-controllers",))
        self.start_one(id)

    def start(self) -> None:
        for id in self._files:
            self.start_one(id)

    def start_one(self, id: int, release: Path | None = None) -> ControllerProcess:
        process = ControllerProcess(self._files[id], release=release)
        self.processes[id] = self._stack.enter_context(process)
        return self.processes[id]

    def rename(self, id: int, host: str) -> None:
        """Let a stopped controller advertise another name for its address."""
        port = self.addresses[id].rpartition(":")[2]
        self.addresses[id] = f"{host}:{port}"
        with self.file(id).open("a") as file:
            file.write(f"advertised.listeners=CONTROLLER://{self.addresses[id]}\n")

    def move(self, *ids: int) -> None:
        """Give these controllers, which are stopped, other ports: in the properties of all, not in their
        logs."""
        before = self.addresses
        self.addresses = before | _free_addresses(ids)
        for file in self._files.values():
            text = file.read_text()
            for id in ids:
                text = text.replace(before[id], self.addresses[id])
            file.write_text(text)

    def close(self) -> None:
        self._stack.close()

    def file(self, id: int) -> Path:
        """Return the properties file of a controller."""
        return self._files[id]

    def folder(self, id: int) -> Path:
        return self._files[id].parent / "data"

    def leader(self) -> int:
        """Return the id of the current leader."""
        with QuorumClient(settings(*self.addresses.values())) as quorum:
            LiveLog(quorum).ends()
            return next(id for id, at in self.addresses.items() if at == str(quorum.answered_by))

    def all_fetch(self) -> None:
        """Wait until the leader counts every voter as live: a write is committed without the slowest one."""
        wait_until(lambda: liveness_of(self.described()).may_fail == 1, "all voters to fetch")

    def described(self) -> QuorumDescription:
        """Return the quorum as its leader sees it."""
        with QuorumClient(settings(*self.addresses.values())) as quorum:
            return quorum.describe_quorum()

    def kill(self, id: int) -> None:
        self.processes.pop(id).kill()

    def write(self, values: range) -> None:
        """Write one record for each value, through whichever controller leads."""
        for value in values:
            self._write(value)

    def _write(self, value: int) -> None:
        deadline = time.monotonic() + GIVE_UP_S
        while time.monotonic() < deadline:
            for id in self.processes:
                host, port = self.addresses[id].split(":")
                # A follower rejects the write, and a controller that is starting doesn't answer.
                with suppress(OSError, AssertionError), Client(host, int(port)) as client:
                    write(client, range(value, value + 1))
                    return
            time.sleep(0.05)
        raise AssertionError(f"no controller wrote value {value}")


@contextmanager
def three_controllers(folder: Path, *, drafted: bool = False) -> Iterator[Controllers]:
    controllers = Controllers(folder, drafted=drafted)
    try:
        controllers.start()
        yield controllers
    finally:
        controllers.close()


@contextmanager
def static_controller(folder: Path) -> Iterator[tuple[ControllerProcess, str]]:
    """Run the only voter of controller.quorum.voters; gives its process and its address."""
    address = f"127.0.0.1:{_free_ports(1)[0]}"
    settings = {
        "controller.quorum.voters": f"{NODE_ID}@{address}",
        "controller.quorum.bootstrap.servers": "",
        "listeners": f"CONTROLLER://{address}",
    }
    with ControllerProcess(formatted(folder, settings, voters=())) as process:
        yield process, address


def _format_folder(file: Path, voters: Sequence[str]) -> None:
    command = [*COMMAND, "storage", "format", "-t", CLUSTER_ID, "-c", str(file)]
    subprocess.run([*command, *voters], check=True, capture_output=True)


def _free_addresses(ids: Sequence[int]) -> dict[int, str]:
    return {id: f"127.0.0.1:{port}" for id, port in zip(ids, _free_ports(len(ids)), strict=True)}


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
