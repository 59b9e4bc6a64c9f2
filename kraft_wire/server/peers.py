"""The outgoing side of a controller: requests to other controllers, on connections that are opened when they
are first needed and stay open.

No time-outs, no repetition, no back-off: the raft core does all of that. An end that the core should hear of
is a connection that was refused, reset or closed; that one is reported at once.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

import trio

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kraft_wire.raft.events import Failure
from kraft_wire.raft.voters import Peer
from kraft_wire.server.peer_connection import Address, PeerConnection

MAX_FRAME_BYTES: Final = 100 * 1024 * 1024


class Lane(Enum):
    """What shares a connection: answers come in order, and a Fetch may be answered late."""

    CONTROL = "control"
    FETCH = "fetch"


class Line(NamedTuple):
    """There is one connection for each of these at a time."""

    address: Address
    lane: Lane


def lane_of(request: Message) -> Lane:
    """Fetch and FetchSnapshot have a lane of their own."""
    return Lane.FETCH if isinstance(request, (FetchRequest, FetchSnapshotRequest)) else Lane.CONTROL


class Peers:
    """Sends requests and reports each one's end, once: ``answered(request_id, response)`` or
    ``failed(request_id, failure)``, or nothing after ``cancel``. ``unreachable(address, reason)`` says, in
    the system's words, why a connection wasn't made or broke, before what it carried is reported.

    All are called from ``run``'s tasks, never from within ``send`` or ``cancel``, and may call either. What
    they raise ends ``run``.
    """

    def __init__(
        self,
        answered: Callable[[int, Message], None],
        failed: Callable[[int, Failure], None],
        *,
        client_id: str,
        unreachable: Callable[[Address, str], None] = lambda address, reason: None,
        max_frame_bytes: int = MAX_FRAME_BYTES,
    ) -> None:
        self._answered = answered
        self._failed = failed
        self._client_id = client_id
        self._unreachable = unreachable
        self._max_frame_bytes = max_frame_bytes
        self._nursery: trio.Nursery | None = None
        self._connections: dict[Line, PeerConnection] = {}
        self._carriers: dict[int, PeerConnection] = {}

    async def run(self) -> None:
        """Keep every connection going until cancelled; then they are closed, and nothing more is reported."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for line, connection in self._connections.items():
                nursery.start_soon(self._keep, line, connection)
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None  # it takes no more

    def send(self, request_id: int, peer: Peer, request: Message) -> None:
        """Send it after what was sent to this peer on its lane before; on a new connection if need be."""
        line = Line(Address(peer.host, peer.port), lane_of(request))
        connection = self._usable(line)
        self._carriers[request_id] = connection
        connection.send(request_id, request)

    def warm(self, peer: Peer) -> None:
        """Have a connection ready for whatever isn't a Fetch: the next election must not wait for one."""
        self._usable(Line(Address(peer.host, peer.port), Lane.CONTROL))

    def cancel(self, request_id: int) -> None:
        """Close the connection that carries it. What else it carries is reported as TIMED_OUT."""
        carrier = self._carriers.pop(request_id, None)
        if carrier is not None:
            carrier.close()

    def _usable(self, line: Line) -> PeerConnection:
        connection = self._connections.get(line)
        if connection is not None:
            if connection.takes_requests():
                return connection
            connection.close_unless_asked()
        return self._open(line)

    def _open(self, line: Line) -> PeerConnection:
        connection = PeerConnection(
            line.address,
            self._client_id,
            self._max_frame_bytes,
            self._report_answer,
            self._report_failure,
            self._unreachable,
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
