"""Ask a controller's HTTP listener."""

from __future__ import annotations

import http.client
from typing import NamedTuple

from tests.support.controller_process import GIVE_UP_S, ServerProcess

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
