"""A real Kafka broker runs on our controller, from start to end: ``python -m compat.demo``.

Starts both, makes a topic, sends messages through the broker and back, reads the metadata log from the
controller with kcat, stops both, removes everything.
"""

from __future__ import annotations

import sys
import time
from datetime import datetime
from pathlib import Path

import msgspec

from compat.harness import clients, kcat
from compat.harness.cluster import CONTROLLER_ID, NEWEST_KAFKA, random_cluster_id
from compat.harness.jars import find_jars
from compat.harness.metadata_values import describe_record, split_values
from compat.harness.nodes import JvmBroker, OurController
from compat.harness.processes import ProcessFailed, Workspace
from compat.harness.story import Story, ms_since, tell_it
from compat.harness.tool_server import ToolServer

MESSAGES = 10_000
PARTITIONS = 3
SHOWN_RECORDS = 8
LOG_TIME = r"^(\S+) INFO .*"  # how a line of a Kafka log begins


def run(folder: Path, story: Story) -> None:
    with ToolServer(folder / "tools.log") as tools, Workspace(folder) as workspace:
        cluster_id = random_cluster_id()
        controller = start_controller(workspace, cluster_id, story)
        broker = start_broker(workspace, tools, controller, cluster_id, story)
        send_and_receive(broker, story)
        read_metadata_log(controller, story)
        broker.stop()
        story.tell("broker stopped: controlled shutdown")
        controller.stop()
        story.tell("controller stopped")
    story.tell("nothing is left running; the folder is removed")


def start_controller(workspace: Workspace, cluster_id: str, story: Story) -> OurController:
    controller = OurController(workspace, CONTROLLER_ID)
    controller.format(cluster_id, "--standalone")
    story.tell(f"kraft-wire storage format: cluster {cluster_id}, controller {CONTROLLER_ID}")
    started = time.monotonic()
    controller.start()
    controller.wait_until_ready()
    story.tell(f"controller leads on {controller.address}, {ms_since(started)} after its process started")
    return controller


def start_broker(
    workspace: Workspace, tools: ToolServer, controller: OurController, cluster_id: str, story: Story
) -> JvmBroker:
    broker = JvmBroker(workspace, 1, find_jars(NEWEST_KAFKA), tools, controller.address)
    broker.format(cluster_id)
    started = time.monotonic()
    broker.start()
    story.tell(f"Apache Kafka {NEWEST_KAFKA} broker 1 starting")
    log = broker.running_process
    registered = log.wait_for_log(LOG_TIME + r"Successfully registered broker 1 with broker epoch (\d+)")
    unfenced = log.wait_for_log(LOG_TIME + r"The broker has been unfenced")
    after = datetime.fromisoformat(unfenced[1]) - datetime.fromisoformat(registered[1])
    story.tell(
        f"broker registered with epoch {registered[2]}, unfenced {after.total_seconds() * 1000:.0f} ms later"
    )
    broker.wait_until_ready()
    story.tell(f"broker serves on {broker.address}, {ms_since(started)} after its process started")
    return broker


def send_and_receive(broker: JvmBroker, story: Story) -> None:
    began = time.monotonic()
    clients.create_topic(clients.admin(broker.address), "demo", PARTITIONS, 1)
    story.tell(f"topic `demo` made, {PARTITIONS} partitions, in {ms_since(began)}")
    sent = [f"message {number}" for number in range(MESSAGES)]
    began = time.monotonic()
    kcat.produce(broker.address, "demo", sent)
    story.tell(f"{len(sent):,} messages produced with kcat in {ms_since(began)}")
    began = time.monotonic()
    received = kcat.consume(broker.address, "demo")
    if sorted(received) != sorted(sent):
        raise ProcessFailed(f"sent {len(sent)} messages, and {len(received)} came back, not the same")
    story.tell(f"{len(received):,} messages consumed with kcat in {ms_since(began)}, each of them once")


def read_metadata_log(controller: OurController, story: Story) -> None:
    consumed = kcat.consume_bytes(controller.address, "__cluster_metadata", *kcat.LENGTH_PREFIXED)
    values = split_values(consumed)
    story.tell(
        f"kcat -b {controller.address} -C -t __cluster_metadata: {len(values)} records; the first of them:"
    )
    for value in values[:SHOWN_RECORDS]:
        record = describe_record(value)
        print(f"{'':13}{record.type} v{record.version} {msgspec.json.encode(record.data).decode()}")


if __name__ == "__main__":
    sys.exit(tell_it(run))
