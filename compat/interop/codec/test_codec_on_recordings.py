"""``kraft-wire codec decode --frames`` decodes recorded connections of clients, a broker and our
controller."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer

from compat.conftest import make_workspace
from compat.harness import clients, kcat
from compat.harness.kafka.broker_metadata import wait_for_topic
from compat.harness.kafka.cluster import CONTROLLER_ID, NEWEST_KAFKA, random_cluster_id
from compat.harness.kafka.jars import find_jars
from compat.harness.kafka.nodes import JvmBroker, OurController, run_command
from compat.harness.kafka.tool_server import ToolServer
from compat.harness.ports import free_port
from compat.harness.recording_proxy import Recording, RecordingProxy, whole_frames
from compat.harness.waiting import wait_until

TOPIC = "recorded"
CLIENTS = "clients and broker"
BROKER = "broker and controller"
VALUES = [f"value {number}".encode() for number in range(200)]


class Connection(NamedTuple):
    """A recorded connection: its files and the decoded lines."""

    client_file: Path
    server_file: Path
    requests: list[dict[str, Any]]
    responses: list[dict[str, Any]]


@pytest.fixture(scope="module")
def connections(
    tool_server: ToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, list[Connection]]]:
    """Record clients, a broker and our controller, and decode every connection without an error."""
    for workspace in make_workspace(tmp_path_factory.mktemp("recordings")):
        controller_port = free_port()
        with RecordingProxy(controller_port) as before_controller:
            advertised = {"advertised.listeners": f"CONTROLLER://{before_controller.address}"}
            controller = OurController(workspace, CONTROLLER_ID, advertised, controller_port)
            cluster_id = random_cluster_id()
            controller.format(cluster_id, "--standalone")
            broker = JvmBroker(workspace, 1, find_jars(NEWEST_KAFKA), tool_server, before_controller.address)
            with RecordingProxy(broker.port) as before_broker:
                with broker.properties_file.open("a") as properties:
                    properties.write(f"advertised.listeners=PLAINTEXT://{before_broker.address}\n")
                broker.format(cluster_id)
                controller.start()
                broker.start()
                broker.wait_until_ready()
                use(before_broker.address, broker)
                broker.stop()
            controller.stop()
        yield {
            CLIENTS: decoded(before_broker.recordings, tmp_path_factory.mktemp("clients")),
            BROKER: decoded(before_controller.recordings, tmp_path_factory.mktemp("broker")),
        }


def use(address: str, broker: JvmBroker) -> None:
    """Use a cluster with two clients, with and without acknowledgements, with and without a consumer
    group."""
    admin = clients.admin(address)
    clients.create_topic(admin, TOPIC, 1, 1)
    wait_for_topic([broker], TOPIC, 1)
    clients.produce(address, TOPIC, VALUES, idempotent=True)
    assert clients.consume(address, TOPIC, 1) == VALUES
    consume_as_group(address)
    kcat.produce(address, TOPIC, ["more", "and more"], "-X", "compression.codec=gzip")
    kcat.produce(address, TOPIC, ["nobody answers"], "-X", "acks=0")
    assert len(kcat.consume(address, TOPIC)) >= len(VALUES) + 2
    assert kcat.metadata(address)["brokers"]
    clients.delete_topic(admin, TOPIC)


def consume_as_group(address: str) -> None:
    """Join a group, read all messages, commit the offsets, and leave."""
    settings = {"bootstrap.servers": address, "group.id": "readers", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "log_level": 3})
    try:
        consumer.subscribe([TOPIC])
        values: list[bytes | None] = []

        def all_read() -> bool:
            values.extend(message.value() for message in consumer.consume(1000, timeout=0.5))
            return len(values) >= len(VALUES)

        wait_until(all_read, "a group to read the topic", 60)
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def decoded(recordings: list[Recording], folder: Path) -> list[Connection]:
    """Decode every connection that has at least one request."""
    connections = []
    for number, recording in enumerate(recordings):
        client_file, server_file = folder / f"{number}.client", folder / f"{number}.server"
        client_file.write_bytes(recording.client)
        server_file.write_bytes(whole_frames(recording.server))
        requests = lines_of("--client", client_file)
        responses = lines_of("--server", "--requests", client_file, server_file)
        if requests:
            connections.append(Connection(client_file, server_file, requests, responses))
    return connections


def lines_of(*arguments: str | Path) -> list[dict[str, Any]]:
    done = run_command("codec", "decode", "--frames", *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def messages_of(lines: list[dict[str, Any]]) -> list[str]:
    return [line["message"] for line in lines]


@pytest.mark.parametrize(
    ("between", "some"),
    [
        (
            CLIENTS,
            {
                "ApiVersions",
                "Metadata",
                "Produce",
                "Fetch",
                "InitProducerId",
                "CreateTopics",
                "DeleteTopics",
                "JoinGroup",
                "OffsetCommit",
                "ListOffsets",
            },
        ),
        (
            BROKER,
            {
                "ApiVersions",
                "BrokerRegistration",
                "BrokerHeartbeat",
                "Fetch",
                "Envelope",
                "AllocateProducerIds",
            },
        ),
    ],
)
def test_both_directions_are_decoded(
    between: str, some: set[str], connections: dict[str, list[Connection]]
) -> None:
    requests = [line for connection in connections[between] for line in connection.requests]
    responses = [line for connection in connections[between] for line in connection.responses]
    assert {f"{name}Request" for name in some} <= set(messages_of(requests))
    assert {f"{name}Response" for name in some} <= set(messages_of(responses))
    for line in (*requests, *responses):
        assert line.keys() <= {"offset", "header", "message", "version", "data"}


def test_responses_are_those_of_their_requests(connections: dict[str, list[Connection]]) -> None:
    for connection in connections[CLIENTS]:
        asked = {line["header"]["correlationId"]: line["message"] for line in connection.requests}
        for line in connection.responses:
            wanted = asked[line["header"]["correlationId"]]
            assert line["message"] == wanted.replace("Request", "Response")


def test_only_produce_requests_without_acknowledgement_have_none(
    connections: dict[str, list[Connection]],
) -> None:
    silent = 0
    for connection in connections[CLIENTS]:
        answered = {line["header"]["correlationId"] for line in connection.responses}
        for line in connection.requests:
            if line["message"] == "ProduceRequest":
                silent += line["data"]["acks"] == 0
                assert (line["header"]["correlationId"] in answered) == (line["data"]["acks"] != 0)
    assert silent


def test_what_was_produced_is_in_what_was_fetched(
    connections: dict[str, list[Connection]],
) -> None:
    fetched = [
        b64decode(partition["records"] or "")
        for connection in connections[CLIENTS]
        for line in connection.responses
        if line["message"] == "FetchResponse"
        for topic in line["data"]["responses"]
        for partition in topic["partitions"]
    ]
    assert all(any(value in records for records in fetched) for value in VALUES)


def test_the_lines_encode_to_the_bytes_that_were_sent(
    connections: dict[str, list[Connection]], tmp_path: Path
) -> None:
    sent = []
    for connection in (*connections[CLIENTS], *connections[BROKER]):
        sent += [(line, connection.client_file) for line in connection.requests]
        sent += [(line, connection.server_file) for line in connection.responses]
    messages = tmp_path / "messages"
    messages.write_text(
        "".join(
            json.dumps({key: line[key] for key in ("message", "version", "data")}) + "\n" for line, _ in sent
        )
    )
    done = run_command("codec", "encode", messages)
    assert (done.returncode, done.stderr) == (0, "")
    for (line, file), answer in zip(sent, done.stdout.splitlines(), strict=True):
        stream = file.read_bytes()
        start = line["offset"] + 4
        end = start + int.from_bytes(stream[line["offset"] : start])
        assert stream[start:end].endswith(bytes.fromhex(json.loads(answer)["hex"]))
