"""Send requests to other controllers, on connections that open when they are first needed and stay open.

There are no time-outs, retries or back-offs here: the raft core has them. A connection that is refused, reset
or closed is reported to it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import trio

from kraft_wire.protocol.message import Message
from kraft_wire.raft.events import Failure
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.raft.outgoing import Lane, lane_of
from kraft_wire.server.network.peer_connection import PeerConnection
from kraft_wire.wire.address import Address
from kraft_wire.wire.dialect import Dialect
from kraft_wire.wire.framing import MAX_FRAME_BYTES

WARM_AGAIN_S: Final = 1.0
"""The time between attempts to connect to a peer that is down."""


class Line(NamedTuple):
    """The address and lane of a connection. There is one connection for each line."""

    address: Address
    lane: Lane


class Peers:
    """The connections to other controllers.

    The end of each request is reported once, by ``answered(request_id, response)`` or ``failed(request_id,
    failure)``; after ``cancel`` it isn't. If a connection can't be opened or is lost,
    ``unreachable(address, reason)`` is called first, with the system's text. Peers that speak ``dialect`` get
    requests in its forms.

    The callbacks are called by tasks of ``run``, never within ``send`` or ``cancel``, and may call these. An
    exception of a callback ends ``run``.
    """

    def __init__(
        self,
        answered: Callable[[int, Message], None],
        failed: Callable[[int, Failure], None],
        *,
        client_id: str,
        unreachable: Callable[[Address, str], None] = lambda address, reason: None,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        dialect: Dialect | None = None,
    ) -> None:
        self._answered = answered
        self._failed = failed
        self._client_id = client_id
        self._unreachable = unreachable
        self._max_frame_bytes = max_frame_bytes
        self._dialect = dialect
        self._nursery: trio.Nursery | None = None
        self._connections: dict[Line, PeerConnection] = {}
        self._carriers: dict[int, PeerConnection] = {}

    async def run(self) -> None:
        """Run all connections until cancelled. Then they are closed, and nothing more is reported."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for line, connection in self._connections.items():
                nursery.start_soon(self._keep, line, connection)
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None  # it takes no more tasks

    def send(self, request_id: int, peer: Peer, request: Message) -> None:
        """Send a request to a peer, after the earlier ones of its lane; open a connection if needed."""
        line = Line(Address(peer.host, peer.port), lane_of(type(request)))
        connection = self._usable(line)
        self._carriers[request_id] = connection
        connection.send(request_id, request)

    def warm(self, peer: Peer) -> None:
        """Open the connections to a peer that aren't open: the next election and the first Fetch from its
        winner must not wait for them."""
        for lane in Lane:
            self._usable(Line(Address(peer.host, peer.port), lane))

    async def keep_warm(self, peers: Callable[[], Iterable[Peer]]) -> None:
        """Keep the connections to these peers open, until cancelled: a peer may have restarted, or have
        closed a connection that was idle."""
        while True:
            await trio.sleep(WARM_AGAIN_S)
            for peer in peers():
                self.warm(peer)

    def cancel(self, request_id: int) -> None:
        """Close the connection that carries a request. Its other requests fail with TIMED_OUT."""
        carrier = self._carriers.pop(request_id, None)
        if carrier is not None:
            carrier.close()

    def _usable(self, line: Line) -> PeerConnection:
        connection = self._connections.get(line)
        if connection is not None:
            if connection.takes_requests():
                return connection
            connection.close_if_idle()
        return self._open(line)

    def _open(self, line: Line) -> PeerConnection:
        connection = PeerConnection(
            line.address,
            self._client_id,
            self._max_frame_bytes,
            self._report_answer,
            self._report_failure,
            self._unreachable,
            self._dialect,
        )
        self._connections[line] = connection
        if self._nursery is not None:
            self._nursery.start_soon(self._keep, line, connection)
        return connection

    async def _keep(self, line: Line, connection: PeerConnection) -> None:
        await connection.run()
        if self._connections.get(line) is connection:
            del self._connections[line]

    def _report_answer(self, request_id: int, response: Message) -> None:
        if self._carriers.pop(request_id, None) is not None:
            self._answered(request_id, response)

    def _report_failure(self, request_id: int, failure: Failure) -> None:
        if self._carriers.pop(request_id, None) is not None:
            self._failed(request_id, failure)
