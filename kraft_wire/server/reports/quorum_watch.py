"""Log what an operator must know of the quorum, as ``leader_watch`` and ``replica_watch`` decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio

from kraft_wire import __version__
from kraft_wire.controller.node.effects import NodeEffect
from kraft_wire.controller.node.events import ApiRequest
from kraft_wire.controller.node.node import NodeEvent
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.effects import CancelRequest, SendRequest
from kraft_wire.raft.election.stopping import StopWait
from kraft_wire.raft.events import Now, RequestFailed, ResponseReceived, ShutDown
from kraft_wire.raft.membership.voters import Peer, Voter, VoterSet
from kraft_wire.server.clocks import monotonic_ms
from kraft_wire.server.logging import get_logger
from kraft_wire.server.network.complaints import MISTAKE_INTERVAL_S, MOST_MISTAKES, WarningLimit
from kraft_wire.server.reports.leader_watch import LeaderWatch, LogEvent, label
from kraft_wire.server.reports.replica_watch import ASKED_API_KEYS, ReplicaWatch, disowned, enlisted
from kraft_wire.wire.address import Address

LOOK_S: Final = 1.0

log = get_logger(__name__)


def report_start(core: RaftCore, cluster_id: str, folder: str) -> None:
    """Log the identity of this node, and the voters that it knows."""
    log.info(
        "observer starts" if core.is_observer_only else "controller starts",
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
    """A watch on the requests in both directions (a ``Tap`` of the owner), and on the clock."""

    def __init__(self, core: RaftCore, cluster_id: str) -> None:
        self._core = core
        self._replicas = ReplicaWatch(cluster_id)
        self._leader = LeaderWatch(cluster_id, self._replicas.other_cluster_of, monotonic_ms())
        self._finding_limit = WarningLimit(MISTAKE_INTERVAL_S, MOST_MISTAKES)
        self._voters: VoterSet | None = None
        self._scope = trio.CancelScope()
        self._is_stopping = False
        self._stop_waits_for: StopWait | None = None

    async def run(self) -> None:
        """Look every second, until the node shuts down."""
        with self._scope:
            while True:
                self.look()
                await trio.sleep(LOOK_S)

    def look(self) -> None:
        """Log what the time, or another set of voters, has made worth reporting."""
        core = self._core
        leader_id = core.key.id if core.is_leader else None
        _log_events(*self._leader.look(monotonic_ms(), leader_id, core.known_peers))
        if count := self._finding_limit.rest(trio.current_time()):
            log.warning("warnings left out", left_out=count)
        if core.voters != self._voters:
            self._voters = core.voters
            finding = enlisted if core.is_observer_only else disowned
            _log_events(finding(core.key, core.voters))

    def stepped(self, event: NodeEvent, effects: Sequence[NodeEffect], now: Now) -> None:
        """Follow raft's requests, from and to this node. Most requests come from brokers; they don't matter
        here."""
        match event:
            case ApiRequest():
                if event.api_key in ASKED_API_KEYS:
                    caller = event.caller.address
                    self._log_finding(self._replicas.asked(event.request, caller, self._core.voters))
            case ResponseReceived(request_id, response):
                _log_events(*self._leader.answered(request_id, response, now.monotonic_ms))
            case RequestFailed(request_id, failure):
                self._leader.failed(request_id, failure)
            case ShutDown():
                self._scope.cancel()  # who leads is no longer this node's concern
                self._is_stopping = True
            case _:
                pass
        for effect in effects:
            if type(effect) is SendRequest:
                self._leader.sent(effect.request_id, effect.peer, now.monotonic_ms)
            elif type(effect) is CancelRequest:
                self._leader.cancelled(effect.request_id)
        if self._is_stopping:
            self._report_stop()

    def _log_finding(self, finding: LogEvent | None) -> None:
        """Log what a request shows, unless there were too many such warnings: a stranger can name any id."""
        if finding is None:
            return
        if count := self._finding_limit.add(trio.current_time()):
            left_out = {"left_out": count - 1} if count > 1 else {}
            _log_events(finding._replace(fields={**finding.fields, **left_out}))

    def _report_stop(self) -> None:
        """Log what the stop waits for, when it begins to wait for that."""
        waits_for = self._core.stop_waits_for
        if waits_for is not None and waits_for is not self._stop_waits_for:
            others = [label(peer) for peer in self._core.other_voters]
            log.info("stop waits", waits_for=waits_for.value, other_voters=others)
        self._stop_waits_for = waits_for

    def unreachable(self, address: Address, reason: str) -> None:
        """Note why a connection was not made, or broke."""
        self._leader.unreachable(address.host, address.port, reason)


def _log_events(*events: LogEvent | None) -> None:
    for each in events:
        if each is not None:
            (log.warning if each.is_warning else log.info)(each.event, **each.fields)
