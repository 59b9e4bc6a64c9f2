"""Simulate connections: ordered streams of requests one way and of responses the other way, until they break.

As between real nodes, Fetch and FetchSnapshot have a connection of their own, and a server answers the
requests of one connection in their order. A process that dies closes its connections; a machine that dies
notifies no peer until it is up again. Data that was sent before the sender closed the connection still
arrives, however late.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from kraft_wire.protocol.message import Message
from kraft_wire.raft.events import (
    Event,
    Failure,
    RequestAbandoned,
    RequestFailed,
    ResponseReceived,
    RpcRequest,
)
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.raft.outgoing import Lane, lane_of
from kraft_wire.sim.network.links import Links
from kraft_wire.sim.network.wire import Wire
from kraft_wire.sim.scheduler import Scheduler
from kraft_wire.wire.dialect import Dialect

LISTENER: Final = "CONTROLLER"
CLUSTER_ID: Final = "1Db5QLSqSZieL3rJBUUegA"
PORT: Final = 9093
NOWHERE: Final = "nowhere"
LATEST_DUPLICATE_US: Final = 5_000_000


def host_of(node_id: int) -> str:
    return f"node-{node_id}"


def other_host_of(node_id: int) -> str:
    """Return a second address of the same node."""
    return f"front-{node_id}"


def nowhere_of(node_id: int) -> str:
    """Return an address of a node at which nobody answers."""
    return f"{NOWHERE}-{node_id}"


def node_of(peer: Peer) -> int:
    return int(peer.host.rpartition("-")[2])


def is_nowhere(peer: Peer) -> bool:
    return peer.host.startswith(NOWHERE)


class Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The probability of each kind of fault on messages."""

    reset: float = 0.0
    duplicate: float = 0.0
    on_the_wire: bool = False
    """Whether messages are encoded and decoded."""


class Endpoint(Protocol):
    """A node, as the network sees it. ``life`` changes at every start."""

    @property
    def id(self) -> int: ...
    @property
    def life(self) -> int: ...
    @property
    def is_up(self) -> bool: ...
    @property
    def is_powered(self) -> bool: ...
    def take(self, event: Event) -> None: ...


class Slot:
    """A request's place in the order of the responses on its connection."""

    __slots__ = ("request_id", "response", "token")

    def __init__(self, token: int, request_id: int) -> None:
        self.token = token
        self.request_id = request_id
        self.response: Message | None = None


class Connection:
    """One connection. Either end may be closed before the other end knows."""

    __slots__ = (
        "client",
        "client_life",
        "is_answered",
        "is_open",
        "is_served",
        "pending",
        "server",
        "server_life",
        "slots",
        "to_client_us",
        "to_server_us",
    )

    def __init__(self, client: Endpoint, server: Endpoint) -> None:
        self.client = client
        self.server = server
        self.client_life = client.life
        self.server_life = server.life
        self.is_open = True
        self.is_served = True
        self.is_answered = False
        """Whether the server has answered on it: then the client knows what the server serves."""
        self.pending: dict[int, None] = {}
        self.slots: deque[Slot] = deque()
        self.to_server_us = 0
        self.to_client_us = 0


