"""A process that was suspended for longer than the idle time reads what arrived before it closes anything."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersionsResponse
from tests.support.controller_process import ControllerProcess, formatted

MAX_IDLE_MS = 3000
CLIENTS = 16
ASK = ApiVersionsRequest(client_software_name="a", client_software_version="1")


def test_requests_that_arrived_meanwhile_are_answered(tmp_path: Path) -> None:
    file = formatted(tmp_path, {"connections.max.idle.ms": str(MAX_IDLE_MS)})
    with ExitStack() as stack:
        process = stack.enter_context(ControllerProcess(file))
        process.wait_for("active controller")
        clients = [stack.enter_context(process.client()) for _ in range(CLIENTS)]
        for client in clients:
            client.call(ASK, 3, ApiVersionsResponse)
        process.pause()
        for client in clients:
            client.send(ASK, 3)
        time.sleep(MAX_IDLE_MS / 1000 + 0.5)  # the idle time passes while the process is suspended
        process.resume()
        for client in clients:
            assert client.receive(ApiVersionsResponse).error_code == 0
