"""Look all the time which leader and which epoch each node names, and whether it runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Final

import msgspec

from compat.campaigns.strangers.rules import Leadership, Sighting
from compat.harness.kafka.quorum import Controller
from compat.harness.processes import ManagedProcess
from compat.harness.wire import WireClient
from kraft_wire.client import questions
from kraft_wire.client.survey import FINISHED_EPOCH
from kraft_wire.protocol.errors import ProtocolError
from kraft_wire.protocol.messages.fetch_response import FetchResponse

LOOK_EVERY_S: Final = 0.05
ANSWER_WITHIN_S: Final = 10.0
FETCH_VERSION: Final = 17


class Watch:
    """One connection to each node. Of sightings in a row that are alike the first is kept."""

    def __init__(self, controllers: Sequence[Controller]) -> None:
        self._controllers = controllers
        self._stop = threading.Event()
        self._last: dict[int, Sighting] = {}
        self._sightings: list[Sighting] = []
        self._looks = 0
        self._lock = threading.Lock()
        """Held by whoever reads or writes what was seen: each node has its own thread."""
        self._threads = [
            threading.Thread(target=self._watch, args=(each.node_id, each.port)) for each in controllers
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def latest(self) -> dict[int, Sighting]:
        """Return the latest sighting of each node."""
        with self._lock:
            return dict(self._last)

    def ended(self) -> list[str]:
        """Return a line for each process that has ended."""
        return [
            f"{process.name} ended with {process.exit_code}\n{process.tail()}"
            for process in (each.running_process for each in self._controllers)
            if not process.running
        ]

    def take(self) -> tuple[list[Sighting], int]:
        """Return the new sightings, and how often nodes were looked at, since both were taken last."""
        with self._lock:
            taken = self._sightings, self._looks
            self._sightings, self._looks = [], 0
        return taken

    def _watch(self, node_id: int, port: int) -> None:
        while not self._stop.is_set():
            with (
                suppress(OSError, ProtocolError),  # a node that can't be asked is asked again
                WireClient(port, client_id="watch", timeout_s=ANSWER_WITHIN_S) as client,
            ):
                while not self._stop.wait(LOOK_EVERY_S):
                    self._look(client, node_id)
            self._stop.wait(LOOK_EVERY_S)

    def _look(self, client: WireClient, node_id: int) -> None:
        request = questions.fetch(None, FINISHED_EPOCH, 0, 0, 1)
        hint = questions.read_fetch(client.call(request, FETCH_VERSION, FetchResponse)).hint
        sighting = Sighting(node_id, hint.leader_id, hint.epoch)
        with self._lock:
            self._looks += 1
            if self._last.get(node_id) != sighting:
                self._last[node_id] = sighting
                self._sightings.append(sighting)


@contextmanager
def watching(controllers: Sequence[Controller]) -> Iterator[Watch]:
    """Watch running controllers until the block ends."""
    watch = Watch(controllers)
    try:
        yield watch
    finally:
        watch.close()


class LogReader:
    """What controllers log about elections, from where it was read last."""

    def __init__(self, controllers: Sequence[Controller]) -> None:
        self._controllers = controllers
        self._read_bytes: dict[ManagedProcess, int] = {}

    def take(self) -> list[Leadership]:
        """Return the leaderships that have begun since they were taken last, the oldest first."""
        began = [
            Leadership(controller.node_id, entry["epoch"], datetime.fromisoformat(entry["time"]).timestamp())
            for controller in self._controllers
            for entry in self._entries(controller.running_process)
            if entry["event"] == "became leader"
        ]
        return sorted(began, key=lambda leadership: leadership.began_s)

    def _entries(self, process: ManagedProcess) -> list[dict[str, Any]]:
        with process.log_path.open("rb") as log:
            log.seek(self._read_bytes.get(process, 0))
            whole, _, _ = log.read().rpartition(b"\n")
        self._read_bytes[process] = self._read_bytes.get(process, 0) + len(whole) + bool(whole)
        return [msgspec.json.decode(line) for line in whole.splitlines() if line.startswith(b"{")]
