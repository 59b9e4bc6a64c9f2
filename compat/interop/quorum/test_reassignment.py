"""A hundred partitions with data move to other brokers, throttled, while the active controller is killed, and
once more, cancelled halfway. Kafka's own tool is in charge. Nothing is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from compat.conftest import make_workspace
from compat.harness import clients
from compat.harness.kafka import broker_metadata
from compat.harness.kafka.quorum import ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import KafkaTools
from compat.harness.waiting import wait_until

TOPIC = "moved"
PARTITIONS = 100
MESSAGES = 10_000
MESSAGE_BYTES = 1_000
SLOW, FAST = 500_000, 50_000_000
"""Bytes a second of each broker: at the slower rate the move takes some 20 s."""
OLD, NEW = (1, 2), (3, 4)
TOOL = "reassign.ReassignPartitionsCommand"


class Moves:
    """The quorum, its tool, and what the topic holds."""

    def __init__(self, quorum: ControllerQuorum, tools: KafkaTools) -> None:
        self.quorum = quorum
        self._tools = tools
        self.values = [number.to_bytes(4) + bytes(MESSAGE_BYTES - 4) for number in range(MESSAGES)]
        clients.create_topic_on(quorum.admin(), TOPIC, [_turned(OLD, n) for n in range(PARTITIONS)])
        clients.produce(quorum.bootstrap, TOPIC, self.values)

    def run(self, *options: str | Path) -> str:
        return self._tools.admin(TOOL, self.quorum.bootstrap, *options)

    def file(self, replicas: Sequence[int]) -> Path:
        """Return a file with the wanted replicas of all partitions."""
        moves = [
            {"topic": TOPIC, "partition": index, "replicas": list(_turned(replicas, index))}
            for index in range(PARTITIONS)
        ]
        path = self.quorum.workspace.folder / f"to-{'-'.join(map(str, replicas))}.json"
        path.write_text(json.dumps({"version": 1, "partitions": moves}))
        return path

    def execute(self, replicas: Sequence[int], bytes_a_second: int, *options: str) -> None:
        throttle = ("--throttle", str(bytes_a_second))
        self.run("--execute", "--reassignment-json-file", self.file(replicas), *throttle, *options)

    def listed(self) -> int:
        """Return how many partitions are on the move."""
        return len(re.findall(rf"{TOPIC}-\d+: replicas: ", self.run("--list")))

    def verify(self, replicas: Sequence[int]) -> str:
        return self.run("--verify", "--reassignment-json-file", self.file(replicas))

    def wait_until_complete(self, replicas: Sequence[int]) -> None:
        wait_until(
            lambda: self.verify(replicas).count("is completed.") == PARTITIONS,
            f"all to be on {replicas}",
            180,
        )

    def configs(self, kind: str, name: str) -> str:
        """Return what ConfigCommand says of an entity."""
        options = ("--describe", "--entity-type", kind, "--entity-name", name)
        return self._tools.configs(self.quorum.bootstrap, *options)

    def kill_the_leader(self) -> None:
        former = self.quorum.leader()
        former.kill()
        wait_until(lambda: self.quorum.leader() is not former, "another leader")
        former.start()

    def replicas(self) -> dict[int, frozenset[int]]:
        """Return the replicas of each partition."""
        views = broker_metadata.partitions(self.quorum.brokers[1], TOPIC)
        return {index: frozenset(view.replicas) for index, view in views.items()}


def _turned(replicas: Sequence[int], index: int) -> tuple[int, ...]:
    """Let each broker be the preferred leader of as many partitions."""
    place = index % len(replicas)
    return (*replicas[place:], *replicas[:place])


@pytest.fixture(scope="module")
def moves(tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moves]:
    for workspace in make_workspace(tmp_path_factory.mktemp("moves")):
        quorum = ControllerQuorum(workspace, tool_server, ["ours"] * 3)
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.start_brokers(4)
        yield Moves(quorum, KafkaTools(tool_server))


def test_a_throttled_reassignment_of_100_partitions_survives_a_failover(moves: Moves) -> None:
    moves.execute(NEW, SLOW)
    assert moves.listed() > 0, "the throttle is too fast for this test"
    moves.kill_the_leader()
    wait_until(lambda: moves.listed() > 0 or moves.replicas()[0] == set(NEW), "the list of the new leader")
    moves.execute(NEW, FAST, "--additional")
    moves.wait_until_complete(NEW)
    assert moves.listed() == 0
    assert set(moves.replicas().values()) == {frozenset(NEW)}
    assert sorted(clients.consume(moves.quorum.bootstrap, TOPIC, PARTITIONS)) == sorted(moves.values)


def test_a_reassignment_is_cancelled_halfway(moves: Moves) -> None:
    """What has arrived stays; the others keep the replicas that they had."""
    moves.execute(OLD, SLOW)
    wait_until(lambda: 0 < moves.listed() < PARTITIONS, "some partitions to have arrived", 120)
    moves.run("--cancel", "--reassignment-json-file", moves.file(OLD))
    wait_until(lambda: moves.listed() == 0, "no partition to be on the move")
    places = moves.replicas()
    assert set(places.values()) == {frozenset(OLD), frozenset(NEW)}
    broker_metadata.wait_for_topic([moves.quorum.brokers[1]], TOPIC, PARTITIONS)
    assert sorted(clients.consume(moves.quorum.bootstrap, TOPIC, PARTITIONS)) == sorted(moves.values)


def test_no_throttle_is_left(moves: Moves) -> None:
    moves.execute(NEW, FAST)
    moves.wait_until_complete(NEW)
    for kind, name in (("topics", TOPIC), ("brokers", "1"), ("brokers", "3")):
        described = moves.configs(kind, name)
        assert "throttled" not in described, described
