"""Produce and consume all the time, and count what arrives."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from compat.harness.waiting import wait_until

EVERY_S = 0.005
PATIENCE_MS = 120_000


class Traffic:
    """A producer and a consumer of one topic, each in a thread of its own."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.acknowledged: set[bytes] = set()
        self.failures: list[str] = []
        self.consumed: set[bytes] = set()
        self.longest_gap_s = 0.0
        """The longest time between two acknowledgements."""
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._last_s = 0.0
        self._over = threading.Event()
        self._all_consumed = threading.Event()
        self._threads = [threading.Thread(target=self._produce), threading.Thread(target=self._consume)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        wait_until(lambda: self.consumed, "the first message")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._threads[0].join()
        try:
            if error is None:
                wait_until(lambda: self.consumed >= self.acknowledged, "all messages to be consumed")
        finally:
            self._all_consumed.set()
            self._threads[1].join()

    def _produce(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": PATIENCE_MS,
                "log_level": 3,
            }
        )
        number = 0
        while not self._over.wait(EVERY_S):
            producer.produce(self._topic, b"%d" % number, on_delivery=self._delivered)
            producer.poll(0)
            number += 1
        producer.flush(PATIENCE_MS / 1000)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        now_s = time.monotonic()
        self.longest_gap_s = max(self.longest_gap_s, now_s - (self._last_s or now_s))
        self._last_s = now_s
        self.acknowledged.add(message.value() or b"")

    def _consume(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "unused: partitions are assigned by hand and nothing is committed",
                "enable.auto.commit": False,
                "log_level": 3,
            }
        )
        try:
            consumer.assign([TopicPartition(self._topic, index, 0) for index in range(self._partitions)])
            while not self._all_consumed.is_set():
                for message in consumer.consume(1_000, timeout=0.2):
                    if message.error() is None:
                        self.consumed.add(message.value() or b"")
        finally:
            consumer.close()
