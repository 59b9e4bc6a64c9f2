"""What aiokafka's AIOKafkaAdminClient can do."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from compat.harness.waiting import PATIENCE_S

NAME = "by-aiokafka"


def administer(addresses: str) -> list[str]:
    return asyncio.run(_administer(addresses))


async def _administer(addresses: str) -> list[str]:
    admin = AIOKafkaAdminClient(bootstrap_servers=addresses)
    await admin.start()
    try:
        return [*await _topics(admin), *await _configs(admin), *await _ends(admin)]
    finally:
        await admin.close()


async def _topics(admin: AIOKafkaAdminClient) -> list[str]:
    topic = NewTopic(NAME, -1, -1, replica_assignments={0: [1, 2], 1: [2, 1]})
    lines = []
    for step, new, options in (
        ("validate", topic, {"validate_only": True}),
        ("create", topic, {}),
        ("create again", topic, {}),
        ("no brokers for it", NewTopic("wide", 1, 3), {}),
        ("no name", NewTopic("not a name", 1, 1), {}),
    ):
        created = await admin.create_topics([new], **options)
        lines.append(f"{step}: {[error for _, error, *_ in created.topic_errors]}")
    grown = await admin.create_partitions({NAME: NewPartitions(3)})
    lines.append(f"grow: {[error for _, error, *_ in grown.topic_errors]}")
    try:
        await admin.create_partitions({NAME: NewPartitions(1)})
    except KafkaError as error:
        lines.append(f"shrink: {type(error).__name__}")
    partitions = await _partitions(admin, 3)
    lines += [
        f"partition {each['partition']}: leader {each['leader']}, replicas {each['replicas']}"
        for each in sorted(partitions, key=lambda each: int(each["partition"]))[:2]
    ]
    cluster = await admin.describe_cluster()
    return [*lines, f"nodes: {sorted(each['node_id'] for each in cluster['brokers'])}"]


async def _partitions(admin: AIOKafkaAdminClient, count: int) -> list[Any]:
    """Return the partitions when the brokers know so many."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            (topic,) = await admin.describe_topics([NAME])
            if len(topic["partitions"]) == count:
                return list(topic["partitions"])
            await asyncio.sleep(0.05)


async def _configs(admin: AIOKafkaAdminClient) -> list[str]:
    lines = []
    for configs in ({"retention.ms": "5000"}, {"retention.ms": "soon"}, {"no.such.key": "1"}):
        resource = ConfigResource(ConfigResourceType.TOPIC, NAME, configs)
        for response in await admin.alter_configs([resource]):
            lines += [f"{configs}: {error}" for error, *_ in response.resources]
    resource = ConfigResource(ConfigResourceType.TOPIC, NAME, {"retention.ms": None})
    async with asyncio.timeout(PATIENCE_S):
        while (value := await _value(admin, resource)) != "5000":
            await asyncio.sleep(0.05)
    return [*lines, f"retention.ms={value}"]


async def _value(admin: AIOKafkaAdminClient, resource: ConfigResource) -> str:
    (described,) = await admin.describe_configs([resource])
    ((*_, entries),) = described.resources
    ((_, value, *_),) = entries
    return str(value)


async def _ends(admin: AIOKafkaAdminClient) -> list[str]:
    deleted = await admin.delete_topics([NAME])
    lines = [f"delete: {[error for _, error in deleted.topic_error_codes]}"]
    async with asyncio.timeout(PATIENCE_S):
        while NAME in await admin.list_topics():
            await asyncio.sleep(0.05)
    try:
        again = await admin.delete_topics([NAME])
    except KafkaError as error:
        return [*lines, f"delete again: {type(error).__name__}"]
    return [*lines, f"delete again: {[error for _, error in again.topic_error_codes]}"]
