"""Administer, produce and consume with confluent-kafka, which uses librdkafka as PyPI ships it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from compat.harness.processes import ProcessFailed
from compat.harness.waiting import PATIENCE_S, wait_until


def admin(addresses: str) -> AdminClient:
    return AdminClient(
        {"bootstrap.servers": addresses, "topic.metadata.refresh.interval.ms": -1, "log_level": 3}
    )


def create_topic(
    client: AdminClient, name: str, partitions: int, replicas: int, config: dict[str, str] | None = None
) -> None:
    """Create a topic and wait for the answer; raises KafkaException on an error."""
    topic = NewTopic(name, num_partitions=partitions, replication_factor=replicas, config=config or {})
    client.create_topics([topic])[name].result(30)


def create_topic_on(client: AdminClient, name: str, assignments: Sequence[Sequence[int]]) -> None:
    """Create a topic with these replicas for partitions 0, 1, ...; the first is the preferred leader."""
    topic = NewTopic(
        name,
        num_partitions=len(assignments),
        replica_assignment=[list(replicas) for replicas in assignments],
    )
    client.create_topics([topic])[name].result(30)


def delete_topic(client: AdminClient, name: str) -> None:
    client.delete_topics([name], operation_timeout=30)[name].result(30)


def produce(addresses: str, topic: str, values: Iterable[bytes], *, idempotent: bool = False) -> None:
    """Produce all values; raises ProcessFailed unless all in-sync replicas acknowledged each of them."""
    failures: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(f"{message.topic()}-{message.partition()}: {error}")

    producer = Producer(
        {
            "bootstrap.servers": addresses,
            "log_level": 3,
            "acks": "all",
            "enable.idempotence": idempotent,
            "linger.ms": 5,
            "message.timeout.ms": 30_000,
            "queue.buffering.max.messages": 200_000,
        }
    )
    for value in values:
        producer.produce(topic, value, on_delivery=delivered)
        producer.poll(0)
    unsent = producer.flush(60)
    if failures or unsent:
        raise ProcessFailed(f"{len(failures)} messages failed, {unsent} unsent; first: {failures[:1]}")


def consume(addresses: str, topic: str, partition_count: int, timeout_s: float = PATIENCE_S) -> list[bytes]:
    """Return the values of all messages that are now in partitions 0 to ``partition_count`` - 1."""
    consumer = Consumer(
        {
            "bootstrap.servers": addresses,
            "group.id": "unused: partitions are assigned by hand and nothing is committed",
            "enable.auto.commit": False,
            "log_level": 3,
        }
    )
    try:
        places = [TopicPartition(topic, index, 0) for index in range(partition_count)]
        total = sum(consumer.get_watermark_offsets(place, timeout=10)[1] for place in places)
        consumer.assign(places)
        values: list[bytes] = []

        def all_read() -> bool:
            for message in consumer.consume(max(total - len(values), 1), timeout=0.5):
                error = message.error()
                if error is not None:
                    raise ProcessFailed(f"{topic}: {error}")
                values.append(message.value() or b"")
            return len(values) >= total

        wait_until(all_read, f"{total} messages of {topic}", timeout_s)
        return values
    finally:
        consumer.close()
