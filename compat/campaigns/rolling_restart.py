"""Restart the real brokers of a large cluster one after the other, while clients produce and consume:
``make campaign-brokers``. No partition may be without a leader at any time.

The result of the last run is in rolling_restart.txt, in this folder.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from confluent_kafka.cimpl import NewTopic

from compat.harness import clients
from compat.harness.kafka.nodes import JvmBroker
from compat.harness.kafka.offline import offline_partitions
from compat.harness.kafka.quorum import Controller, ControllerQuorum
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.kafka.tools import segments
from compat.harness.processes import ProcessFailed, Workspace
from compat.harness.traffic import Traffic
from compat.harness.waiting import WaitTimeout, wait_until
from kraft_wire.log.batch import split_batches
from kraft_wire.metadata.state import MetadataState

BROKERS = 4
REPLICAS = 2
PARTITIONS_A_TOPIC = 100
TOPICS_A_REQUEST = 5
ORDERS = "orders"
ORDERS_PARTITIONS = 8
BROKER_HEAP = "-Xmx1200m"
PATIENCE_S = 900.0
RESULT = Path(__file__).parent / "rolling_restart.txt"


class Outcome(msgspec.Struct, frozen=True):
    """What happened while the brokers were restarted."""

    partitions: int
    created_s: float
    restarts_s: tuple[float, ...]
    acknowledged: int
    failed: int
    longest_gap_s: float
    offline: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign and return the exit code: 1 if a partition was offline or a message was lost."""
    parser = argparse.ArgumentParser(prog="compat.campaigns.rolling_restart", description=__doc__)
    parser.add_argument("--partitions", type=int, default=20_000)
    options = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="kraft-wire-restarts-") as folder,
        ToolServer(Path(folder) / "tools.log") as tools,
        Workspace(Path(folder) / "cluster") as workspace,
    ):
        try:
            outcome = restart_all(workspace, tools, options.partitions)
        except (ProcessFailed, WaitTimeout) as failure:
            print(f"failed: {failure}", file=sys.stderr)
            return 1
    text = describe(outcome)
    print(text, end="")
    RESULT.write_text(text)
    return 1 if outcome.offline or outcome.failed else 0


def restart_all(workspace: Workspace, tools: ToolServer, partitions: int) -> Outcome:
    """Create the partitions, then stop and start each broker."""
    quorum = ControllerQuorum(workspace, tools, ["ours"], "dynamic", {})
    quorum.format()
    quorum.start()
    for node_id in range(1, BROKERS + 1):
        _start(quorum.add_broker(node_id, {"offsets.topic.replication.factor": str(REPLICAS)}))
    quorum.wait_until_brokers_are_ready()
    began = time.monotonic()
    clients.create_topic(quorum.admin(), ORDERS, ORDERS_PARTITIONS, REPLICAS)
    _create(quorum, partitions)
    created_s = time.monotonic() - began
    with Traffic(quorum.bootstrap, ORDERS, ORDERS_PARTITIONS) as traffic:
        restarts_s = tuple(_restart(quorum, broker) for broker in quorum.brokers.values())
    for broker in quorum.brokers.values():
        broker.kill()
    offline = tuple(offline_partitions(quorum.leader()))
    return Outcome(
        partitions,
        created_s,
        restarts_s,
        len(traffic.acknowledged),
        len(traffic.failures),
        traffic.longest_gap_s,
        offline,
    )


def _start(broker: JvmBroker) -> None:
    broker.jvm_options = (BROKER_HEAP, *broker.jvm_options[1:])
    broker.start()


def _create(quorum: ControllerQuorum, partitions: int) -> None:
    names = [f"topic-{number}" for number in range(partitions // PARTITIONS_A_TOPIC)]
    for first in range(0, len(names), TOPICS_A_REQUEST):
        topics = [
            NewTopic(name, num_partitions=PARTITIONS_A_TOPIC, replication_factor=REPLICAS)
            for name in names[first : first + TOPICS_A_REQUEST]
        ]
        for created in quorum.admin().create_topics(topics, request_timeout=60).values():
            created.result(60)
    _wait_until_in_sync(quorum)


def _restart(quorum: ControllerQuorum, broker: JvmBroker) -> float:
    began = time.monotonic()
    broker.stop(PATIENCE_S)
    _start(broker)
    broker.wait_until_ready(PATIENCE_S)
    _wait_until_in_sync(quorum)
    took_s = time.monotonic() - began
    print(f"broker {broker.node_id} was restarted and is in sync after {took_s:.0f} s", flush=True)
    return took_s


def _wait_until_in_sync(quorum: ControllerQuorum) -> None:
    """Wait until every partition has all its replicas in sync."""
    leader = quorum.leader()
    seen = _Seen(leader)
    wait_until(seen.all_in_sync, "all replicas to be in sync", PATIENCE_S)


class _Seen:
    """The state that a controller's log builds, read again and again."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def all_in_sync(self) -> bool:
        time.sleep(1)
        state = MetadataState()
        for data in _log(self._controller):
            for batch in split_batches(data)[0]:
                if not batch.header.is_control:
                    state.replay_batch(batch)
        return all(
            len(partition.isr) == len(partition.replicas)
            for topic in state.topics
            for partition in state.partitions.of_topic(topic.id)
        )


def _log(controller: Controller) -> list[bytes]:
    return [segment.read_bytes() for segment in segments(controller.data_folder)]


def describe(outcome: Outcome) -> str:
    """Return the outcome as text."""
    restarts = ", ".join(f"{took_s:.0f}" for took_s in outcome.restarts_s)
    lines = (
        ("partitions", f"{outcome.partitions:,} x {REPLICAS} replicas on {BROKERS} brokers of Kafka 4.4.0"),
        ("created", f"{outcome.created_s:.0f} s, until all replicas were in sync"),
        ("restarts", f"{restarts} s, each until all replicas were in sync again"),
        ("messages", f"{outcome.acknowledged:,} acknowledged and consumed, {outcome.failed} failed"),
        ("longest gap", f"{outcome.longest_gap_s:.1f} s between two acknowledgements"),
        ("offline", f"{len(outcome.offline)} partitions, at any record of the log"),
    )
    return "".join(f"{name:<16} {text}\n" for name, text in lines)


if __name__ == "__main__":
    sys.exit(main())
