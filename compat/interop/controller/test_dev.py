"""``kraft-wire dev`` works as its help says: a broker starts with the file that the command wrote."""

from __future__ import annotations

from pathlib import Path

from compat.harness import clients, kcat
from compat.harness.kafka.cluster import NEWEST_KAFKA
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.nodes import kafka_command
from compat.harness.paths import COMMAND
from compat.harness.ports import HOST, free_port
from compat.harness.processes import Workspace
from compat.harness.wire import wait_until_active


def test_a_broker_starts_with_the_file_that_dev_wrote(workspace: Workspace, tmp_path: Path) -> None:
    port, broker_port = free_port(), free_port()
    folder = tmp_path / "dev"
    folder.mkdir()
    options = ["--dir", str(folder), "--port", str(port), "--broker-port", str(broker_port)]
    controller = workspace.start("dev", [str(COMMAND), "dev", *options])
    wait_until_active(controller, port, timeout_s=30)
    assert controller.find_in_log(f"^listeners=PLAINTEXT://{HOST}:{broker_port}$")

    command = kafka_command(find_jars(NEWEST_KAFKA), folder / "broker.properties")
    broker = workspace.start("broker", command)
    broker.wait_for_log("Kafka Server started")
    address = f"{HOST}:{broker_port}"
    clients.create_topic(clients.admin(address), "tried", 1, 1)
    kcat.produce(address, "tried", ["works"])
    assert kcat.consume(address, "tried") == ["works"]

    broker.terminate()
    assert controller.terminate() == 0
