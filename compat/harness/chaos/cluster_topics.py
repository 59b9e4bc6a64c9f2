"""Read a cluster's topics: from a controller's snapshot and log, or from a broker's answers."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from compat.harness.chaos.ledger import TopicContent
from compat.harness.kafka.broker_metadata import METADATA_VERSION
from compat.harness.kafka.nodes import Node
from compat.harness.wire import WireClient
from kraft_wire.log.batch import Batch, record_values
from kraft_wire.log.errors import LogError
from kraft_wire.log.files import PARTITION_FOLDER
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.protocol.messages.describe_configs_response import DescribeConfigsResponse
from kraft_wire.protocol.messages.metadata_request import MetadataRequest
from kraft_wire.protocol.messages.metadata_response import MetadataResponse
from kraft_wire.protocol.metadata_record import decode_metadata_record
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.log.batch_reader import read_batches
from kraft_wire.storage.recovery.repair import segment_paths
from kraft_wire.storage.snapshots.snapshot_store import SnapshotStore
from kraft_wire.storage.snapshots.state_loading import load_state

DESCRIBE_CONFIGS_VERSION = 4
SET_ON_THE_TOPIC = 1


class NodeFiles(msgspec.Struct):
    """The content of a controller's files below an offset: the batches of its log by base offset, and the
    state built from its newest snapshot and the log after it."""

    batches: dict[int, Batch]
    state: MetadataState


def read_files(data_folder: Path, end_offset: int) -> NodeFiles | None:
    """Read a controller's files up to ``end_offset``; it may be running.

    Return None if the files don't reach from a snapshot to there or change while they are read: try again.
    """
    partition = data_folder / PARTITION_FOLDER
    try:
        batches = _read_log(partition, end_offset)
        state, next_offset = _newest_state(partition, end_offset)
    except (FileNotFoundError, LogError):
        return None
    for base_offset, batch in sorted(batches.items()):
        if base_offset == next_offset:
            _replay(state, batch)
            next_offset = batch.header.next_offset
    return NodeFiles(batches, state) if next_offset == end_offset else None


def _read_log(partition: Path, end_offset: int) -> dict[int, Batch]:
    batches: dict[int, Batch] = {}
    for path in segment_paths(partition):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for _, batch in read_batches(fd, 0, os.fstat(fd).st_size):
                if batch.header.base_offset >= end_offset:
                    break
                batches[batch.header.base_offset] = batch
        finally:
            os.close(fd)
    return batches


def _newest_state(partition: Path, end_offset: int) -> tuple[MetadataState, int]:
    """Return the state of the newest snapshot up to ``end_offset``, and the snapshot's end offset."""
    snapshots = SnapshotStore(partition, Disk())
    try:
        usable = [snapshot_id for snapshot_id in snapshots.ids if snapshot_id.end_offset <= end_offset]
        if not usable:
            return MetadataState(), 0
        return load_state(snapshots, usable[-1]), usable[-1].end_offset
    finally:
        snapshots.close()


def _replay(state: MetadataState, batch: Batch) -> None:
    if not batch.header.is_control:
        for offset, value in enumerate(record_values(batch), batch.header.base_offset):
            state.replay(decode_metadata_record(value)[0], offset)


def topics_in(state: MetadataState) -> dict[str, TopicContent]:
    """Return the topics of a state, including names that only have configs."""
    partitions = {
        topic.name: tuple(index for index, _ in state.partitions.indexed(topic.id)) for topic in state.topics
    }
    configured = {name for kind, name in state.configs.resources() if kind == ResourceType.TOPIC}
    return {
        name: TopicContent(partitions.get(name, ()), state.configs.get(ResourceType.TOPIC, name))
        for name in partitions.keys() | configured
    }


def topics_on(broker: Node) -> dict[str, TopicContent]:
    """Return the topics that a broker lists now, with the configs that are set on them."""
    with WireClient(broker.port, host=broker.place.host) as client:
        metadata = client.call(
            MetadataRequest(topics=None, allow_auto_topic_creation=False), METADATA_VERSION, MetadataResponse
        )
        partitions = {
            topic.name or "": tuple(sorted(partition.partition_index for partition in topic.partitions))
            for topic in metadata.topics
            if topic.error_code == ErrorCode.NONE
        }
        request = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(ResourceType.TOPIC, name) for name in sorted(partitions)]
        )
        described = client.call(request, DESCRIBE_CONFIGS_VERSION, DescribeConfigsResponse)
    configs = {
        result.resource_name: {
            config.name: config.value or ""
            for config in result.configs
            if config.config_source == SET_ON_THE_TOPIC
        }
        for result in described.results
    }
    return {name: TopicContent(partitions[name], configs[name]) for name in partitions}
