"""Run a real Kafka broker on our controller: ``python -m compat.demos.broker``.

Start both, create a topic, send messages through the broker and read them back, read the metadata log from
the controller with kcat, stop both and remove everything.
"""

from __future__ import annotations

import sys
import time
from datetime import datetime
from pathlib import Path

import msgspec

from compat.demos.progress import Progress, ms_since, run_demo
from compat.harness import clients, kcat
from compat.harness.kafka.cluster import CONTROLLER_ID, NEWEST_KAFKA, random_cluster_id
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.metadata_values import describe_record, split_values
from compat.harness.kafka.nodes import JvmBroker, OurController
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.processes import ProcessFailed, Workspace

BROKER_ID = 1
MESSAGES = 10_000
PARTITIONS = 3
SHOWN_RECORDS = 8
LOG_TIME = r"^(\S+) INFO .*"
"""The start of a line in Kafka's log."""


def run(folder: Path, progress: Progress) -> None:
    with ToolServer(folder / "tools.log") as tools, Workspace(folder) as workspace:
        cluster_id = random_cluster_id()
        controller = start_controller(workspace, cluster_id, progress)
        broker = start_broker(workspace, tools, controller, cluster_id, progress)
        send_and_receive(broker, progress)
        read_metadata_log(controller, progress)
        progress.begin("stopping the broker (a controlled shutdown)")
        broker.stop()
        progress.begin("stopping the controller")
        controller.stop()


def start_controller(workspace: Workspace, cluster_id: str, progress: Progress) -> OurController:
    controller = OurController(workspace, CONTROLLER_ID)
    progress.begin("formatting a folder for the kraft-wire controller with kraft-wire storage format")
    controller.format(cluster_id, "--standalone")
    progress.result(f"cluster {cluster_id}, controller {CONTROLLER_ID}")
    progress.begin("starting the controller with kraft-wire server")
    started = time.monotonic()
    controller.start()
    controller.wait_until_ready()
    progress.result(
        f"active controller on {controller.address}, {ms_since(started)} after its process started"
    )
    return controller


def start_broker(
    workspace: Workspace, tools: ToolServer, controller: OurController, cluster_id: str, progress: Progress
) -> JvmBroker:
    broker = JvmBroker(workspace, BROKER_ID, find_jars(NEWEST_KAFKA), tools, controller.address)
    progress.begin("formatting a folder for the broker with kafka-storage.sh (2 to 10 s)")
    broker.format(cluster_id)
    progress.begin(f"starting an Apache Kafka {NEWEST_KAFKA} broker on Java (5 to 20 s)")
    started = time.monotonic()
    broker.start()
    log = broker.running_process
    registered = log.wait_for_log(LOG_TIME + r"Successfully registered broker 1 with broker epoch (\d+)")
    unfenced = log.wait_for_log(LOG_TIME + r"The broker has been unfenced")
    after = datetime.fromisoformat(unfenced[1]) - datetime.fromisoformat(registered[1])
    progress.result(
        f"broker {BROKER_ID} registered with broker epoch {registered[2]}, "
        f"unfenced {after.total_seconds() * 1000:.0f} ms later"
    )
    broker.wait_until_ready()
    progress.result(f"broker ready on {broker.address}, {ms_since(started)} after its process started")
    return broker


def send_and_receive(broker: JvmBroker, progress: Progress) -> None:
    progress.begin(f"creating topic `demo` with {PARTITIONS} partitions")
    began = time.monotonic()
    clients.create_topic(clients.admin(broker.address), "demo", PARTITIONS, 1)
    progress.result(f"created in {ms_since(began)}")
    sent = [f"message {number}" for number in range(MESSAGES)]
    progress.begin(f"producing {len(sent):,} messages with kcat")
    began = time.monotonic()
    kcat.produce(broker.address, "demo", sent)
    progress.result(f"produced in {ms_since(began)}")
    progress.begin("consuming them with kcat")
    began = time.monotonic()
    received = kcat.consume(broker.address, "demo")
    if sorted(received) != sorted(sent):
        raise ProcessFailed(
            f"the {len(received):,} messages consumed are not the {len(sent):,} messages produced"
        )
    progress.result(f"consumed {len(received):,} messages, each exactly once, in {ms_since(began)}")


def read_metadata_log(controller: OurController, progress: Progress) -> None:
    progress.begin(f"reading the metadata log with kcat -b {controller.address} -C -t __cluster_metadata")
    consumed = kcat.consume_bytes(controller.address, "__cluster_metadata", *kcat.LENGTH_PREFIXED)
    values = split_values(consumed)
    progress.result(f"{len(values)} records; the first {SHOWN_RECORDS}:")
    for value in values[:SHOWN_RECORDS]:
        record = describe_record(value)
        progress.detail(f"{record.type} v{record.version} {msgspec.json.encode(record.data).decode()}")


if __name__ == "__main__":
    sys.exit(run_demo(run))
