"""Run a cluster under faults: three of our controllers on hosts and disks of their own, two real brokers, and
clients that record their answers.

Needs root for network namespaces, loop devices and mounts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from compat.harness.chaos.cluster_topics import NodeFiles, read_files, topics_in, topics_on
from compat.harness.chaos.ledger import Ledger, Topics
from compat.harness.chaos.network import Network
from compat.harness.chaos.workload import BROKERS_PATIENCE_S, Workload
from compat.harness.kafka.nodes import Place
from compat.harness.kafka.quorum import Controller, ControllerQuorum, connect
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import Workspace
from compat.harness.waiting import WaitTimeout, wait_until
from compat.harness.wire import describe_quorum
from kraft_wire.metadata.canonical import fingerprint
from kraft_wire.storage.inspection import NOT_WHOLE, inspect
from tests.support.power_disk import IN_MEMORY, PowerDisk

CLIENTS: Final = "clients"
HOSTS: Final = ("one", "two", "three")
SETTINGS: Final = {
    "internal.metadata.log.segment.bytes": "30000",
    "metadata.log.max.record.bytes.between.snapshots": "40000",
    "metadata.max.retention.bytes": "200000",
}
BROKER_SETTINGS: Final = {"controller.socket.timeout.ms": str(round(1000 * BROKERS_PATIENCE_S))}
BROKERS: Final = 2
CATCHING_UP_S: Final = 60.0


class Arena:
    """A running cluster. The thread that creates it moves to the clients' host, where the brokers run too.

    ``prepare`` is called when all nodes are formatted and none is started.
    """

    def __init__(
        self,
        workspace: Workspace,
        tools: ToolServer,
        scratch: Path,
        *,
        disk_mib: int = 64,
        prepare: Callable[[Arena], None] | None = None,
    ) -> None:
        self.ledger = Ledger()
        self._disk_mib = disk_mib
        self._closing = ExitStack()
        self._numbers = count()
        with ExitStack() as on_failure:
            on_failure.callback(self._closing.close)
            self.network = self._closing.enter_context(Network([CLIENTS, *HOSTS]))
            self.disks = {host: self._disk(scratch, host) for host in HOSTS}
            self._closing.callback(workspace.close)
            tools.start()  # in the original namespace, which outlives the hosts
            self._closing.enter_context(self.network.hosts[CLIENTS].entered())
            self.quorum = ControllerQuorum(
                workspace, tools, ["ours"] * 3, properties=SETTINGS, places=[self._place(h) for h in HOSTS]
            )
            self._hosts = dict(zip(self.quorum.controllers, HOSTS, strict=True))
            self.quorum.format()
            for node_id in range(1, BROKERS + 1):
                self.quorum.add_broker(node_id, BROKER_SETTINGS, place=Place(self.clients_address))
            if prepare is not None:
                prepare(self)
            self.quorum.start()
            self.quorum.leader()
            for broker in self.quorum.brokers.values():
                broker.start()
            self.quorum.wait_until_brokers_are_ready()
            on_failure.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    def _disk(self, scratch: Path, host: str) -> PowerDisk:
        disk = PowerDisk(scratch / f"{host}.image", scratch / host, self._disk_mib)
        self._closing.callback(disk.image.unlink)
        self._closing.callback(disk.unmount, "--lazy")
        return disk

    def _place(self, host: str) -> Place:
        prefix = self.network.hosts[host].command_prefix
        return Place(self.network.address(host), prefix, self.disks[host].mount_point)

    @property
    def clients_address(self) -> str:
        """The address of the clients' host, which all controllers reach."""
        return self.network.address(CLIENTS)

    def host(self, controller: Controller) -> str:
        return self._hosts[controller.node_id]

    def disk(self, controller: Controller) -> PowerDisk:
        return self.disks[self.host(controller)]

    # Load.

    @contextmanager
    def workload(self) -> Iterator[None]:
        """Run clients during the block, and ``check`` the cluster afterwards."""
        with Workload(self.quorum.bootstrap, self.ledger, next(self._numbers)):
            self.ledger.wait_for_acknowledged(5)
            yield
            self.ledger.wait_for_acknowledged(5)
        self.check()

    # Checks of the healed cluster.

    def check(self) -> None:
        """Check that every controller runs and has caught up, that their files and states are equal and
        whole, and that the topics are those that the clients' answers allow."""
        files = self._equal_files()
        for controller, found in files.items():
            self._check_topics(f"the files of {controller.name}", partial(topics_in, found.state), 0)
        for broker in self.quorum.brokers.values():
            self._check_topics(broker.name, partial(topics_on, broker), CATCHING_UP_S)
        for controller in files:
            inspection = inspect(controller.data_folder)
            damaged = [finding for finding in inspection.findings if finding.status in NOT_WHOLE]
            assert inspection.is_whole, (controller.name, inspection.problems, damaged)
        self.ledger.settle(topics_in(next(iter(files.values())).state))

    def _check_topics(self, where: str, see: Callable[[], Topics], timeout_s: float) -> None:
        wrong: list[str] = []

        def is_right() -> bool:
            wrong[:] = self.ledger.violations(see())
            return not wrong

        try:
            wait_until(is_right, f"{where} to have the right topics", timeout_s)
        except WaitTimeout:
            raise AssertionError("\n".join([f"{where}: {len(wrong)} topics are wrong", *wrong])) from None

    def _equal_files(self) -> dict[Controller, NodeFiles]:
        """Return the files of each controller up to one high watermark, after checking that they are
        equal."""
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
        """Return the high watermark once every voter's log end offset has reached it; None until then."""
        for controller in self.quorum.controllers.values():
            process = controller.running_process
            assert process.running, f"{controller.name} ended with {process.exit_code}\n{process.tail()}"
        leader = self.quorum.leader()
        with connect(leader) as client:
            if not self.quorum.in_step(client):
                return None
            return describe_quorum(client).topics[0].partitions[0].high_watermark


def check_equal(files: Mapping[str, NodeFiles]) -> None:
    """Check that the nodes have equal states, and equal batches wherever their logs overlap."""
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
    """Return a folder in memory for disk images, where flushes cost nothing, or else ``fallback``."""
    return IN_MEMORY if IN_MEMORY.is_dir() else fallback
