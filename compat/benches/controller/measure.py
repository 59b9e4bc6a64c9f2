"""Measure one controller: start-up, memory, topic creation and heartbeats."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from compat.benches import tiers
from compat.benches.controller.load import Measured, repeat_for, run_closed_loop
from compat.harness.kafka.cluster import NEWEST_KAFKA, ControllerKind, make_controller, random_cluster_id
from compat.harness.kafka.nodes import JvmController, OurController
from compat.harness.kafka.pretend_broker import PretendBroker
from compat.harness.kafka.quorum import Controller
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import ProcessFailed, Workspace
from compat.harness.waiting import WaitTimeout
from compat.harness.wire import WireClient
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kraft_wire.wire.framing import frame
from kraft_wire.wire.headers import decode_response, encode_request

BROKER_RESOURCE = 4
CREATE_TOPICS_VERSION = 7
HEARTBEAT_VERSION = 1
PRETEND_BROKERS = 3
IDLE_S = 5.0

# The options of kafka-server-start.sh, with a smaller heap than its 1 GB, in favour of Java's memory figures.
JAVA_OPTIONS = (
    "-Xmx256m",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)

# Kafka's default; the interop tests use another value.
PROPERTIES = {"broker.session.timeout.ms": "9000"}


class Figures(msgspec.Struct):
    """The figures of one controller."""

    start_up_s: float
    idle_resident_bytes: int
    one_in_flight: Measured
    many_in_flight: Measured
    bulk_partitions_per_s: float
    loaded_resident_bytes: int
    heartbeats: Measured


class Sizes(msgspec.Struct, frozen=True):
    """The sizes of the measurement."""

    starts: int = 3
    warm_up_topics: int = 300
    topics_one_in_flight: int = 300
    topics_many_in_flight: int = 3000
    many: int = 64
    partitions_a_topic: int = 10
    bulk_requests: int = 20
    bulk_topics: int = 100
    bulk_partitions: int = 20
    bulk_in_flight: int = 2
    heartbeat_connections: int = 4
    heartbeat_s: float = 4.0


def measure(
    kind: ControllerKind,
    folder: Path,
    tools: ToolServer,
    sizes: Sizes,
    environment: Mapping[str, str] = tiers.PURE,
) -> Figures:
    """Start a controller of this kind ``sizes.starts`` times, and put load on the last one.

    ``environment`` selects the codec of ours.
    """
    start_ups = []
    for nth in range(1, sizes.starts):
        with Workspace(folder / f"{kind}-{nth}") as workspace:
            controller, _ = _formatted(kind, workspace, tools, environment)
            start_ups.append(start_and_write(controller))
            controller.stop()
    with Workspace(folder / f"{kind}-{sizes.starts}") as workspace:
        controller, cluster_id = _formatted(kind, workspace, tools, environment)
        start_ups.append(start_and_write(controller))
        return _load(controller, cluster_id, statistics.median(start_ups), sizes)


def _formatted(
    kind: ControllerKind, workspace: Workspace, tools: ToolServer, environment: Mapping[str, str]
) -> tuple[JvmController | OurController, str]:
    controller = make_controller(workspace, tools, kind, PROPERTIES)
    if isinstance(controller, JvmController):
        controller.jvm_options = JAVA_OPTIONS
    else:
        controller.environment = environment
    cluster_id = random_cluster_id()
    controller.format(cluster_id, "--standalone")
    return controller, cluster_id


def start_and_write(controller: Controller, within_s: float = 60.0) -> float:
    """Start a controller and return the seconds until its first write is answered.

    Raises ProcessFailed and WaitTimeout.
    """
    began = time.perf_counter()
    controller.start()
    while not write_succeeds(controller.port):
        if not controller.running_process.running:
            raise ProcessFailed(f"{controller.name} ended\n{controller.running_process.tail()}")
        if time.perf_counter() - began > within_s:
            raise WaitTimeout(f"{controller.name} accepted no write\n{controller.running_process.tail()}")
        time.sleep(0.002)
    return time.perf_counter() - began


def write_succeeds(port: int) -> bool:
    """Whether a new connection can be opened and a write on it succeeds."""
    try:
        with WireClient(port, timeout_s=5.0) as client:
            return write_succeeded(client)
    except OSError:
        return False  # not listening yet


def write_succeeded(client: WireClient) -> bool:
    """Set a cluster-wide broker config, a write that needs no broker; return whether it succeeded."""
    config = AlterableConfig(name="message.max.bytes", config_operation=0, value="1048588")
    resource = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="", configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = client.call(request, 1, IncrementalAlterConfigsResponse)
    return [response.error_code for response in answer.responses] == [ErrorCode.NONE]


def _load(
    controller: JvmController | OurController, cluster_id: str, start_up_s: float, sizes: Sizes
) -> Figures:
    process = controller.running_process
    port = controller.port
    topics = TopicLoad(port, sizes.partitions_a_topic)
    try:
        brokers = [PretendBroker(node_id, cluster_id, port) for node_id in range(1, PRETEND_BROKERS + 1)]
        time.sleep(IDLE_S)  # the figure is the memory of an idle controller
        idle_resident_bytes = process.resident_bytes()
        topics.create(sizes.warm_up_topics, in_flight=4)
        one_in_flight = topics.create(sizes.topics_one_in_flight, in_flight=1)
        many_in_flight = topics.create(sizes.topics_many_in_flight, in_flight=sizes.many)
        bulk = TopicLoad(port, sizes.bulk_partitions, sizes.bulk_topics)
        bulk_measured = bulk.create(sizes.bulk_requests, in_flight=sizes.bulk_in_flight)
        loaded_resident_bytes = process.resident_bytes()
        heartbeats = _heartbeats(port, brokers, sizes)
        for broker in brokers:
            broker.close()
    except (ProcessFailed, OSError) as failure:
        raise ProcessFailed(f"{failure}\n{process.tail()}") from failure
    controller.stop()
    return Figures(
        start_up_s=start_up_s,
        idle_resident_bytes=idle_resident_bytes,
        one_in_flight=one_in_flight,
        many_in_flight=many_in_flight,
        bulk_partitions_per_s=bulk_measured.per_second * sizes.bulk_topics * sizes.bulk_partitions,
        loaded_resident_bytes=loaded_resident_bytes,
        heartbeats=heartbeats,
    )


class TopicLoad:
    """A load that creates new topics on three brokers, ``topics_a_request`` with each request. ``prefix`` is
    the beginning of their names."""

    _names = itertools.count()

    def __init__(self, port: int, partitions: int, topics_a_request: int = 1, prefix: str = "topic") -> None:
        self._port = port
        self._prefix = prefix
        self._partitions = partitions
        self._topics_a_request = topics_a_request

    def create(self, requests: int, in_flight: int) -> Measured:
        frames = [_framed(self._request(), CREATE_TOPICS_VERSION) for _ in range(requests)]
        measured = run_closed_loop(self._port, in_flight, frames)
        _check_topics(measured.answers)
        return measured

    def _request(self) -> CreateTopicsRequest:
        topics = [
            CreatableTopic(
                name=f"{self._prefix}-{next(self._names)}",
                num_partitions=self._partitions,
                replication_factor=PRETEND_BROKERS,
            )
            for _ in range(self._topics_a_request)
        ]
        return CreateTopicsRequest(topics=topics, timeout_ms=60_000)


def _framed(request: Message, version: int) -> bytes:
    return frame(encode_request(request.API_KEY, version, 0, "bench", request))


def _check_topics(answers: list[bytes]) -> None:
    for answer in answers:
        _, response = decode_response(CreateTopicsRequest.API_KEY, CREATE_TOPICS_VERSION, answer)
        assert isinstance(response, CreateTopicsResponse)
        errors = {topic.error_code for topic in response.topics} - {ErrorCode.NONE}
        if errors:
            raise ProcessFailed(f"CreateTopics: {sorted(ErrorCode(code).name for code in errors)}")


def _heartbeats(port: int, brokers: list[PretendBroker], sizes: Sizes) -> Measured:
    frames = [_framed(broker.heartbeat(), HEARTBEAT_VERSION) for broker in brokers]
    measured = run_closed_loop(port, sizes.heartbeat_connections, repeat_for(frames, sizes.heartbeat_s))
    for answer in set(measured.answers):
        _, response = decode_response(BrokerHeartbeatRequest.API_KEY, HEARTBEAT_VERSION, answer)
        assert isinstance(response, BrokerHeartbeatResponse)
        if response.error_code != ErrorCode.NONE or response.is_fenced:
            raise ProcessFailed(
                f"heartbeat: {ErrorCode(response.error_code).name}, fenced {response.is_fenced}"
            )
    return measured


JAVA_NAME = f"Java {NEWEST_KAFKA}"
