"""A real server process on a folder, and a blocking client of it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import msgspec

from kraft_wire.protocol.framing import FrameReader, frame
from kraft_wire.protocol.headers import decode_response, encode_request
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.protocol.messages.describe_configs_response import DescribeConfigsResponse
from kraft_wire.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse

COMMAND = [sys.executable, "-m", "kraft_wire.cli"]
CLUSTER_ID = "q3YRw3NrQz6yVPNUPcbbDA"
NODE_ID = 3000
BROKER_RESOURCE = 4
GIVE_UP_S = 60.0

Event = dict[str, Any]


def formatted(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    cluster_id: str = CLUSTER_ID,
    voters: Sequence[str] = ("--standalone",),
) -> Path:
    """Format a controller's folder; returns its properties file. The port is any free one."""
    properties = {
        "process.roles": "controller",
        "node.id": str(NODE_ID),
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
        "listeners": "CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder / "data"),
        **(settings or {}),
    }
    file = folder / "controller.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    command = [*COMMAND, "storage", "format", "-t", cluster_id, "-c", str(file), *voters]
    subprocess.run(command, check=True, capture_output=True)
    return file


class ControllerProcess:
    """One process, started by another one if ``within`` is that one's command. What it logs is collected as
    it comes."""

    def __init__(self, file: Path, within: Sequence[str] = ()) -> None:
        self.log_dir = file.parent / "data" / "__cluster_metadata-0"
        command = [*within, *COMMAND, "server", str(file)]
        self._process = subprocess.Popen(
            command, stderr=subprocess.PIPE, env={**os.environ, "LANG": "C"}, start_new_session=True
        )
        self._events: list[Event] = []
        self._text: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                with self._news:
                    self._text.append(line.decode())
                    if line.startswith(b"{"):
                        self._events.append(msgspec.json.decode(line))
                    self._news.notify_all()

    def wait_for(self, event: str) -> Event:
        """The first log entry of this event. Fails when the process ends, or takes too long."""
        deadline = time.monotonic() + GIVE_UP_S
        with self._news:
            while True:
                for entry in self._events:
                    if entry["event"] == event:
                        return entry
                assert self._reader.is_alive(), f"the process ended without {event!r}:\n{self.text}"
                assert time.monotonic() < deadline, f"no {event!r} came:\n{self.text}"
                self._news.wait(0.1)

    @property
    def text(self) -> str:
        return "".join(self._text)

    def client(self) -> Client:
        """A connection, once the controller is active."""
        self.wait_for("active controller")
        host, port = self.wait_for("listening")["address"].split(":")
        return Client(host, int(port))

    def terminate(self, by: signal.Signals = signal.SIGTERM) -> int:
        """SIGTERM, or another; returns the exit code."""
        self._process.send_signal(by)
        return self.ended()

    def hang_up(self) -> None:
        """SIGHUP."""
        self._process.send_signal(signal.SIGHUP)

    def ended(self) -> int:
        """Wait for the process to end by itself; returns the exit code."""
        code = self._process.wait(GIVE_UP_S)
        self._reader.join()
        return code

    def kill(self) -> None:
        """SIGKILL, unless it has ended; also to the one that started it."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self.ended()


class Client:
    """One connection, one request at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=GIVE_UP_S)
        self._frames = FrameReader(1 << 20)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def call(self, request: Message, version: int) -> Message:
        """Raises ConnectionError when the server goes away."""
        self._socket.sendall(frame(encode_request(request.API_KEY, version, 0, "test", request)))
        while (whole := self._frames.next_frame()) is None:
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the server closed the connection")
            self._frames.feed(data)
        return decode_response(request.API_KEY, version, whole)[1]

    def set_config(self, name: str, value: str, broker: str = "") -> None:
        """Set a dynamic config of a broker, or of all; an acknowledged write."""
        config = AlterableConfig(name=name, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name=broker, configs=[config])
        answer = self.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        (result,) = cast(IncrementalAlterConfigsResponse, answer).responses
        assert result.error_code == 0, result.error_message

    def config(self, name: str) -> str | None:
        """The value of a config of all brokers."""
        resource = DescribeConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name="", configuration_keys=(name,)
        )
        answer = cast(DescribeConfigsResponse, self.call(DescribeConfigsRequest(resources=[resource]), 4))
        (result,) = answer.results
        return next((config.value for config in result.configs if config.name == name), None)
