"""Accept connections for metrics and health."""

from __future__ import annotations

from typing import Final

import trio

from kraft_wire.server.http.connection import HttpConnection
from kraft_wire.server.http.pages import Pages
from kraft_wire.server.logging import get_logger
from kraft_wire.server.network.listeners import Bound, bound_address, keep_accepting

MAX_CONNECTIONS: Final = 16
"""A scraper, a prober and some people with curl. Further ones are closed at once."""

log = get_logger(__name__)


class HttpListener:
    """The connections of the listener, which listens already."""

    def __init__(self, bound: Bound, pages: Pages) -> None:
        self._bound = bound
        self._pages = pages
        self._open = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        log.info("serving metrics and health", address=bound_address(self._bound))
        async with trio.open_nursery() as nursery:
            for each in self._bound.sockets:
                nursery.start_soon(
                    keep_accepting,
                    trio.SocketListener(each),
                    lambda stream: nursery.start_soon(self._serve, stream),
                    lambda error: None,  # Kafka's listeners lack the same files, and report it
                )

    async def _serve(self, stream: trio.SocketStream) -> None:
        if self._open >= MAX_CONNECTIONS:
            await stream.aclose()
            return
        self._open += 1
        try:
            await HttpConnection(stream, self._pages).run()
        finally:
            self._open -= 1
