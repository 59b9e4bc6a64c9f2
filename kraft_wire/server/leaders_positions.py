"""Follow the positions of exporters: a follower asks the active controller once a second, and keeps them.

The next active controller exports from there on, so that records of about a second are exported twice. Only
answers count, which come from the address of the leader that this node follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.own_messages.exporter_positions_request import ExporterPositionsRequest
from kraft_wire.protocol.own_messages.exporter_positions_response import ExporterPositionsResponse
from kraft_wire.raft.events import Failure
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.server.exporter_positions import ExporterPositions
from kraft_wire.server.network.peers import Peers

ASK_INTERVAL_S: Final = 1.0
PATIENCE_S: Final = 2.0
"""A connection on which no answer comes for so long is opened again."""


class LeadersPositions:
    """The positions on their way from the leader. ``leader`` returns the one that this node follows; None
    while it leads, or knows of none."""

    def __init__(
        self,
        positions: ExporterPositions,
        leader: Callable[[], Peer | None],
        cluster: str,
        client_id: str,
    ) -> None:
        self._positions = positions
        self._leader = leader
        self._cluster = cluster
        self._peers = Peers(self._answered, self._failed, client_id=client_id)
        self._last_id = 0
        self._ended = trio.Event()

    async def run(self) -> None:
        """Ask again and again, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._peers.run)
            while True:
                await trio.sleep(ASK_INTERVAL_S)
                leader = self._leader()
                self._peers.know([] if leader is None else [leader])
                if leader is not None:
                    await self._ask(leader)

    async def _ask(self, leader: Peer) -> None:
        self._last_id += 1
        self._ended = trio.Event()
        self._peers.send(self._last_id, leader, ExporterPositionsRequest(self._cluster))
        with trio.move_on_after(PATIENCE_S) as patience:
            await self._ended.wait()
        if patience.cancelled_caught:
            self._peers.cancel(self._last_id)

    def _answered(self, request_id: int, response: Message) -> None:
        assert isinstance(response, ExporterPositionsResponse)
        if response.error_code == ErrorCode.NONE and self._leader() is not None:
            for position in response.positions:
                self._positions.begin_again(position.exporter, position.reset)
                if position.next_offset >= 0:
                    self._positions.note(position.exporter, position.next_offset)
        self._ended.set()

    def _failed(self, request_id: int, failure: Failure) -> None:
        """The leader may be one of Java's, or a controller without exporters."""
        self._ended.set()
