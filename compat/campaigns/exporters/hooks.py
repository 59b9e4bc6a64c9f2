"""Receive the records of webhooks, and fail as servers do: with status 500, or without an answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from compat.campaigns.exporters.rules import Delivery, Exported

Behaviour = Callable[[int], int | None]
"""Called with the number of a request, from 1, before it is answered with the status that it returns; None
leaves the request without an answer."""

OK: Final = 200
INTERNAL_SERVER_ERROR: Final = 500
BATCH: Final = list[dict[str, Any]]


class Hook:
    """A server for one exporter."""

    def __init__(self, host: str, behave: Behaviour) -> None:
        self.deliveries: list[Delivery] = []
        self._behave = behave
        self._lock = threading.Lock()
        self._requests = 0
        self._server = ThreadingHTTPServer((host, 0), _handler(self), bind_and_activate=False)
        self._server.daemon_threads = True
        self._server.server_bind()
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        host_name, port = self._server.server_address[:2]
        self.url = f"http://{host_name!s}:{port}/"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def listen(self) -> None:
        """Take connections; until then they are refused."""
        self._server.server_activate()
        self._thread.start()

    def answer(self, body: bytes) -> int | None:
        """Return the status for a request, after its records were noted."""
        records = [_exported(event["data"]) for event in msgspec.json.decode(body, type=BATCH)]
        with self._lock:
            self._requests += 1
            number = self._requests
        status = self._behave(number)
        with self._lock:
            self.deliveries.append(Delivery(time.monotonic(), tuple(records), status == OK))
        return status


def steady(_number: int) -> int:
    """Take every request."""
    return OK


def every_tenth_fails(number: int) -> int:
    """Answer every tenth request with 500."""
    return OK if number % 10 else INTERNAL_SERVER_ERROR


class Hangs:
    """Leave every twentieth request without an answer, for ``hang_s`` seconds."""

    def __init__(self, hang_s: float) -> None:
        self._hang_s = hang_s

    def __call__(self, number: int) -> int | None:
        if number % 20:
            return OK
        time.sleep(self._hang_s)
        return None


def _exported(fields: dict[str, Any]) -> Exported:
    return Exported(fields["offset"], fields["index"], fields["type"], msgspec.json.encode(fields["data"]))


def _handler(hook: Hook) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            status = hook.answer(self.rfile.read(int(self.headers["Content-Length"])))
            if status is None:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Be quiet: the deliveries are the log."""

    return Handler
