"""Quorums that Prometheus watches, each under its own job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from compat.conftest import make_workspace
from compat.harness.kafka.nodes import HERE, Node, OurController, Place
from compat.harness.kafka.quorum import Controller, ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.ports import HOST, free_port
from compat.harness.processes import Workspace, suspended
from compat.harness.prometheus import Alarm, Prometheus
from compat.harness.waiting import wait_until
from tests.support.controller_process import Client

QUICK: Mapping[str, str] = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "500"}
COVERED: set[str] = set()
"""The alarms that tests set off."""
Alarms = tuple[str, ...]


def sets_off(*alarms: str) -> Callable[[Callable[..., None]], Any]:
    """Let a test set off these alarms, which are its argument ``alarms``."""
    COVERED.update(alarms)
    return pytest.mark.parametrize("alarms", [alarms], ids=["-".join(alarms)])


class Site:
    """Prometheus, and the quorums that run now."""

    def __init__(self, workspace: Workspace, tools: ToolServer) -> None:
        self.prometheus = Prometheus(workspace)
        self._folder = workspace.folder
        self._tools = tools
        self._jobs: dict[str, list[str]] = {}
        self._numbers = count()

    @contextmanager
    def led(
        self,
        job: str,
        controllers: int = 3,
        properties: Mapping[str, str] | None = None,
        *,
        place: Place = HERE,
        environment: Mapping[str, str] | None = None,
    ) -> Iterator[ControllerQuorum]:
        """Run controllers of ours that have a leader, and watch them under a job, which may have several
        quorums. All keep their data at ``place``; ``environment`` holds variables for their processes."""
        folder = self._folder / f"{job}-{next(self._numbers)}"
        folder.mkdir()
        listeners = [f"{HOST}:{free_port()}" for _ in range(controllers)]
        for workspace in make_workspace(folder):
            quorum = ControllerQuorum(
                workspace,
                self._tools,
                ["ours"] * controllers,
                properties={**QUICK, **(properties or {})},
                places=[place] * controllers,
            )
            for controller, listener in zip(quorum.controllers.values(), listeners, strict=True):
                controller.change_properties({"kraft.wire.http.listener": listener})
                of_ours(controller).environment = environment or {}
            quorum.format()
            self._watch(job, listeners)
            try:
                quorum.start()
                quorum.leader()
                self._wait_until_scraped(job)
                yield quorum
            finally:
                self._unwatch(job, listeners)

    def _watch(self, job: str, listeners: list[str]) -> None:
        self._jobs.setdefault(job, []).extend(listeners)
        self.prometheus.watch(self._jobs)

    def _unwatch(self, job: str, listeners: list[str]) -> None:
        self._jobs[job] = [each for each in self._jobs[job] if each not in listeners]
        self.prometheus.watch(self._jobs)

    def is_set_off(self, job: str, *names: str) -> bool:
        """Whether all these alarms of a job are set off now."""
        return {Alarm(name, job) for name in names} <= self.prometheus.set_off()

    def _wait_until_scraped(self, job: str) -> None:
        """Wait until Prometheus reaches all controllers of a job: it looks for new ones every 5 seconds."""
        expected = len(self._jobs[job])
        wait_until(
            lambda: self.prometheus.value(f'sum(up{{job="{job}"}})') == expected, f"the scrapes of {job}"
        )


def of_ours(controller: Controller) -> OurController:
    assert isinstance(controller, OurController)
    return controller


def paused(*nodes: Node) -> AbstractContextManager[None]:
    """Suspend processes during the block."""
    return suspended(*(node.running_process for node in nodes))


def write(controller: Controller, count: int, value_bytes: int = 10) -> None:
    """Write so many records, each with a configuration's value of so many bytes."""
    with Client(HOST, controller.port) as client:
        for number in range(count):
            client.set_config("padding", f"{number}".zfill(value_bytes))


def wait_for_child(controller: Controller, module: str) -> int:
    """Return the pid of a child that runs a module, as soon as there is one."""
    tasks = Path(f"/proc/{controller.running_process.pid}/task")

    def find() -> int | None:
        with suppress(FileNotFoundError):  # a thread or a child has ended
            for children in tasks.glob("*/children"):
                for pid in children.read_text().split():
                    if module.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                        return int(pid)
        return None

    return wait_until(find, f"a child of {controller.name} that runs {module}") or 0
