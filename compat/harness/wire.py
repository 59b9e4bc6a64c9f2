"""A blocking client of Kafka's wire protocol, for what ordinary clients can't say to a controller."""

from __future__ import annotations

import socket
from collections import deque
from types import TracebackType
from typing import Self, TypeVar

from compat.harness.ports import HOST
from compat.harness.processes import ManagedProcess, ProcessFailed
from compat.harness.waiting import wait_until
from kraft_wire.protocol.framing import FrameReader, frame
from kraft_wire.protocol.headers import decode_response, encode_request
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import describe_quorum_request as quorum
from kraft_wire.protocol.messages.describe_quorum_response import DescribeQuorumResponse

MAX_FRAME_BYTES = 100 * 1024 * 1024
RECEIVE_BYTES = 1 << 16

R = TypeVar("R", bound=Message)


class ConnectionClosed(ConnectionError):
    """The server closed the connection."""


class WireClient:
    """One connection to a node. Requests may be pipelined: answers come in the order of the requests."""

    def __init__(
        self, port: int, *, host: str = HOST, client_id: str = "compat", timeout_s: float = 30.0
    ) -> None:
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._frames = FrameReader(MAX_FRAME_BYTES)
        self._correlation_id = 0
        self._in_flight: deque[tuple[int, int, int]] = deque()  # correlation id, API key, version

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    @property
    def local_address(self) -> str:
        """This end's address, as the server names its peer: "127.0.0.1:54321"."""
        host, port = self._socket.getsockname()
        return f"{host}:{port}"

    def send(self, request: Message, version: int) -> None:
        """Send one request without waiting for its answer."""
        self._correlation_id += 1
        payload = encode_request(request.API_KEY, version, self._correlation_id, self._client_id, request)
        self._in_flight.append((self._correlation_id, request.API_KEY, version))
        self._socket.sendall(frame(payload))

    def receive(self, response_class: type[R]) -> R:
        """The answer to the oldest request in flight. Raises ConnectionError, TimeoutError, ProtocolError."""
        payload = self.receive_frame()
        expected_id, api_key, version = self._in_flight.popleft()
        correlation_id, response = decode_response(api_key, version, payload)
        if correlation_id != expected_id:
            raise ConnectionError(f"answer to request {correlation_id} came where {expected_id} was due")
        if not isinstance(response, response_class):
            raise TypeError(f"API key {api_key} is answered by {type(response).__name__}")
        return response

    def call(self, request: Message, version: int, response_class: type[R]) -> R:
        """Send one request and wait for its answer."""
        self.send(request, version)
        return self.receive(response_class)

    def send_bytes(self, data: bytes) -> None:
        """Send anything at all: what a broken or hostile peer would."""
        self._socket.sendall(data)

    def half_close(self) -> None:
        """Send nothing more, but go on receiving."""
        self._socket.shutdown(socket.SHUT_WR)

    def receive_frame(self) -> bytes:
        while (payload := self._frames.next_frame()) is None:
            received = self._socket.recv(RECEIVE_BYTES)
            if not received:
                raise ConnectionClosed("the server closed the connection")
            self._frames.feed(received)
        return payload


def describe_quorum(client: WireClient) -> DescribeQuorumResponse:
    partition = quorum.PartitionData(partition_index=0)
    topic = quorum.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    return client.call(quorum.DescribeQuorumRequest(topics=[topic]), 2, DescribeQuorumResponse)


def wait_until_active(process: ManagedProcess, port: int, timeout_s: float) -> None:
    """Wait until the node on ``port`` says that it leads and that its epoch's first record is committed."""

    def leads() -> bool:
        if not process.running:
            raise ProcessFailed(f"{process.name} ended with {process.exit_code}\n{process.tail()}")
        try:
            with WireClient(port, timeout_s=5.0) as client:
                response = describe_quorum(client)
        except OSError:
            return False  # not listening yet
        partition = response.topics[0].partitions[0]
        return partition.error_code == 0 and partition.leader_id >= 0 and partition.high_watermark > 0

    wait_until(leads, f"{process.name} to lead", timeout_s)
