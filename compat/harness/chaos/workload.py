"""Run clients that create, configure and delete topics through brokers, and record the answers in a
ledger."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic

from compat.harness import clients
from compat.harness.chaos.ledger import Ledger, TopicContent

CONFIG_KEYS: Final = ("retention.ms", "retention.bytes", "delete.retention.ms", "max.message.bytes")
LOWEST_VALUE: Final = 1_000_000
INVALID_CONFIG: Final = {"retention.ms": "-7"}
PATIENCE_S: Final = 4.0
"""The time after which a client regards the result of its request as unknown."""
BROKERS_PATIENCE_S: Final = 3.0
"""The time after which a broker forwards a request to another controller. The first one may still receive it:
TCP retransmits when the network is healed, and then a deleted topic is created again."""
PACE_S: Final = 0.03
MAX_LIVE_TOPICS: Final = 10
WORKERS: Final = 2


class Workload:
    """Clients that run from ``__enter__`` to ``__exit__``, which raises the first error of a client.

    ``number`` is part of the topics' names, so that two workloads never share one.
    """

    def __init__(self, bootstrap: str, ledger: Ledger, number: int) -> None:
        self._stop = threading.Event()
        self._failures: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(_Client(bootstrap, ledger, f"topic-{number}-{worker}"),))
            for worker in range(WORKERS)
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
        if self._failures and error is None:
            raise self._failures[0]

    def _run(self, client: _Client) -> None:
        try:
            while not self._stop.wait(PACE_S):
                client.step()
        except BaseException as failure:  # noqa: BLE001 - raised by __exit__
            self._failures.append(failure)


class _Client:
    """A client that makes one change at a time. It never touches a topic again whose state is unknown, nor
    one whose change a broker may have forwarded twice: the second request, whenever it comes, must change
    nothing."""

    def __init__(self, bootstrap: str, ledger: Ledger, prefix: str) -> None:
        self._admin: AdminClient = clients.admin(bootstrap)
        self._ledger = ledger
        self._prefix = prefix
        self._chance = random.Random(prefix)
        self._count = 0
        self._live: dict[str, TopicContent] = {}
        self._asked_at_s = 0.0

    def step(self) -> None:
        self._count += 1
        self._asked_at_s = time.monotonic()
        acts: list[tuple[Callable[[], None], int]] = [
            (self._create, 5 if len(self._live) < MAX_LIVE_TOPICS else 0),
            (self._configure, 5 if self._live else 0),
            (self._delete, len(self._live) // 2),
            (self._create_invalid, 1),
            (self._configure_invalid, 1 if self._live else 0),
        ]
        [act] = self._chance.choices([act for act, _ in acts], [weight for _, weight in acts])
        act()

    def _create(self) -> None:
        name = f"{self._prefix}-{self._count}"
        partitions = self._chance.randrange(1, 5)
        replicas = 2 if self._chance.random() < 0.2 else 1
        content = TopicContent(tuple(range(partitions)), self._some_values())
        topic = NewTopic(name, num_partitions=partitions, replication_factor=replicas, config=content.configs)
        futures = self._admin.create_topics([topic], request_timeout=PATIENCE_S)
        # Brokers retry forwarded requests: the first try may have created it. Its existence is committed.
        self._note(name, content, _error(futures[name]), KafkaError.TOPIC_ALREADY_EXISTS)

    def _configure(self) -> None:
        name = self._any_topic()
        before = self._live[name]
        changes: dict[str, str | None] = {**self._some_values()}
        for key in self._chance.sample(CONFIG_KEYS, 1):
            changes.setdefault(key, None)
        after = {key: value for key, value in {**before.configs, **changes}.items() if value is not None}
        error = self._alter(name, changes)
        self._note(name, TopicContent(before.partitions, after), error)

    def _delete(self) -> None:
        name = self._any_topic()
        self._note(name, None, _error(self._admin.delete_topics([name], request_timeout=PATIENCE_S)[name]))

    def _create_invalid(self) -> None:
        name = f"{self._prefix}-{self._count}-refused"
        topic = NewTopic(name, num_partitions=3, replication_factor=1, config=INVALID_CONFIG)
        self._note_refusal(name, _error(self._admin.create_topics([topic], request_timeout=PATIENCE_S)[name]))

    def _configure_invalid(self) -> None:
        name = self._any_topic()
        self._note_refusal(name, self._alter(name, {**self._some_values(), **INVALID_CONFIG}))

    def _alter(self, name: str, changes: dict[str, str | None]) -> KafkaError | None:
        entries = [
            ConfigEntry(
                key,
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for key, value in changes.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=entries)
        [future] = self._admin.incremental_alter_configs([resource], request_timeout=PATIENCE_S).values()
        return _error(future)

    def _some_values(self) -> dict[str, str]:
        """Return configs with values that were never used before."""
        return {key: str(LOWEST_VALUE + self._count) for key in self._chance.sample(CONFIG_KEYS, 2)}

    def _any_topic(self) -> str:
        return self._chance.choice(list(self._live))

    def _note(
        self, name: str, result: TopicContent | None, error: KafkaError | None, done: int | None = None
    ) -> None:
        self._live.pop(name, None)
        if error is not None and error.code() != done:
            self._ledger.unknown(name, result)
            return
        self._ledger.acknowledged(name, result)
        asked_once = time.monotonic() - self._asked_at_s < BROKERS_PATIENCE_S
        if result is not None and asked_once:
            self._live[name] = result

    def _note_refusal(self, name: str, error: KafkaError | None) -> None:
        assert error is not None, f"{name}: {INVALID_CONFIG} was accepted"
        self._ledger.refused(name)


def _error(future: Future[Any]) -> KafkaError | None:
    try:
        future.result()
    except KafkaException as failure:
        error = failure.args[0]
        assert isinstance(error, KafkaError)
        return error
    return None
