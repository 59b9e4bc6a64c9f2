"""Invalid input closes only the sender's connection, and is logged with the sender's address."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator

import pytest

from compat.conftest import make_workspace
from compat.harness.kafka.cluster import CONTROLLER_ID, random_cluster_id
from compat.harness.kafka.nodes import OurController
from compat.harness.waiting import wait_until
from compat.harness.wire import ConnectionClosed, WireClient, describe_quorum
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from kraft_wire.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.framing import frame
from kraft_wire.wire.headers import encode_request

CREATE_TOPICS, API_VERSIONS, PRODUCE = 19, 18, 0


def _create_topics(name: str = "t") -> bytes:
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])
    return encode_request(CREATE_TOPICS, 7, 1, "compat", request)


def _header(api_key: int, version: int) -> bytes:
    return struct.pack(">hhih", api_key, version, 1, -1) + b"\0"


# The input, and a word that the log line must contain.
BAD_INPUT: dict[str, tuple[bytes, str]] = {
    "a frame larger than socket.request.max.bytes": (struct.pack(">i", 2**31 - 1) + b"x" * 100, "2147483647"),
    "a frame of negative size": (struct.pack(">i", -5) + b"x" * 100, "-5"),
    "an empty frame": (frame(b""), "request_api_key"),
    "an unknown API": (frame(_header(30_000, 0) + b"x" * 20), "30000"),
    "an API of brokers": (frame(_header(PRODUCE, 9) + b"x" * 20), "Produce"),
    "an unknown version": (frame(_header(CREATE_TOPICS, 99) + b"x" * 20), "99"),
    "a header that ends early": (frame(_header(CREATE_TOPICS, 7)[:7]), "correlation_id"),
    "a body that ends early": (frame(_create_topics()[:-9]), "CreateTopicsRequest"),
    "garbage for a body": (frame(_header(CREATE_TOPICS, 7) + b"\xff" * 64), "CreateTopicsRequest"),
    "an array that claims a million elements": (
        frame(_header(CREATE_TOPICS, 7) + b"\xc1\x84\x3d" + b"\0" * 8),
        "topics",
    ),
    "text where frames belong": (b"GET / HTTP/1.1\r\nHost: controller\r\n\r\n", "1195725856"),
}


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurController]:
    for workspace in make_workspace(tmp_path_factory.mktemp("bad-input")):
        controller = OurController(workspace, CONTROLLER_ID)
        controller.format(random_cluster_id(), "--standalone")
        controller.start()
        controller.wait_until_ready()
        yield controller


@pytest.fixture
def bystander(controller: OurController) -> Iterator[WireClient]:
    """Open another connection before the bad input; it must not be affected."""
    with WireClient(controller.port) as client:
        describe_quorum(client)
        yield client
        assert describe_quorum(client).error_code == ErrorCode.NONE


@pytest.mark.usefixtures("bystander")
@pytest.mark.parametrize(("sent", "named"), BAD_INPUT.values(), ids=list(BAD_INPUT))
def test_bad_input_costs_its_connection_and_is_logged(
    controller: OurController, sent: bytes, named: str
) -> None:
    with WireClient(controller.port) as client:
        client.send_bytes(sent)
        with pytest.raises((ConnectionClosed, ConnectionResetError)):
            client.receive_frame()
        line = wait_until(
            lambda: _warning_about(controller, client.local_address), "a warning about the peer"
        )
    assert named in line, line


@pytest.mark.usefixtures("bystander")
def test_what_came_before_the_garbage_is_answered(controller: OurController) -> None:
    with WireClient(controller.port) as client:
        client.send(ApiVersionsRequest(), 0)
        assert client.receive(ApiVersionsResponse).error_code == ErrorCode.NONE
        client.send_bytes(b"\xff" * 64)
        with pytest.raises((ConnectionClosed, ConnectionResetError)):
            client.receive_frame()


@pytest.mark.usefixtures("bystander")
def test_a_peer_that_leaves_in_the_middle_of_a_frame_is_forgotten(controller: OurController) -> None:
    with WireClient(controller.port) as client:
        client.send_bytes(frame(_create_topics())[:20])
        client.half_close()
        with pytest.raises((ConnectionClosed, ConnectionResetError)):
            client.receive_frame()


@pytest.mark.usefixtures("bystander")
def test_an_api_versions_request_from_the_future_is_answered(controller: OurController) -> None:
    """KIP-511: the response has version 0, so that any client can read it, and lists the served versions."""
    with WireClient(controller.port) as client:
        client.send_bytes(frame(_header(API_VERSIONS, 99)))
        payload = client.receive_frame()
    response = ApiVersionsResponse.decode(payload[4:], 0)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert API_VERSIONS in [api.api_key for api in response.api_keys]


def _warning_about(controller: OurController, peer: str) -> str:
    """Return the first warning in the log about this peer, or "" if there is none yet."""
    for line in controller.running_process.log_text().splitlines():
        if line.startswith("{"):
            entry = json.loads(line)
            if entry.get("peer") == peer and entry["level"] == "warning":
                return line
    return ""