class Network:
    """All connections. A request's token is a number that only the network interprets. ``unroutable`` has
    pairs of a node and a host that the node cannot reach, ``deserted`` the hosts that refuse connections."""

    def __init__(
        self,
        scheduler: Scheduler,
        links: Links,
        chance: random.Random,
        faults: Faults,
        dialect: Dialect | None = None,
    ) -> None:
        self.links = links
        self.faults = faults
        self._wire = Wire(is_encoded=faults.on_the_wire, dialect=dialect)
        self.nodes: dict[int, Endpoint] = {}
        self.unroutable: set[tuple[int, str]] = set()
        self.deserted: set[str] = set()
        self.garble: Callable[[int, Message], Message] | None = None
        self._scheduler = scheduler
        self._random = chance.random
        self._open: dict[tuple[int, int, Lane], Connection] = {}
        self._asked: dict[int, tuple[Connection, Slot]] = {}
        self._last_token = 0

    # Requests.

    def send(self, client: Endpoint, request_id: int, peer: Peer, request: Message) -> None:
        """Send a request. Open a connection if there is none."""
        server = self.nodes[node_of(peer)]
        line = client.id, server.id, lane_of(type(request))
        connection = self._open.get(line)
        if connection is None or not connection.is_open:
            connection = self._open[line] = Connection(client, server)
        connection.pending[request_id] = None
        if connection.is_answered and not self._wire.can_carry(request):
            self._scheduler.after(0, self._fail, connection, request_id, Failure.UNSUPPORTED)
            return
        if peer.host in self.deserted:
            self._scheduler.after(0, self._fail, connection, request_id, Failure.LOST)
            return
        if (client.id, peer.host) in self.unroutable or is_nowhere(peer):
            return
        if self.faults.reset and self._random() < self.faults.reset:
            self.reset(connection)
            return
        pair = client.id, server.id
        connection.to_server_us = self.links.carry(
            pair, connection.to_server_us + 1, self._reach, connection, request_id, request
        )
        if self.faults.duplicate and self._random() < self.faults.duplicate:
            later_us = self._scheduler.now_us + int(self._random() * LATEST_DUPLICATE_US)
            self.links.carry(pair, later_us, self._reach_again, connection, request)

    def cancel(self, client: Endpoint, request_id: int) -> None:
        """Close the connection that carries a request, because the client doesn't wait for it any more."""
        for line, connection in self._open.items():
            if line[0] == client.id and request_id in connection.pending:
                self._close_client(connection)
                return

    def _reach(self, connection: Connection, request_id: int, request: Message) -> None:
        server = connection.server
        if not server.is_powered:
            return
        if not (server.is_up and connection.is_served and connection.server_life == server.life):
            self._refuse(connection)
            return
        if not self._wire.can_carry(request):
            pair = server.id, connection.client.id
            connection.to_client_us = self.links.carry(
                pair, connection.to_client_us + 1, self._fail, connection, request_id, Failure.UNSUPPORTED
            )
            return
        self._last_token += 1
        slot = Slot(self._last_token, request_id)
        connection.slots.append(slot)
        self._asked[slot.token] = connection, slot
        self._hand_over(server, slot.token, request)

    def _reach_again(self, connection: Connection, request: Message) -> None:
        """Deliver a duplicate of a request. Its response goes nowhere."""
        server = connection.server
        if server.is_up and connection.server_life == server.life and self._wire.can_carry(request):
            self._last_token += 1
            self._hand_over(server, self._last_token, request)

    def _hand_over(self, server: Endpoint, token: int, request: Message) -> None:
        request, version = self._wire.request(request)
        server.take(RpcRequest(token, request, version, LISTENER))

    # Responses.

    def answer(self, token: int, response: Message) -> None:
        """Send a response after all earlier ones on its connection."""
        asked = self._asked.pop(token, None)
        if asked is None:
            return
        connection, slot = asked
        server = connection.server
        if self.garble is not None:
            response = self.garble(server.id, response)
        slot.response = response
        pair = server.id, connection.client.id
        slots = connection.slots
        while slots and slots[0].response is not None:
            done = slots.popleft()
            connection.to_client_us = self.links.carry(
                pair, connection.to_client_us + 1, self._return, connection, done.request_id, done.response
            )

    def _return(self, connection: Connection, request_id: int, response: Message) -> None:
        client = connection.client
        if not self._is_awaited(connection) or request_id not in connection.pending:
            return
        connection.is_answered = True
        del connection.pending[request_id]
        client.take(ResponseReceived(request_id, self._wire.response(response)))

    def _is_awaited(self, connection: Connection) -> bool:
        client = connection.client
        return connection.is_open and client.is_up and client.life == connection.client_life

    # Breaks.

    def reset(self, connection: Connection) -> None:
        """Break a connection: both ends are notified."""
        pair = connection.server.id, connection.client.id
        self.links.carry(pair, 0, self._lose, connection)
        self.links.carry((pair[1], pair[0]), 0, self._close_server, connection)

    def reset_between(self, one: int, other: int) -> None:
        """Break all connections between two nodes."""
        for (client, server, _), connection in list(self._open.items()):
            if {client, server} == {one, other} and connection.is_open:
                self.reset(connection)

    def process_died(self, node_id: int) -> None:
        """Close the connections of a process that died, as the kernel does."""
        for (client, server, _), connection in list(self._open.items()):
            if client == node_id:
                self._close_client(connection)
            elif server == node_id:
                self._drop_slots(connection)
                self._refuse(connection)

    def machine_died(self, node_id: int) -> None:
        """Keep the connections to a dead machine open: peers learn of its death only when it is up again and
        answers what they send."""
        for (client, server, _), connection in list(self._open.items()):
            if client == node_id:
                connection.is_open = False
            elif server == node_id:
                self._drop_slots(connection)

    def _refuse(self, connection: Connection) -> None:
        """Notify the client that no process serves this connection."""
        connection.is_served = False
        pair = connection.server.id, connection.client.id
        connection.to_client_us = self.links.carry(pair, connection.to_client_us + 1, self._lose, connection)

    def _lose(self, connection: Connection) -> None:
        if not self._is_awaited(connection):
            return
        connection.is_open = False
        lost, connection.pending = list(connection.pending), {}
        for request_id in lost:
            if connection.client.is_up and connection.client.life == connection.client_life:
                connection.client.take(RequestFailed(request_id, Failure.LOST))

    def _close_client(self, connection: Connection) -> None:
        connection.is_open = False
        lost, connection.pending = list(connection.pending), {}
        pair = connection.client.id, connection.server.id
        self.links.carry(pair, connection.to_server_us + 1, self._close_server, connection)
        if connection.client.is_up and connection.client.life == connection.client_life:
            for request_id in lost:
                self._scheduler.after(0, self._time_out, connection, request_id)

    def _time_out(self, connection: Connection, request_id: int) -> None:
        client = connection.client
        if client.is_up and client.life == connection.client_life:
            client.take(RequestFailed(request_id, Failure.TIMED_OUT))

    def _fail(self, connection: Connection, request_id: int, failure: Failure) -> None:
        """Report that nobody listens where a request was sent to, or that the server doesn't serve it."""
        if self._is_awaited(connection) and request_id in connection.pending:
            connection.is_answered |= failure is Failure.UNSUPPORTED
            del connection.pending[request_id]
            connection.client.take(RequestFailed(request_id, failure))

    def _close_server(self, connection: Connection) -> None:
        server = connection.server
        tokens = self._drop_slots(connection)
        if connection.is_served and server.is_up and server.life == connection.server_life:
            connection.is_served = False
            for token in tokens:
                server.take(RequestAbandoned(token))

    def _drop_slots(self, connection: Connection) -> list[int]:
        tokens = [slot.token for slot in connection.slots if slot.response is None]
        connection.slots.clear()
        for token in tokens:
            self._asked.pop(token, None)
        return tokens
