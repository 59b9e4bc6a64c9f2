"""Write a metadata log with very many partitions, for controllers of either kind.

Three of our controllers write the first records; the many topics are appended offline. A snapshot holds all
but the last topics, as in any log that has grown so large.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from compat.benches.controller.measure import PRETEND_BROKERS
from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.kafka.quorum import Controller, ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import Workspace
from kraft_wire.log.batch import encode_batch
from kraft_wire.log.files import LOG_SUFFIX, PARTITION_FOLDER
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.features.metadata_version import LATEST_PRODUCTION, partition_record_version
from kraft_wire.protocol.messages.partition_record import PartitionRecord
from kraft_wire.protocol.messages.topic_record import TopicRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.storage.snapshots.snapshotter import make_snapshot
from kraft_wire.storage.store import Store

TOPICS_A_BATCH = 50

# No broker sends heartbeats.
PROPERTIES = {"broker.session.timeout.ms": "86400000"}


class LargeLog(msgspec.Struct, frozen=True):
    """A partition folder on which any of three static voters can start."""

    folder: Path
    cluster_id: str
    partitions: int
    snapshot_bytes: int
    tail_bytes: int


def make_large_log(
    folder: Path, tools: ToolServer, *, topics: int, tail_topics: int, partitions_a_topic: int
) -> LargeLog:
    """Write a log with ``topics`` topics, the last ``tail_topics`` of them after the snapshot."""
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
    """Format every controller's folder and copy the log into it."""
    quorum.cluster_id = log.cluster_id
    quorum.format()
    for controller in quorum.controllers.values():
        partition_folder = controller.data_folder / PARTITION_FOLDER
        shutil.rmtree(partition_folder)
        shutil.copytree(log.folder, partition_folder)


class _Topics:
    """A source of new topics; each broker leads as many partitions as any other."""

    def __init__(self, directories: dict[int, Uuid], partitions: int) -> None:
        self._directories = directories
        self._partitions = partitions
        self._made = 0

    def take(self, count: int) -> Iterator[bytes]:
        """Yield the records of ``count`` new topics."""
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
    """Register pretend brokers and return their log directories."""
    brokers = [
        PretendBroker(node_id, quorum.cluster_id, leader.port) for node_id in range(1, PRETEND_BROKERS + 1)
    ]
    for broker in brokers:
        broker.close()
    return {broker.node_id: broker.directory for broker in brokers}


def _append(controller: Controller, topics: _Topics, count: int) -> SnapshotId:
    """Append ``count`` topics to the folder of a stopped controller; return the id of a snapshot at the log
    end."""
    store = Store.open(controller.data_folder, node_id=controller.node_id)
    try:
        epoch = store.log.epochs.latest_epoch
        assert epoch is not None, "the leader has written to the log"
        for done in range(0, count, TOPICS_A_BATCH):
            values = list(topics.take(min(TOPICS_A_BATCH, count - done)))
            now_ms = time.time_ns() // 1_000_000
            store.log.append([encode_batch(store.log.end_offset, epoch, now_ms, values)])
        store.log.note_committed(store.log.end_offset)  # all three voters get a copy
        return SnapshotId(store.log.flush(), epoch)
    finally:
        store.close()


def _log_bytes(partition_folder: Path) -> int:
    return sum(path.stat().st_size for path in partition_folder.glob(f"*{LOG_SUFFIX}"))
