"""Logs what an operator has to know of the quorum: ``leader_watch`` and ``replica_watch`` decide what that
is."""

from __future__ import annotations

from typing import Final

import trio

from kraft_wire import __version__
from kraft_wire.controller.requests import ApiRequest
from kraft_wire.protocol.message import Message
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.events import Failure
from kraft_wire.raft.voters import Peer, Voter, VoterSet
from kraft_wire.server.leader_watch import LeaderWatch, News, label
from kraft_wire.server.logging import get_logger
from kraft_wire.server.peer_connection import Address
from kraft_wire.server.replica_watch import ASKED_API_KEYS, ReplicaWatch, disowned

LOOK_S: Final = 1.0

log = get_logger(__name__)


def tell_start(core: RaftCore, cluster_id: str, folder: str) -> None:
    """Who starts here."""
    log.info(
        "controller starts",
        version=__version__,
        node_id=core.key.id,
        cluster_id=cluster_id,
        directory_id=str(core.key.directory_id),
        folder=folder,
        kraft_version=core.kraft_version,
        voters=[_address(voter) for voter in core.voters.voters],
    )


def _address(voter: Voter) -> str:
    endpoint = next(iter(voter.endpoints), None)
    return str(voter.key.id) if endpoint is None else label(Peer(voter.key.id, endpoint.host, endpoint.port))


class QuorumWatch:
    """Told by the owner of the requests in both directions; looks at the clock itself."""

    def __init__(self, core: RaftCore, cluster_id: str) -> None:
        self._core = core
        self._replicas = ReplicaWatch(cluster_id)
        self._leader = LeaderWatch(cluster_id, self._replicas.other_cluster_of, _now_ms())
        self._voters: VoterSet | None = None
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        """Look every second, until stopped."""
        with self._scope:
            while True:
                self.look()
                await trio.sleep(LOOK_S)

    def stop(self) -> None:
        """Who leads is no longer this node's concern."""
        self._scope.cancel()

    def look(self) -> None:
        """Tell what the time, or another set of voters, has made worth telling."""
        core = self._core
        _tell(*self._leader.look(_now_ms(), core.key.id if core.is_leader else None, core.known_peers))
        if core.voters != self._voters:
            self._voters = core.voters
            _tell(disowned(core.key, core.voters))

    def asked(self, request: ApiRequest) -> None:
        """A request came in. Most are brokers', and nobody's concern here."""
        if request.api_key in ASKED_API_KEYS:
            _tell(self._replicas.asked(request.request, request.peer.address, self._core.voters))

    def sent(self, request_id: int, peer: Peer) -> None:
        self._leader.sent(request_id, peer, _now_ms())

    def cancelled(self, request_id: int) -> None:
        self._leader.cancelled(request_id)

    def answered(self, request_id: int, response: Message) -> None:
        _tell(*self._leader.answered(request_id, response, _now_ms()))

    def failed(self, request_id: int, failure: Failure) -> None:
        self._leader.failed(request_id, failure)

    def unreachable(self, address: Address, reason: str) -> None:
        self._leader.unreachable(address.host, address.port, reason)


def _now_ms() -> int:
    return int(trio.current_time() * 1000)


def _tell(*news: News | None) -> None:
    for each in news:
        if each is not None:
            (log.warning if each.is_warning else log.info)(each.event, **each.fields)
