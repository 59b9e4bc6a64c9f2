"""The folders of running controllers, Java's and ours, can be read while leaders are killed, segments are
rolled and deleted, and snapshots are made."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from compat.harness.kafka.config_writes import FIRST_VALUE, NAME, write_to_quorum
from compat.harness.kafka.quorum import ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import Workspace
from compat.harness.waiting import wait_until
from kraft_wire.log.files import PARTITION_FOLDER, segment_file_name
from tests.support.spark_readers import Row, Stream, batch

SETTINGS = {
    "internal.metadata.log.segment.bytes": "30000",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "metadata.max.retention.bytes": "60000",
    "metadata.max.idle.interval.ms": "20",
}


class Following:
    """A stream that runs one trigger after another until ``end`` is called."""

    def __init__(self, **options: str) -> None:
        self.stream = Stream(None, startingOffsets="earliest", **options)
        self._ends = Event()
        self._threads = ThreadPoolExecutor(1)
        self._following = self._threads.submit(self._follow)

    def _follow(self) -> None:
        while not self._ends.is_set():
            self.stream.trigger()

    def end(self) -> list[Row]:
        self._ends.set()
        self._threads.shutdown()
        self._following.result()
        self.stream.trigger()
        return self.stream.rows


def test_what_is_committed_is_read_once_from_the_folders_of_a_busy_quorum(
    workspace: Workspace, tool_server: ToolServer
) -> None:
    quorum = ControllerQuorum(workspace, tool_server, ["java", "ours", "java"], properties=SETTINGS)
    quorum.format()
    quorum.start()
    first = quorum.leader()
    write_to_quorum(quorum, range(5))
    controllers = quorum.controllers.values()
    folders = json.dumps([str(controller.data_folder) for controller in controllers])
    following = Following(paths=folders, tail="committed")
    write_to_quorum(quorum, range(5, 60))
    first.kill()
    write_to_quorum(quorum, range(60, 120))
    first.start()
    second = quorum.leader()
    second.kill()
    write_to_quorum(quorum, range(120, 150))
    second.start()
    wait_until(lambda: all(is_trimmed(each.data_folder) for each in controllers), "logs to be trimmed", 120.0)
    for controller in controllers:
        controller.stop()
    rows = following.end()
    offsets = [row["offset"] for row in rows if not row["in_snapshot"]]
    assert offsets == list(range(offsets[0], offsets[-1] + 1))
    assert {row["committed"] for row in rows} == {True}
    last = following.stream.position
    again = batch(None, paths=folders, endingOffsets=json.dumps(last), tail="committed")
    there = [row for row in again if not row["in_snapshot"]]
    assert there == rows[-len(there) :]
    everything = batch(None, paths=folders)
    assert everything[: len(again)] == again
    written = values(rows + everything)
    assert written == list(range(written[0], 150))
    assert written[0] < 60, "before the first was killed"
    assert batch(None, paths=folders, table="corrupt") == []


def is_trimmed(folder: Path) -> bool:
    return not (folder / PARTITION_FOLDER / segment_file_name(0)).exists()


def values(rows: list[Row]) -> list[int]:
    """Return the distinct values of the configs that were written; a client retries a write of unknown
    result."""
    configs = [
        json.loads(row["json"]) for row in rows if row["type"] == "ConfigRecord" and not row["in_snapshot"]
    ]
    found = [int(config["value"]) - FIRST_VALUE for config in configs if config["name"] == NAME]
    return sorted(set(found))
