"""Simulate administrators: they send random requests to controllers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

from kraft_wire.metadata.configs import ResourceType
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.protocol.messages.elect_leaders_request import ElectLeadersRequest
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from kraft_wire.sim.population.brokers import BrokerWorld
from kraft_wire.sim.population.clients import error_of

TOPICS: Final = tuple(f"topic-{number}" for number in range(10))
SECOND_US: Final = 1_000_000
TIMEOUT_MS: Final = 60_000
ADMINISTRATOR: Final = 200
SET: Final = 0
DELETE: Final = 1

Act = tuple[Message, int]
"""A request and its version."""


class Administrator:
    """A client that sends one request after the other."""

    def __init__(
        self, world: BrokerWorld, chance: random.Random, asks_per_second: int, most_partitions: int
    ) -> None:
        self._world = world
        self._chance = chance
        self._interval_us = 2 * SECOND_US // asks_per_second
        self._most_partitions = most_partitions
        self._controllers: Sequence[int] = sorted(world.nodes)
        self._guess = 0
        self._count = 0
        self._is_over = False

    def start(self) -> None:
        self._world.scheduler.after(self._interval_us, self._act)

    def stop(self) -> None:
        self._is_over = True

    def _act(self) -> None:
        if self._is_over:
            return
        chance = self._chance
        self._world.scheduler.after(1 + chance.randrange(self._interval_us), self._act)
        acts: Sequence[Callable[[], Act]] = (
            self._create_topic,
            self._create_topic,
            self._create_topic,
            self._delete_topic,
            self._create_partitions,
            self._set_topic,
            self._set_topic,
            self._set_broker,
            self._set_broker,
            self._elect,
            self._describe,
            self._unregister,
        )
        request, version = chance.choice(acts)()
        self._count += 1
        controller = self._controllers[self._guess % len(self._controllers)]
        self._world.clients.ask(ADMINISTRATOR, controller, request, version, self._take)

    def _take(self, response: Message | None) -> None:
        if response is None or error_of(response) == ErrorCode.NOT_CONTROLLER:
            self._guess += 1

    def _create_topic(self) -> Act:
        topic = CreatableTopic(
            name=self._chance.choice(TOPICS),
            num_partitions=self._chance.randint(1, self._most_partitions),
            replication_factor=self._chance.randint(1, 3),
        )
        return CreateTopicsRequest(topics=[topic], validate_only=self._chance.random() < 0.1), 7

    def _delete_topic(self) -> Act:
        topic = DeleteTopicState(name=self._chance.choice(TOPICS))
        return DeleteTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), 6

    def _create_partitions(self) -> Act:
        topic = CreatePartitionsTopic(
            self._chance.choice(TOPICS), self._chance.randint(2, 2 + self._most_partitions), None
        )
        return CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), 3

    def _set_topic(self) -> Act:
        key, value = self._chance.choice(
            (
                ("min.insync.replicas", str(self._chance.randint(1, 3))),
                ("unclean.leader.election.enable", self._chance.choice(("true", "false"))),
                ("retention.ms", str(1_000_000 + self._count)),
                ("retention.ms", str(1_000_000 + self._count)),
                ("retention.ms", str(1_000_000 + self._count)),
            )
        )
        return self._set(ResourceType.TOPIC, self._chance.choice(TOPICS), key, value)

    def _set_broker(self) -> Act:
        if self._chance.random() < 0.1:
            return self._set(ResourceType.BROKER, "", "min.insync.replicas", str(self._chance.randint(1, 3)))
        broker = str(self._chance.choice([*self._world.nodes, *self._world.brokers]))
        return self._set(ResourceType.BROKER, broker, "num.io.threads", str(1 + self._count))

    def _set(self, kind: ResourceType, name: str, key: str, value: str) -> Act:
        operation = DELETE if self._chance.random() < 0.2 and name else SET
        configs = [AlterableConfig(key, operation, None if operation == DELETE else value)]
        return IncrementalAlterConfigsRequest(resources=[AlterConfigsResource(kind, name, configs)]), 1

    def _elect(self) -> Act:
        return ElectLeadersRequest(election_type=self._chance.choice((0, 0, 0, 1)), topic_partitions=None), 2

    def _describe(self) -> Act:
        kind = self._chance.choice((ResourceType.TOPIC, ResourceType.BROKER))
        name = self._chance.choice(TOPICS) if kind is ResourceType.TOPIC else ""
        resource = DescribeConfigsResource(kind, name, None)
        return DescribeConfigsRequest(resources=[resource]), 4

    def _unregister(self) -> Act:
        """Unregister a broker that is down, now and then."""
        down = [broker.id for broker in self._world.brokers.values() if not broker.is_up]
        if not down or self._world.is_calm or self._chance.random() < 0.7:
            return self._describe()
        return UnregisterBrokerRequest(broker_id=self._chance.choice(down)), 0
