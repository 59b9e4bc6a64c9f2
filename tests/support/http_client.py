"""Ask a controller's HTTP listener."""

from __future__ import annotations

import http.client
from typing import NamedTuple

from prometheus_client.metrics_core import Metric

from tests.support.controller_process import GIVE_UP_S, ServerProcess
from tests.support.scrapes import parsed
from tests.support.waiting import wait_until

HTTP = {"kraft.wire.http.listener": "127.0.0.1:0"}
"""A listener at a free port."""


class HttpAnswer(NamedTuple):
    """A response."""

    status: int
    content_type: str
    text: str


def http_address(process: ServerProcess) -> tuple[str, int]:
    """Return the address of a controller's HTTP listener, once it listens."""
    host, port = process.wait_for("serving metrics and health")["address"].split(":")
    return host, int(port)


def http_get(process: ServerProcess, path: str, accept: str = "*/*", method: str = "GET") -> HttpAnswer:
    """Return the answer to one request on a connection of its own."""
    connection = http.client.HTTPConnection(*http_address(process), timeout=GIVE_UP_S)
    try:
        connection.request(method, path, headers={"Accept": accept})
        response = connection.getresponse()
        return HttpAnswer(response.status, response.headers["Content-Type"], response.read().decode())
    finally:
        connection.close()


def scraped(process: ServerProcess, content_type: str) -> dict[str, Metric]:
    """Return the families of a scrape by name, that of a counter without _total."""
    answer = http_get(process, "/metrics", content_type)
    assert answer.status == 200
    assert answer.content_type.startswith(content_type)
    return parsed(answer.text, content_type)


def wait_until_ready(process: ServerProcess) -> None:
    """Wait until /readyz says so."""
    wait_until(lambda: http_get(process, "/readyz").status == 200, "a ready controller")
