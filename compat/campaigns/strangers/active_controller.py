"""Ask the active controller, whichever node that is at the moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from compat.harness.wire import WireClient
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message

R = TypeVar("R", bound=Message)

ANSWER_WITHIN_S: Final = 3.0
"""The time after which another node is asked."""
PAUSE_S: Final = 0.005
RETRIED: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)


class NoController(Exception):
    """No node has answered as the active controller in time."""


class ActiveController:
    """A client that asks one node after the other until one answers that is the active controller."""

    def __init__(self, ports: Sequence[int], client_id: str) -> None:
        self._ports = ports
        self._client_id = client_id
        self._at = 0
        self._client: WireClient | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def call(
        self,
        request: Message,
        version: int,
        response_class: type[R],
        error_of: Callable[[R], int],
        patience_s: float,
    ) -> R:
        """Return the active controller's answer. Raises NoController."""
        deadline_s = time.monotonic() + patience_s
        while True:
            try:
                if self._client is None:
                    port = self._ports[self._at % len(self._ports)]
                    self._client = WireClient(port, client_id=self._client_id, timeout_s=ANSWER_WITHIN_S)
                response = self._client.call(request, version, response_class)
                error = error_of(response)
                if error not in RETRIED:
                    return response
                problem = ErrorCode(error).name
            except OSError as failure:
                problem = str(failure) or type(failure).__name__
            self.close()
            self._at += 1
            if time.monotonic() > deadline_s:
                raise NoController(f"no active controller for {patience_s:g} s; the last problem: {problem}")
            time.sleep(PAUSE_S)
