"""Run a real server process on a folder, with a blocking client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

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
from tests.support.wire_client import WireClient

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
    """Format a controller's folder and return its properties file. The server will choose a free port."""
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


class ServerProcess:
    """The process of a server on a folder, whose log is collected. ``release`` is the folder of another
    release of the package."""

    def __init__(self, command: Sequence[str], data: Path, *, release: Path | None = None) -> None:
        self.data = data
        self.log_dir = data / "__cluster_metadata-0"
        self._process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            env={**os.environ, "LANG": "C", **({} if release is None else {"PYTHONPATH": str(release)})},
            cwd=release,
            start_new_session=True,
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
        """Wait for the first log entry of this event. Fails if the process ends or takes too long."""
        deadline = time.monotonic() + GIVE_UP_S
        with self._news:
            while True:
                for entry in self._events:
                    if entry["event"] == event:
                        return entry
                assert self._reader.is_alive(), f"the process ended without {event!r}:\n{self.text}"
                assert time.monotonic() < deadline, f"timed out waiting for {event!r}:\n{self.text}"
                self._news.wait(0.1)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def open_files(self) -> int:
        """The number of files that the process has open."""
        return sum(1 for _ in Path(f"/proc/{self._process.pid}/fd").iterdir())

    def client(self) -> Client:
        """Connect to the controller once it is active."""
        self.wait_for("active controller")
        host, port = self.wait_for("listening")["address"].split(":")
        return Client(host, int(port))

    def terminate(self, by: signal.Signals = signal.SIGTERM) -> int:
        """Send SIGTERM or another signal, wait, and return the exit code."""
        self._process.send_signal(by)
        return self.ended()

    def pause(self) -> None:
        """Send SIGSTOP."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Send SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def hang_up(self) -> None:
        """Send SIGHUP."""
        self._process.send_signal(signal.SIGHUP)

    def ended(self) -> int:
        """Wait until the process ends by itself, and return the exit code."""
        code = self._process.wait(GIVE_UP_S)
        self._reader.join()
        return code

    def kill(self) -> None:
        """Send SIGKILL to the process and to the one that started it, unless it has ended."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self.ended()


class ControllerProcess(ServerProcess):
    """The process of a controller; the command ``within``, if given, starts it."""

    def __init__(self, file: Path, within: Sequence[str] = (), *, release: Path | None = None) -> None:
        super().__init__([*within, *COMMAND, "server", str(file)], file.parent / "data", release=release)


class ObserverProcess(ServerProcess):
    """The process of `kraft-wire observe` on a folder, at free ports."""

    def __init__(self, data: Path, bootstrap: str, *options: str) -> None:
        listeners = ["--listener", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        named = ["--bootstrap", bootstrap, "--dir", str(data)]
        super().__init__([*COMMAND, "observe", *named, *listeners, *options], data)

    @property
    def address(self) -> str:
        """The address for readers, once it listens."""
        address: str = self.wait_for("listening")["address"]
        return address


class Client(WireClient):
    """A connection that reads and sets dynamic configs."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(port, host=host, client_id="test", timeout_s=GIVE_UP_S)

    def set_config(self, name: str, value: str, broker: str = "") -> None:
        """Set a dynamic config of a broker, or of all brokers, and check that the write is acknowledged."""
        config = AlterableConfig(name=name, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name=broker, configs=[config])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        (result,) = self.call(request, 1, IncrementalAlterConfigsResponse).responses
        assert result.error_code == 0, result.error_message

    def config(self, name: str) -> str | None:
        """Return the value of a config of all brokers."""
        resource = DescribeConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name="", configuration_keys=(name,)
        )
        request = DescribeConfigsRequest(resources=[resource])
        (result,) = self.call(request, 4, DescribeConfigsResponse).results
        return next((config.value for config in result.configs if config.name == name), None)
