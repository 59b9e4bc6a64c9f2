"""Create topics, and measure when real brokers know them: a client may ask any broker for its new topic."""

from __future__ import annotations

import select
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from compat.harness.kafka.cluster import ControllerKind
from compat.harness.kafka.quorum import ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import ProcessFailed, Workspace
from compat.harness.waiting import WaitTimeout
from compat.harness.wire import WireClient
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse
from kraft_wire.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraft_wire.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic

ASK_EVERY_S = 0.001
PAUSE_S = 0.05
PATIENCE_S = 30.0
CREATE_VERSION = 7
METADATA_VERSION = 12


class KnownSizes(msgspec.Struct, frozen=True):
    """How many topics are created, one after the other, on how many brokers."""

    brokers: int = 3
    warm_up_topics: int = 50
    topics: int = 200
    partitions: int = 3


class KnownFigures(msgspec.Struct, frozen=True):
    """The times of each topic, from the request until it is answered, and until all brokers know all leaders
    of its partitions. A broker is asked every millisecond."""

    answered_ms: list[float]
    known_ms: list[float]

    @property
    def known_after_answer_ms(self) -> list[float]:
        """The times from the answer until all brokers know the topic, 0 if they knew it before."""
        return [
            max(0.0, known - answered)
            for answered, known in zip(self.answered_ms, self.known_ms, strict=True)
        ]


def measure_known(
    kind: ControllerKind,
    folder: Path,
    tools: ToolServer,
    sizes: KnownSizes,
    settings: Mapping[str, str] | None = None,
) -> KnownFigures:
    """Start a controller and brokers, create topics at the controller, and ask the brokers for them."""
    with Workspace(folder / f"{kind}-known") as workspace:
        quorum = ControllerQuorum(workspace, tools, [kind], "dynamic", settings or {})
        quorum.format()
        quorum.start()
        quorum.start_brokers(sizes.brokers)
        controller = WireClient(quorum.leader().port, timeout_s=PATIENCE_S)
        brokers = [WireClient(broker.port, timeout_s=PATIENCE_S) for broker in quorum.brokers.values()]
        for number in range(sizes.warm_up_topics):
            _create(controller, brokers, f"warm-up-{number}", sizes)
        times = [_create(controller, brokers, f"topic-{number}", sizes) for number in range(sizes.topics)]
        for client in (controller, *brokers):
            client.close()
    return KnownFigures([answered for answered, _ in times], [known for _, known in times])


def _create(
    controller: WireClient, brokers: list[WireClient], name: str, sizes: KnownSizes
) -> tuple[float, float]:
    """Create a topic; return the milliseconds until it is answered and until all brokers know it."""
    time.sleep(PAUSE_S)
    request = CreateTopicsRequest(topics=[CreatableTopic(name, sizes.partitions, sizes.brokers)])
    began_s = time.perf_counter()
    controller.send(request, CREATE_VERSION)
    answered_s = known_s = 0.0
    unaware = brokers
    while not answered_s or unaware:
        asked_s = time.perf_counter()
        if unaware:
            unaware = _unaware(unaware, name, sizes.partitions)
            known_s = time.perf_counter()
        if not answered_s and select.select([controller], [], [], 0)[0]:
            answered_s = time.perf_counter()
            _check(controller.receive(CreateTopicsResponse))
        if asked_s - began_s > PATIENCE_S:
            raise WaitTimeout(f"{name} isn't known to all brokers after {PATIENCE_S:g} s")
        time.sleep(max(0.0, asked_s + ASK_EVERY_S - time.perf_counter()))
    return (answered_s - began_s) * 1000, (known_s - began_s) * 1000


def _unaware(brokers: list[WireClient], name: str, partitions: int) -> list[WireClient]:
    """Return the brokers that don't know a leader of every partition of the topic."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    for broker in brokers:
        broker.send(request, METADATA_VERSION)
    answers = [broker.receive(MetadataResponse) for broker in brokers]
    return [
        broker
        for broker, answer in zip(brokers, answers, strict=True)
        if not _is_complete(answer.topics[0], partitions)
    ]


def _is_complete(topic: MetadataResponseTopic, partitions: int) -> bool:
    leaders = [partition.leader_id for partition in topic.partitions if partition.leader_id >= 0]
    return topic.error_code == ErrorCode.NONE and len(leaders) == partitions


def _check(answer: CreateTopicsResponse) -> None:
    for topic in answer.topics:
        if topic.error_code:
            raise ProcessFailed(f"CreateTopics: {ErrorCode(topic.error_code).name}")
