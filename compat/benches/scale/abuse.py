"""Let one client ask for too much, and measure how long others wait meanwhile."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from compat.benches.scale.java_heap import give_heap
from compat.benches.scale.peak import forget_peak, peak_bytes
from compat.benches.scale.pretend_fetcher import FetchFrame
from compat.benches.scale.pulse import feel_pulse
from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.kafka.quorum import ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.ports import HOST
from compat.harness.processes import ManagedProcess, Workspace
from compat.harness.wire import WireClient, describe_quorum
from kraft_wire.log.files import CLUSTER_METADATA
from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraft_wire.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kraft_wire.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.wire.framing import frame
from kraft_wire.wire.headers import encode_request

BROKERS = 4
TOPICS = 300
PATIENCE_S = 60.0
TIMEOUT_MS = 60_000
AFTERWARDS_S = 1.0
PIPELINED = 128
LONG_POLLS = 12_800
POLLS_A_CONNECTION = 100
CONNECTIONS = 1_000
REPLICAS = 500
RECORDS_BEHIND = 80_000
"""They have some 8 MB, the most that one answer has."""
FETCH_VERSION = 17
REPLICA = 5_000
WRITERS = 400
WRITERS_STAY_S = 10.0
NEW_TOPICS = 9_900
SMALL_BYTES = 100_000
MANY_ENTRIES = 1_000_000
LIST_ITEMS = 3_500
SET, APPEND = 0, 2
REPLICA_LIST = "follower.replication.throttled.replicas"
OWN_VALUES = {"retention.ms": "1000", "cleanup.policy": "compact"}


Attack = Callable[[], None]


class Abused(msgspec.Struct, frozen=True):
    """What one client did to the others."""

    name: str
    took_s: float
    longest_heartbeat_ms: float
    more_bytes: int
    failures: tuple[str, ...]


class _Target(msgspec.Struct, frozen=True):
    """The controller under attack."""

    port: int
    cluster_id: str
    topics: list[str]


def measure_abuse(
    kind: ControllerKind, folder: Path, tools: ToolServer, settings: Mapping[str, str] | None = None
) -> Iterator[Abused]:
    """Let a client do one thing after the other."""
    with Workspace(folder / f"{kind}-abused") as workspace:
        quorum = ControllerQuorum(workspace, tools, [kind], "dynamic", settings or {})
        give_heap(quorum)
        quorum.format()
        quorum.start()
        port = quorum.leader().port
        brokers = [
            PretendBroker(id, quorum.cluster_id, port, patient=kind == "java") for id in range(1, BROKERS + 1)
        ]
        target = _Target(port, quorum.cluster_id, [f"topic-{number}" for number in range(TOPICS)])
        _create(target)
        for name, attack in _attacks():
            yield _measure(name, attack(target), quorum.leader().running_process, brokers, port)
        for broker in brokers:
            broker.close()


def _create(target: _Target) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name, 10, 3) for name in target.topics])
    with WireClient(target.port, timeout_s=PATIENCE_S) as client:
        answer = client.call(request, 7, CreateTopicsResponse)
    assert not any(topic.error_code for topic in answer.topics)


def _measure(
    name: str,
    attack: Attack,
    process: ManagedProcess,
    brokers: list[PretendBroker],
    port: int,
) -> Abused:
    before_bytes = process.resident_bytes()
    forget_peak(process.pid)
    with feel_pulse(brokers, port) as pulse:
        began = time.perf_counter()
        try:
            attack()
        except TimeoutError:
            pulse.failures.append(f"there was no answer for {PATIENCE_S:g} s")
        took_s = time.perf_counter() - began
        time.sleep(AFTERWARDS_S)
    more_bytes = max(0, peak_bytes(process.pid) - before_bytes)
    return Abused(name, took_s, pulse.longest_ms, more_bytes, tuple(pulse.failures))


def _attacks() -> Iterator[tuple[str, Callable[[_Target], Attack]]]:
    """Return names, and functions that prepare what is sent: encoding it takes longer than serving it."""
    yield f"{PIPELINED} DescribeConfigs of {TOPICS} topics", _describe_configs
    yield f"{PIPELINED} DescribeConfigs of {TOPICS} topics with values of their own", _describe_configured
    yield f"{PIPELINED} APPENDs to lists of {LIST_ITEMS:,} items", _append_to_lists
    yield f"{PIPELINED} CreateTopics of 9,999 partitions", _create_large_topics
    for size, fill in ((SMALL_BYTES, "100 KB"), (MANY_ENTRIES * 4, "1,000,000 entries")):
        for request_of in _REQUESTS:
            name = request_of.__name__.strip("_").replace("_", " ")
            yield (
                f"one request of {fill} to {name}",
                partial(_one_request, request_of=request_of, size_bytes=size),
            )
    yield f"{LONG_POLLS:,} long polls", _poll
    yield f"{LONG_POLLS:,} consumers' Fetches", _fetch_as_consumers
    yield f"{CONNECTIONS:,} connections with requests that close at once", _close_at_once
    yield f"{REPLICAS} replicas that fetch 8 MB and read nothing", _fetch_and_not_read
    yield f"{WRITERS} CreateTopics of {NEW_TOPICS:,} topics on as many connections", _create_on_many


# Pipelined requests.


def _describe_configs(target: _Target) -> Attack:
    resources = [DescribeConfigsResource(ResourceType.TOPIC, name, None) for name in target.topics]
    return partial(_pipeline, target.port, [_framed(DescribeConfigsRequest(resources), 4)] * PIPELINED)


def _describe_configured(target: _Target) -> Attack:
    values = [AlterableConfig(key, SET, value) for key, value in OWN_VALUES.items()]
    _change_configs(
        target, [AlterConfigsResource(ResourceType.TOPIC, name, values) for name in target.topics]
    )
    return _describe_configs(target)


def _append_to_lists(target: _Target) -> Attack:
    replicas = ",".join(f"{number}:1" for number in range(LIST_ITEMS))
    topics = target.topics[:3]
    set_all, append = (
        [
            AlterConfigsResource(ResourceType.TOPIC, name, [AlterableConfig(REPLICA_LIST, operation, value)])
            for name in topics
        ]
        for operation, value in ((SET, replicas), (APPEND, replicas))
    )
    _change_configs(target, set_all)
    return partial(_pipeline, target.port, [_framed(IncrementalAlterConfigsRequest(append), 1)] * PIPELINED)


def _change_configs(target: _Target, resources: list[AlterConfigsResource]) -> None:
    with WireClient(target.port, timeout_s=PATIENCE_S) as client:
        request = IncrementalAlterConfigsRequest(resources)
        answer = client.call(request, 1, IncrementalAlterConfigsResponse)
    assert not any(response.error_code for response in answer.responses)


def _create_large_topics(target: _Target) -> Attack:
    requests = [
        CreateTopicsRequest(topics=[CreatableTopic(f"large-{number}", 9_999, 3)])
        for number in range(PIPELINED)
    ]
    return partial(_pipeline, target.port, [_framed(request, 7) for request in requests])


def _framed(request: Message, version: int) -> bytes:
    return frame(encode_request(request.API_KEY, version, 0, "abuse", request))


def _pipeline(port: int, frames: list[bytes]) -> None:
    with _connected(port) as stream:
        stream.sendall(b"".join(frames))
        for _ in frames:
            _skip_answer(stream)


# One large request.


def _one_request(
    target: _Target, request_of: Callable[[int], tuple[Message, int]], size_bytes: int
) -> Attack:
    """Prepare a request of about this size, in entries that are as small as possible."""
    few = len(_framed(*request_of(100)))
    entry_bytes = (len(_framed(*request_of(200))) - few) / 100
    request, version = request_of(int(min(size_bytes / entry_bytes, MANY_ENTRIES)))
    return partial(_pipeline, target.port, [_framed(request, version)])


def _alter_configs(count: int) -> tuple[Message, int]:
    return IncrementalAlterConfigsRequest([AlterConfigsResource() for _ in range(count)]), 1


def _alter_one_resource(count: int) -> tuple[Message, int]:
    configs = [AlterableConfig(name="") for _ in range(count)]
    return IncrementalAlterConfigsRequest([AlterConfigsResource(2, "topic-1", configs)]), 1


def _create_topics(count: int) -> tuple[Message, int]:
    return CreateTopicsRequest(topics=[CreatableTopic(f"{number:x}", 0, 1) for number in range(count)]), 7


def _create_partitions(count: int) -> tuple[Message, int]:
    topics = [CreatePartitionsTopic(f"{number:x}", 1) for number in range(count)]
    return CreatePartitionsRequest(topics, TIMEOUT_MS), 3


def _delete_topics(count: int) -> tuple[Message, int]:
    topics = [DeleteTopicState(f"{number:x}") for number in range(count)]
    return DeleteTopicsRequest(topics, timeout_ms=TIMEOUT_MS), 6


def _describe_many(count: int) -> tuple[Message, int]:
    resources = [DescribeConfigsResource(2, f"{number:x}", None) for number in range(count)]
    return DescribeConfigsRequest(resources), 4


def _elect_leaders(count: int) -> tuple[Message, int]:
    return ElectLeadersRequest(0, [TopicPartitions("topic-1", tuple(range(count)))]), 2


def _metadata(count: int) -> tuple[Message, int]:
    return MetadataRequest([MetadataRequestTopic(name=f"{number:x}") for number in range(count)]), 8


def _fetch(count: int) -> tuple[Message, int]:
    return FetchRequest(topics=[FetchTopic(topic=f"{number:x}") for number in range(count)]), 12


_REQUESTS = (
    _alter_configs,
    _alter_one_resource,
    _create_topics,
    _create_partitions,
    _delete_topics,
    _describe_many,
    _elect_leaders,
    _metadata,
    _fetch,
)


# Many connections and polls.


def _poll(target: _Target) -> Attack:
    return partial(_poll_at_the_end, target.port)


def _poll_at_the_end(port: int) -> None:
    """Ask from many connections for the next record, which is committed while they wait, and go away."""
    with WireClient(port, timeout_s=PATIENCE_S) as client:
        end_offset = describe_quorum(client).topics[0].partitions[0].high_watermark
    partition = FetchPartition(partition=0, fetch_offset=end_offset, partition_max_bytes=1)
    poll = FetchRequest(
        max_wait_ms=30_000, min_bytes=1, topics=[FetchTopic(topic=CLUSTER_METADATA, partitions=[partition])]
    )
    frames = _framed(poll, 12) * POLLS_A_CONNECTION
    _flood(port, LONG_POLLS // POLLS_A_CONNECTION, frames, AFTERWARDS_S)


def _fetch_as_consumers(target: _Target) -> Attack:
    """Ask from many connections for the beginning of the log."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    fetch = FetchRequest(
        max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic=CLUSTER_METADATA, partitions=[partition])]
    )
    frames = _framed(fetch, 12) * POLLS_A_CONNECTION
    return partial(_flood, target.port, LONG_POLLS // POLLS_A_CONNECTION, frames, AFTERWARDS_S)


def _close_at_once(target: _Target) -> Attack:
    resources = [DescribeConfigsResource(ResourceType.TOPIC, name, None) for name in target.topics]
    frames = _framed(DescribeConfigsRequest(resources), 4) * 8
    return partial(_flood, target.port, CONNECTIONS, frames, 0)


def _fetch_and_not_read(target: _Target) -> Attack:
    """Ask on many connections, as replicas that are behind, for the same records."""
    with WireClient(target.port, timeout_s=PATIENCE_S) as client:
        quorum = describe_quorum(client).topics[0].partitions[0]
    directory = Uuid(bytes(15) + b"\1")
    fetch = FetchFrame(FETCH_VERSION, target.cluster_id, REPLICA, directory, quorum.leader_epoch)
    request = bytes(fetch.with_offsets(quorum.high_watermark - RECORDS_BEHIND, 0))
    return partial(_flood, target.port, REPLICAS, request, AFTERWARDS_S)


def _create_on_many(target: _Target) -> Attack:
    """Ask for topics with a configuration each, which are checked and not created."""
    config = CreatableTopicConfig("retention.ms", "100000")
    topics = [CreatableTopic(f"new-{number}", 1, 3, configs=[config]) for number in range(NEW_TOPICS)]
    request = CreateTopicsRequest(topics=topics, validate_only=True)
    return partial(_flood, target.port, WRITERS, _framed(request, 7), WRITERS_STAY_S)


def _flood(port: int, connections: int, data: bytes, stay_s: float) -> None:
    """Send this from many connections, and close them without reading."""
    streams = [_connect(port) for _ in range(connections)]
    for stream in streams:
        stream.sendall(data)
    time.sleep(stay_s)
    for stream in streams:
        stream.close()


def _connect(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), timeout=PATIENCE_S)


@contextmanager
def _connected(port: int) -> Iterator[socket.socket]:
    with _connect(port) as stream:
        yield stream


def _skip_answer(stream: socket.socket) -> None:
    """Read one response; a closed connection is an answer, too."""
    try:
        left = int.from_bytes(_read(stream, 4))
        while left:
            left -= len(_read(stream, min(left, 1 << 16)))
    except (ConnectionError, EOFError):
        return


def _read(stream: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = stream.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data
