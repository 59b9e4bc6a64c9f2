"""Metrics and health of real controllers."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kraft_wire.metrics.definitions import DEFINITIONS
from tests.server.test_rolling_upgrade import Upgrade, old_ones
from tests.support.controller_process import ControllerProcess, formatted
from tests.support.http_client import HTTP, http_address, http_get, scraped, wait_until_ready
from tests.support.live_quorum import Controllers
from tests.support.scrapes import OPEN_METRICS, PARSERS
from tests.support.waiting import wait_until


def test_a_controller_alone(tmp_path: Path) -> None:
    with ControllerProcess(formatted(tmp_path, HTTP)) as process, process.client() as client:
        client.set_config("message.max.bytes", "1234567")
        wait_until_ready(process)
        assert http_get(process, "/livez").text == "the event loop runs: ok\n"
        assert http_get(process, "/metrics", method="HEAD").text == ""
        for content_type in PARSERS:
            found = scraped(process, content_type)
            for definition in DEFINITIONS.values():
                for name in (definition.name, *definition.names.all):
                    assert name in found or name.removesuffix("_total") in found
            assert found["kafka_controller_kafkacontroller_activecontrollercount"].samples[0].value == 1
            assert found["process_open_fds"].samples[0].value > 5
        requests = {each.labels["api"]: each.value for each in found["kraft_wire_requests"].samples}
        assert requests["IncrementalAlterConfigs"] == 1
        assert process.terminate() == 0


def test_garbage_costs_one_connection(tmp_path: Path) -> None:
    with ControllerProcess(formatted(tmp_path, HTTP)) as process:
        address = http_address(process)
        idle = [socket.create_connection(address) for _ in range(3)]
        with socket.create_connection(address) as garbage:
            garbage.sendall(b"\x16\x03\x01 a TLS hello\r\n\r\n")
            assert garbage.makefile("rb").read().startswith(b"HTTP/1.1 400 ")
        wait_until_ready(process)
        for each in idle:
            each.close()
        assert process.terminate() == 0


def test_a_controller_is_ready_only_with_a_leader(tmp_path: Path) -> None:
    controllers = Controllers(tmp_path)
    controllers.configure(HTTP)
    try:
        alone = controllers.start_one(1)
        answer = http_get(alone, "/readyz")
        assert answer.status == 503
        assert "leader: none is known\n" in answer.text
        other = controllers.start_one(2)
        for process in (alone, other):
            wait_until_ready(process)
            found = scraped(process, OPEN_METRICS)
            for direction in ("incoming", "outgoing"):
                (traffic,) = found[f"kafka_server_raftchannelmetrics_{direction}_byte"].samples
                assert traffic.value > 0
        controllers.kill(2)
        wait_until(lambda: http_get(alone, "/readyz").status == 503, "an unready controller")
        assert http_get(alone, "/livez").status == 200
    finally:
        controllers.close()


def test_a_controller_whose_replay_stopped_is_not_ready(tmp_path: Path) -> None:
    running = Upgrade(tmp_path, HTTP)
    try:
        new = running.controllers.leader()
        old = old_ones(new)[0]
        wait_until_ready(running.controllers.processes[old])
        running.upgrade(new)
        running.make_lead(new)
        running.wait_until_stopped(old)
        process = running.controllers.processes[old]
        answer = http_get(process, "/readyz")
        assert answer.status == 503
        assert "replay: replay stopped at offset" in answer.text
        assert "there is no record 99" in answer.text
        (sample,) = scraped(process, OPEN_METRICS)["kraft_wire_replay_stopped"].samples
        assert sample.value == 1
    finally:
        running.controllers.close()


@pytest.mark.parametrize(
    "module", ["h11", "prometheus_client", "kraft_wire.metrics", "kraft_wire.server.http"]
)
def test_the_server_does_not_import_it_without_a_listener(module: str) -> None:
    program = f"import sys, kraft_wire.server.main; print({module!r} in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
