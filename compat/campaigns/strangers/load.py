"""The load: one client that creates topics, and brokers that send heartbeats."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

import msgspec

from compat.campaigns.strangers.active_controller import ActiveController, NoController
from compat.harness.chaos.ledger import Ledger, TopicContent
from compat.harness.kafka.pretend_broker import (
    HEARTBEAT_INTERVAL_S,
    REGISTRATION_VERSION,
    heartbeat,
    random_uuid,
    registration,
    supported_features,
)
from compat.harness.processes import ProcessFailed
from compat.harness.waiting import WaitTimeout, wait_until
from compat.harness.wire import WireClient
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraft_wire.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.create_topics_response import CreateTopicsResponse

BROKERS: Final = 5
CREATE_EVERY_S: Final = 0.05
CREATE_VERSION: Final = 7
PATIENCE_S: Final = 30.0
STEADY_TOPICS: Final = 40
START_WITHIN_S: Final = 120.0
ONE_PARTITION: Final = TopicContent((0,), {})
CREATED: Final = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
"""A client that asks a second node after the first was cut off finds the topic that it has created."""


class Figures(msgspec.Struct):
    """How long topics and heartbeats took, and what failed. ``waits_ms`` is the time for which the creation
    that wasn't answered yet waited when the figures were taken."""

    creations_ms: list[float] = []
    waits_ms: float = 0.0
    heartbeats_ms: list[float] = []
    fenced: int = 0
    failures: list[str] = []


class Load:
    """Clients that run from ``__enter__`` to ``__exit__``. ``ledger`` has the acknowledged topics."""

    def __init__(self, ports: Sequence[int], cluster_id: str) -> None:
        self.ledger = Ledger()
        self._ports = ports
        self._cluster_id = cluster_id
        self._figures = Figures()
        self._asked_s: float | None = None
        """When the creation that isn't answered yet began."""
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._create_topics),
            *(threading.Thread(target=self._be_broker, args=(id,)) for id in range(1, BROKERS + 1)),
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_until_steady(self) -> None:
        """Wait until brokers are there and some topics are created, and forget the figures."""
        try:
            wait_until(
                lambda: self.ledger.acknowledged_count >= STEADY_TOPICS, "the first topics", START_WITHIN_S
            )
        except WaitTimeout as timeout:
            raise ProcessFailed(f"{timeout}; the last failures: {self._figures.failures[-5:]}") from None
        self.take()

    def take(self) -> Figures:
        """Return the figures since they were taken last."""
        figures, self._figures = self._figures, Figures()
        asked_s = self._asked_s
        if asked_s is not None:
            figures.waits_ms = (time.monotonic() - asked_s) * 1000
        return figures

    def _create_topics(self) -> None:
        client = ActiveController(self._ports, "topics")
        number, due_s = 0, time.monotonic()
        while not self._stop.wait(due_s - time.monotonic()):
            due_s = max(due_s + CREATE_EVERY_S, time.monotonic())
            number += 1
            self._create(client, f"topic-{number}")
        client.close()

    def _create(self, client: ActiveController, name: str) -> None:
        self._asked_s = began_s = time.monotonic()
        try:
            error = create(client, name, PATIENCE_S)
        except NoController as failure:
            self.ledger.unknown(name, ONE_PARTITION)
            self._figures.failures.append(f"{name}: {failure}")
            return
        finally:
            self._asked_s = None
        if error in CREATED:
            self.ledger.acknowledged(name, ONE_PARTITION)
            self._figures.creations_ms.append((time.monotonic() - began_s) * 1000)
            return
        if error is ErrorCode.INVALID_REPLICATION_FACTOR:
            self.ledger.refused(name)  # no broker is there
        else:
            self.ledger.unknown(name, ONE_PARTITION)
        self._figures.failures.append(f"{name}: {error.name}")

    def _be_broker(self, id: int) -> None:
        client = ActiveController(self._ports, f"broker-{id}")
        try:
            epoch = self._register(client, id)
            request = heartbeat(id, epoch)
            while not self._stop.wait(HEARTBEAT_INTERVAL_S):
                began_s = time.monotonic()
                answer = client.call(
                    request, 1, BrokerHeartbeatResponse, lambda answer: answer.error_code, PATIENCE_S
                )
                self._figures.heartbeats_ms.append((time.monotonic() - began_s) * 1000)
                self._figures.fenced += answer.is_fenced
                if answer.error_code:
                    raise ProcessFailed(f"heartbeat: {ErrorCode(answer.error_code).name}")
        except (NoController, ProcessFailed, OSError) as failure:
            self._figures.failures.append(f"broker {id}: {failure}")
        finally:
            client.close()

    def _register(self, client: ActiveController, id: int) -> int:
        with WireClient(self._ports[0]) as any_node:
            features = supported_features(any_node)
        request = registration(id, self._cluster_id, random_uuid(), features)
        answer = client.call(
            request,
            REGISTRATION_VERSION,
            BrokerRegistrationResponse,
            lambda answer: answer.error_code,
            PATIENCE_S,
        )
        if answer.error_code:
            raise ProcessFailed(f"registration: {ErrorCode(answer.error_code).name}")
        return answer.broker_epoch


def create(client: ActiveController, name: str, patience_s: float) -> ErrorCode:
    """Create a topic, and return the error. Raises NoController."""
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])
    answer = client.call(
        request, CREATE_VERSION, CreateTopicsResponse, lambda answer: answer.topics[0].error_code, patience_s
    )
    return ErrorCode.of(answer.topics[0].error_code)
