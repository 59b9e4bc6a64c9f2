"""Send requests to other controllers, on connections that open when they are first needed.

Those to known peers stay open. Clients can name other addresses, with AddRaftVoter and UpdateRaftVoter:
such a stranger's connection ends with its last answer, and there are only a few. So strangers can't use up
the file descriptors.

There are no retries, back-offs or time-outs of requests here: the raft core has them. A connection that is
refused, reset or closed is reported to it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import trio

from kraft_wire.protocol.message import Message
from kraft_wire.raft.events import Failure
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.raft.outgoing import Lane, lane_of
from kraft_wire.server.network.complaints import PeerLosses
from kraft_wire.server.network.host_names import look_up_for_stranger
from kraft_wire.server.network.peer_connection import PeerConnection
from kraft_wire.wire.address import Address
from kraft_wire.wire.dialect import Dialect
from kraft_wire.wire.framing import MAX_FRAME_BYTES
from kraft_wire.wire.traffic import Traffic

WARM_AGAIN_S: Final = 1.0
"""The time between attempts to connect to a peer that is down."""

MOST_STRANGERS: Final = 8
"""The most connections to strangers. The raft core asks one newcomer and four alleged leaders at a time, and
at two addresses for each voter that is said to have moved."""

STRANGER_PATIENCE_S: Final = 10.0
"""After this time without an answer a stranger's connection is closed: nobody may wait for it any more."""


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

    Until ``know`` is called, every peer is known.

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
        self.traffic = Traffic()
        self._losses = PeerLosses()
        self._nursery: trio.Nursery | None = None
        self._connections: dict[Line, PeerConnection] = {}
        self._open: dict[PeerConnection, Line] = {}
        self._known: frozenset[Address] | None = None
        self._out_of_reach: set[Address] = set()
        self._carriers: dict[int, PeerConnection] = {}

    async def run(self) -> None:
        """Run all connections until cancelled. Then they are closed, and nothing more is reported."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for connection in self._open:
                nursery.start_soon(self._keep, connection)
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None  # it takes no more tasks

    @property
    def files(self) -> int:
        """How many files are kept for the connections: they may be open, or open at any time."""
        known = len(self._known or ()) * len(Lane)
        return max(known + MOST_STRANGERS, len(self._open))

    def know(self, peers: Iterable[Peer]) -> None:
        """Set the known peers. Connections to others are closed, unless an answer is expected."""
        self._known = frozenset(Address(peer.host, peer.port) for peer in peers)
        for connection in self._strangers():
            connection.close_if_idle(after_s=STRANGER_PATIENCE_S)

    def send(self, request_id: int, peer: Peer, request: Message) -> None:
        """Send a request to a peer, after the earlier ones of its lane; open a connection if needed."""
        line = Line(Address(peer.host, peer.port), lane_of(type(request)))
        connection = self._usable(line)
        self._carriers[request_id] = connection
        connection.send(request_id, request)

    def warm(self, peer: Peer) -> None:
        """Open the connections to a peer that aren't open: the next election and the first Fetch from its
        winner must not wait for them. A peer that could just not be reached is left to ``keep_warm``."""
        address = Address(peer.host, peer.port)
        if address not in self._out_of_reach:
            for lane in Lane:
                self._usable(Line(address, lane))

    async def keep_warm(
        self, peers: Callable[[], Iterable[Peer]], known: Callable[[], Iterable[Peer]]
    ) -> None:
        """Keep the connections to ``peers`` open, until cancelled: a peer may have restarted, or have closed
        a connection that was idle. Close those to peers that aren't ``known``."""
        while True:
            await trio.sleep(WARM_AGAIN_S)
            self.know(known())
            self._out_of_reach.clear()
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
        return self._open_connection(line)

    def _open_connection(self, line: Line) -> PeerConnection:
        self._make_room(line)
        connection = PeerConnection(
            line.address,
            self._client_id,
            self._max_frame_bytes,
            self._report_answer,
            self._report_failure,
            self._note_unreachable,
            self._dialect,
            self.traffic,
            self._losses,
        )
        self._connections[line] = connection
        self._open[connection] = line
        if self._nursery is not None:
            self._nursery.start_soon(self._keep, connection)
        return connection

    async def _keep(self, connection: PeerConnection) -> None:
        if self._is_stranger(connection):
            look_up_for_stranger()
        await connection.run()
        line = self._open.pop(connection)
        if self._connections.get(line) is connection:
            del self._connections[line]

    def _report_answer(self, request_id: int, response: Message) -> None:
        carrier = self._carriers.pop(request_id, None)
        if carrier is not None:
            self._out_of_reach.discard(carrier.address)
            self._answered(request_id, response)
            self._end_if_stranger(carrier)

    def _report_failure(self, request_id: int, failure: Failure) -> None:
        carrier = self._carriers.pop(request_id, None)
        if carrier is not None:
            self._failed(request_id, failure)
            self._end_if_stranger(carrier)

    def _note_unreachable(self, connection: PeerConnection, reason: str) -> None:
        if not connection.was_open:
            self._out_of_reach.add(connection.address)
        self._unreachable(connection.address, reason)

    # Strangers.

    def _is_stranger(self, connection: PeerConnection) -> bool:
        return self._known is not None and connection.address not in self._known

    def _strangers(self) -> list[PeerConnection]:
        """Return the connections to strangers, the oldest first."""
        return [connection for connection in self._open if self._is_stranger(connection)]

    def _end_if_stranger(self, connection: PeerConnection) -> None:
        if self._is_stranger(connection):
            connection.close_if_idle()

    def _make_room(self, line: Line) -> None:
        """Close the oldest connection to a stranger if another one would be too many."""
        if self._known is not None and line.address not in self._known:
            strangers = self._strangers()
            for connection in strangers[: max(0, len(strangers) + 1 - MOST_STRANGERS)]:
                connection.close()
