"""A metadata log with very many partitions, for controllers of either kind.

Three of our controllers begin it, so that its first records are real; what makes it large is written offline.
A snapshot holds all but the last of it, as it does wherever such a log has grown.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from compat.bench.measure import PRETEND_BROKERS
from compat.bench.pretend_broker import PretendBroker
from compat.harness.controllers import Controller, ControllerQuorum
from compat.harness.processes import Workspace
from compat.harness.tool_server import ToolServer
from kraft_wire.log.batch import encode_batch
from kraft_wire.log.files import LOG_SUFFIX, PARTITION_FOLDER
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.version import LATEST_PRODUCTION, partition_record_version
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.storage.snapshotter import make_snapshot
from kraft_wire.storage.store import Store

TOPICS_A_BATCH = 50

# Nobody is there to send heartbeats.
PROPERTIES = {"broker.session.timeout.ms": "86400000"}


class LargeLog(msgspec.Struct, frozen=True):
    """A partition folder that any of three static voters can start from."""

    folder: Path
    cluster_id: str
    partitions: int
    snapshot_bytes: int
    tail_bytes: int


def make_large_log(
    folder: Path, tools: ToolServer, *, topics: int, tail_topics: int, partitions_a_topic: int
) -> LargeLog:
    """``topics`` of them, the last ``tail_topics`` of them behind the snapshot."""
    with Workspace(folder) as workspace:
        quorum = ControllerQuorum(workspace, tools, ["ours"] * 3, "static", PROPERTIES)
        quorum.format()
        quorum.start()
        leader = quorum.leader()
        directories = _register_brokers(quorum, leader)
    partition_folder = leader.data_folder / PARTITION_FOLDER
    pieces = _Topics(directories, partitions_a_topic)
    snapshot = _append(leader, pieces, topics - tail_topics)
    snapshot_bytes = make_snapshot(partition_folder, snapshot).size_bytes
    before_bytes = _log_bytes(partition_folder)
    _append(leader, pieces, tail_topics)
    tail_bytes = _log_bytes(partition_folder) - before_bytes
    return LargeLog(
        partition_folder, quorum.cluster_id, topics * partitions_a_topic, snapshot_bytes, tail_bytes
    )


def plant(log: LargeLog, quorum: ControllerQuorum) -> None:
    """Format every controller's folder, and put a copy of the log there."""
    quorum.cluster_id = log.cluster_id
    quorum.format()
    for controller in quorum.controllers.values():
        partition_folder = controller.data_folder / PARTITION_FOLDER
        shutil.rmtree(partition_folder)
        shutil.copytree(log.folder, partition_folder)


class _Topics:
    """Topics of fresh names, replicated to all brokers in turn."""

    def __init__(self, directories: dict[int, Uuid], partitions: int) -> None:
        self._directories = directories
        self._partitions = partitions
        self._made = 0

    def take(self, count: int) -> Iterator[bytes]:
        """The records of some more topics."""
        for _ in range(count):
            self._made += 1
            yield from self._topic(f"topic-{self._made}")

    def _topic(self, name: str) -> Iterator[bytes]:
        topic_id = Uuid.from_random(secrets.token_bytes(16))
        yield encode_metadata_record(TopicRecord(name, topic_id), 0)
        brokers = list(self._directories)
        version = partition_record_version(LATEST_PRODUCTION)
        for index in range(self._partitions):
            first = (self._made + index) % len(brokers)
            replicas = (*brokers[first:], *brokers[:first])
            record = PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                directories=tuple(self._directories[broker] for broker in replicas),
            )
            yield encode_metadata_record(record, version)


def _register_brokers(quorum: ControllerQuorum, leader: Controller) -> dict[int, Uuid]:
    """The brokers' log directories."""
    brokers = [
        PretendBroker(node_id, quorum.cluster_id, leader.port) for node_id in range(1, PRETEND_BROKERS + 1)
    ]
    for broker in brokers:
        broker.close()
    return {broker.node_id: broker.directory for broker in brokers}


def _append(controller: Controller, topics: _Topics, count: int) -> SnapshotId:
    """Append that many topics to a folder whose controller doesn't run; returns where the log ends then."""
    store = Store.open(controller.data_folder, node_id=controller.node_id)
    try:
        epoch = store.log.epochs.latest_epoch
        assert epoch is not None, "its leader wrote to it"
        for done in range(0, count, TOPICS_A_BATCH):
            values = list(topics.take(min(TOPICS_A_BATCH, count - done)))
            now_ms = time.time_ns() // 1_000_000
            store.log.append([encode_batch(store.log.end_offset, epoch, now_ms, values)])
        store.log.note_committed(store.log.end_offset)  # all three get it
        return SnapshotId(store.log.flush(), epoch)
    finally:
        store.close()


def _log_bytes(partition_folder: Path) -> int:
    return sum(path.stat().st_size for path in partition_folder.glob(f"*{LOG_SUFFIX}"))
