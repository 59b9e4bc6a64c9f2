"""Three of our controllers on hosts and disks of their own, two real brokers, and clients that keep account.

Needs root: for network namespaces, loop devices and mounts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from power_disk import IN_MEMORY, PowerDisk

from compat.harness.contents import NodeFiles, read_files, topics_by, topics_in
from compat.harness.controllers import Controller, ControllerQuorum, connect
from compat.harness.ledger import Contents, Ledger
from compat.harness.network import Network
from compat.harness.nodes import Place
from compat.harness.processes import Workspace
from compat.harness.tool_server import ToolServer
from compat.harness.waiting import WaitTimeout, wait_until
from compat.harness.wire import describe_quorum
from compat.harness.workload import BROKERS_PATIENCE_S, Workload
from kraft_wire.metadata.canonical import fingerprint
from kraft_wire.storage.inspection import NOT_WHOLE, inspect

CLIENTS: Final = "clients"
HOSTS: Final = ("one", "two", "three")
SETTINGS: Final = {
    "internal.metadata.log.segment.bytes": "30000",
    "metadata.log.max.record.bytes.between.snapshots": "40000",
    "metadata.max.retention.bytes": "200000",
}
BROKER_SETTINGS: Final = {"controller.socket.timeout.ms": str(round(1000 * BROKERS_PATIENCE_S))}
CATCHING_UP_S: Final = 60.0


class Arena:
    """Entered, everything runs; this thread is on the clients' host then, with the brokers."""

    def __init__(self, workspace: Workspace, tools: ToolServer, scratch: Path) -> None:
        self.ledger = Ledger()
        self._closing = ExitStack()
        self._numbers = count()
        with ExitStack() as on_failure:
            on_failure.callback(self._closing.close)
            self.network = self._closing.enter_context(Network([CLIENTS, *HOSTS]))
            self.disks = {host: self._disk(scratch, host) for host in HOSTS}
            self._closing.callback(workspace.close)
            tools.start()  # not on a host that is gone one day
            self._closing.enter_context(self.network.hosts[CLIENTS].entered())
            self.quorum = ControllerQuorum(
                workspace, tools, ["ours"] * 3, properties=SETTINGS, places=[self._place(h) for h in HOSTS]
            )
            self._hosts = dict(zip(self.quorum.controllers, HOSTS, strict=True))
            self.quorum.format()
            self.quorum.start()
            self.quorum.leader()
            self.quorum.start_brokers(2, BROKER_SETTINGS)
            on_failure.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    def _disk(self, scratch: Path, host: str) -> PowerDisk:
        disk = PowerDisk(scratch / f"{host}.image", scratch / host)
        self._closing.callback(disk.image.unlink)
        self._closing.callback(disk.unmount, "--lazy")
        return disk

    def _place(self, host: str) -> Place:
        prefix = self.network.hosts[host].command_prefix
        return Place(self.network.address(host), prefix, self.disks[host].mount_point)

    def host(self, controller: Controller) -> str:
        return self._hosts[controller.node_id]

    def disk(self, controller: Controller) -> PowerDisk:
        return self.disks[self.host(controller)]

    # Work.

    @contextmanager
    def workload(self) -> Iterator[None]:
        """Clients are at work meanwhile; afterwards everything must be there (``check``)."""
        with Workload(self.quorum.bootstrap, self.ledger, next(self._numbers)):
            self.ledger.wait_for_acknowledged(5)
            yield
            self.ledger.wait_for_acknowledged(5)
        self.check()

    # What must hold, everything being healed.

    def check(self) -> None:
        """Every controller runs and has caught up, their files and states are equal, everything is there that
        must be, and nothing else."""
        files = self._equal_files()
        for controller, found in files.items():
            self._check_contents(f"the files of {controller.name}", partial(topics_in, found.state), 0)
        for broker in self.quorum.brokers.values():
            self._check_contents(broker.name, partial(topics_by, broker), CATCHING_UP_S)
        for controller in files:
            inspection = inspect(controller.data_folder)
            damaged = [finding for finding in inspection.findings if finding.status in NOT_WHOLE]
            assert inspection.is_whole, (controller.name, inspection.problems, damaged)
        self.ledger.settle(topics_in(next(iter(files.values())).state))

    def _check_contents(self, where: str, see: Callable[[], Contents], timeout_s: float) -> None:
        wrong: list[str] = []

        def is_right() -> bool:
            wrong[:] = self.ledger.violations(see())
            return not wrong

        try:
            wait_until(is_right, f"{where} to be right", timeout_s)
        except WaitTimeout:
            raise AssertionError("\n".join([f"{where}: {len(wrong)} topics are wrong", *wrong])) from None

    def _equal_files(self) -> dict[Controller, NodeFiles]:
        """What each controller has on its disk, up to one high watermark."""
        controllers = list(self.quorum.controllers.values())

        def read() -> dict[Controller, NodeFiles] | None:
            end_offset = self._caught_up_offset()
            if end_offset is None:
                return None
            found = {c: read_files(c.data_folder, end_offset) for c in controllers}
            return {c: files for c, files in found.items() if files is not None}

        def complete() -> dict[Controller, NodeFiles] | None:
            found = read()
            return found if found is not None and len(found) == len(controllers) else None

        files = wait_until(complete, "every controller to catch up", CATCHING_UP_S)
        assert files is not None
        check_equal({controller.name: found for controller, found in files.items()})
        return files

    def _caught_up_offset(self) -> int | None:
        """The high watermark, once every voter has all below it; None until then."""
        for controller in self.quorum.controllers.values():
            process = controller.running_process
            assert process.running, f"{controller.name} ended with {process.exit_code}\n{process.tail()}"
        leader = self.quorum.leader()
        with connect(leader) as client:
            if not self.quorum.in_step(client):
                return None
            return describe_quorum(client).topics[0].partitions[0].high_watermark


def check_equal(files: Mapping[str, NodeFiles]) -> None:
    """The same batches at the same offsets, as far back as all reach, and the same states."""
    (first, expected), *others = files.items()
    for name, found in others:
        both = f"{first} and {name}"
        start = max(min(expected.batches, default=0), min(found.batches, default=0))
        bases = {base for base in expected.batches if base >= start}
        assert bases == {base for base in found.batches if base >= start}, (
            f"{both} have batches at other offsets"
        )
        differing = [
            base for base in sorted(bases) if expected.batches[base].data != found.batches[base].data
        ]
        assert not differing, f"the logs of {both} differ at offsets {differing}"
        assert fingerprint(expected.state) == fingerprint(found.state), f"the states of {both} differ"


def scratch_in_memory(fallback: Path) -> Path:
    """Where images of disks lie: flushing them costs nothing there."""
    return IN_MEMORY if IN_MEMORY.is_dir() else fallback
