"""Clients: they propose at random moments to whoever takes it, and ask nodes for snapshots."""

from __future__ import annotations

from typing import Final

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import (
    IncrementalAlterConfigsResponse,
)
from kraft_wire.sim.cluster import Cluster
from kraft_wire.sim.controller_node import ControllerNode
from kraft_wire.sim.node import SimNode
from kraft_wire.sim.randomness import stream
from kraft_wire.sim.scheduler import MS
from kraft_wire.sim.violations import Violation

SECOND_US = 1_000_000
BROKER: Final = 4
SET: Final = 0
CONFIGS_VERSION: Final = 1
BROKER_KEYS: Final = (
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "background.threads",
)


class Workload:
    """Keeps going until the end of the run."""

    def __init__(self, cluster: Cluster) -> None:
        options = cluster.options
        self.proposed = 0
        self._is_over = False
        self._asked: dict[int, tuple[str, int]] = {}
        self._confirmed: dict[tuple[str, str], int] = {}
        self._cluster = cluster
        self._chance = stream(options.seed, "workload")
        self._interval_us = 2 * SECOND_US // options.proposals_per_second
        self._value_bytes = options.value_bytes
        self._snapshot_interval_us = options.snapshot_interval_ms * MS

    def start(self) -> None:
        self._cluster.scheduler.after(self._interval_us, self._propose)
        for node in self._cluster.nodes.values():
            self._cluster.scheduler.after(self._snapshot_interval_us, self._snapshot, node)

    def stop(self) -> None:
        """No more proposals."""
        self._is_over = True

    def _propose(self) -> None:
        chance = self._chance
        if self._is_over:
            return
        self._cluster.scheduler.after(1 + int(chance.random() * self._interval_us), self._propose)
        records = 1 + int(chance.random() * 4)
        size_bytes = int(chance.random() * self._value_bytes)
        for node in self._cluster.nodes.values():
            if node.is_up and node.leading is not None:
                self.propose_to(node, records, size_bytes)

    def propose_to(self, node: SimNode, records: int, size_bytes: int) -> bool:
        """Records that nobody has proposed before."""
        values = tuple(
            b"%d/%d/%d" % (node.id, self.proposed, number) + bytes(size_bytes) for number in range(records)
        )
        self.proposed += 1
        if isinstance(node, ControllerNode):
            return self._change_config(node, records)
        return node.propose(values)

    def _change_config(self, node: ControllerNode, records: int) -> bool:
        """Settings of some broker, as an administrator changes them."""
        name = str(self._chance.randrange(20))
        values = [
            AlterableConfig(name=key, config_operation=SET, value=str(self.proposed))
            for key in BROKER_KEYS[:records]
        ]
        resource = AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=values)
        request = IncrementalAlterConfigsRequest(resources=[resource])
        self._asked[self.proposed] = name, records
        node.on_answer = self._take_answer
        return node.ask((self.proposed,), request, CONFIGS_VERSION)

    def _take_answer(self, token: tuple[int], response: Message) -> None:
        """A change that was confirmed is there for good; one that was refused need not be, and may."""
        name, records = self._asked.pop(token[0])
        assert isinstance(response, IncrementalAlterConfigsResponse)
        if any(answer.error_code for answer in response.responses):
            return
        self._cluster.checkers.acknowledgements.count += 1
        for key in BROKER_KEYS[:records]:
            self._confirmed[name, key] = max(token[0], self._confirmed.get((name, key), 0))

    def check_confirmed(self) -> None:
        """Every setting that was confirmed, or a later one, is what all nodes have. Proposals count up."""
        for node in self._cluster.nodes.values():
            if not isinstance(node, ControllerNode):
                return
            for (name, key), number in self._confirmed.items():
                value = node.setting(BROKER, name, key)
                if value is None or int(value) < number:
                    seen = f"node {node.id}: {key} of broker {name} is {value}, {number} was confirmed"
                    raise Violation("AcknowledgedStays", seen)

    def _snapshot(self, node: SimNode) -> None:
        delay_us = 1 + int(self._chance.random() * 2 * self._snapshot_interval_us)
        self._cluster.scheduler.after(delay_us, self._snapshot, node)
        node.take_snapshot()
