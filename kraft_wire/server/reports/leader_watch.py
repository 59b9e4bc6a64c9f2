"""Find out why there is no leader, from the requests to the other controllers, and decide when to report it.

No I/O and no clock: the caller reports requests, their outcomes, and the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.begin_quorum_epoch_response import BeginQuorumEpochResponse
from kraft_wire.protocol.messages.end_quorum_epoch_response import EndQuorumEpochResponse
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.fetch_response import PartitionData as Fetched
from kraft_wire.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse, PartitionSnapshot
from kraft_wire.protocol.messages.vote_response import PartitionData as Voted
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft.events import Failure
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.wire.address import format_address

FIRST_WAIT_MS: Final = 5_000
LONGEST_WAIT_MS: Final = 60_000
PATIENCE_MS: Final = 1_000
"""A request in flight for longer is reported. A leader keeps a Fetch for half of that time."""
PAUSE_MS: Final = 3_000
"""A check this late means that this process itself was suspended, and can't know what happened since."""


class LogEvent(NamedTuple):
    """An entry for the log."""

    is_warning: bool
    event: str
    fields: dict[str, object]


def label(peer: Peer) -> str:
    """Return ``id@host:port`` of a node, or ``host:port`` of a bootstrap server, whose id is unknown."""
    address = format_address(peer.host, peer.port)
    return f"{peer.id}@{address}" if peer.id >= 0 else address


class LeaderWatch:
    """A watch on this node's requests to other controllers.

    Times are monotonic milliseconds. ``other_cluster_of`` returns the cluster id that a node has sent, if it
    is another cluster's.
    """

    def __init__(self, cluster_id: str, other_cluster_of: Callable[[int], str | None], now_ms: int) -> None:
        self._cluster_id = cluster_id
        self._other_cluster_of = other_cluster_of
        self._asked: dict[int, Peer] = {}
        self._silent_since_ms: dict[Peer, int] = {}
        self._found: dict[Peer, str] = {}
        self._unreachable: dict[tuple[str, int], str] = {}
        self._of_other_clusters: set[Peer] = set()
        self._leaderless_since_ms = self._looked_ms = now_ms
        self._wait_ms = FIRST_WAIT_MS
        self._next_warning_ms = now_ms + FIRST_WAIT_MS

    # Outcomes of requests.

    def sent(self, request_id: int, peer: Peer, now_ms: int) -> None:
        """Note a request to a peer."""
        self._asked[request_id] = peer
        self._silent_since_ms.setdefault(peer, now_ms)

    def cancelled(self, request_id: int) -> None:
        """Note that a request was cancelled: it timed out, or is no longer needed."""
        self._asked.pop(request_id, None)

    def unreachable(self, host: str, port: int, reason: str) -> None:
        """Note the operating system's reason for which a connection failed or broke."""
        self._unreachable[host, port] = reason

    def failed(self, request_id: int, failure: Failure) -> None:
        """Note that a request failed."""
        peer = self._asked.pop(request_id, None)
        if peer is None or failure is Failure.TIMED_OUT:
            return
        self._silent_since_ms.pop(peer, None)
        reason = self._unreachable.get((peer.host, peer.port)) if failure is Failure.LOST else None
        self._found[peer] = reason or failure.value

    def answered(self, request_id: int, response: Message, now_ms: int) -> list[LogEvent]:
        """Note a response; returns what to log."""
        peer = self._asked.pop(request_id, None)
        if peer is None:
            return []
        self._silent_since_ms.pop(peer, None)
        if _is_sign_of_life(response):
            self._of_other_clusters.discard(peer)
            return self._there_is_a_leader(peer.id, now_ms)
        return self._learn(peer, response)

    def _learn(self, peer: Peer, response: Message) -> list[LogEvent]:
        if getattr(response, "error_code", ErrorCode.NONE) != ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._of_other_clusters.discard(peer)
            claim = _claim_of(response)
            if claim is not None:
                self._found[peer] = claim
            return []
        theirs = self._other_cluster_of(peer.id)
        self._found[peer] = f"has another cluster id ({theirs or 'unknown'})"
        self._found[peer] += f", ours is {self._cluster_id}"
        if peer in self._of_other_clusters or theirs is not None:
            return []  # a node that has sent its own cluster id is already reported
        self._of_other_clusters.add(peer)
        return [
            LogEvent(
                True,
                "cluster id refused by another controller",
                {
                    "controller": label(peer),
                    "cluster_id": self._cluster_id,
                    "advice": "one of the two was formatted for another cluster",
                },
            )
        ]

    # The clock.

    def look(self, now_ms: int, leads: int | None, peers: Sequence[Peer]) -> list[LogEvent]:
        """Return what to log now. Call it at least every second.

        ``leads`` is this node's id while it leads, ``peers`` are the nodes that it may ask.
        """
        self._forget_strangers(peers)
        late_ms = now_ms - self._looked_ms
        self._looked_ms = now_ms
        if leads is not None:
            return self._there_is_a_leader(leads, now_ms)
        if late_ms >= PAUSE_MS:
            self._leaderless_since_ms += late_ms
            self._next_warning_ms += late_ms
            self._silent_since_ms.clear()
        if now_ms < self._next_warning_ms:
            return []
        self._wait_ms = min(2 * self._wait_ms, LONGEST_WAIT_MS)
        self._next_warning_ms = now_ms + self._wait_ms
        others = [f"{label(peer)} {reason}" for peer in peers if (reason := self._why(peer, now_ms))]
        fields: dict[str, object] = {
            "for_s": (now_ms - self._leaderless_since_ms) // 1000,
            "others": others or "none is known: see controller.quorum.bootstrap.servers",
        }
        return [LogEvent(True, "no leader", fields)]

    def _forget_strangers(self, peers: Sequence[Peer]) -> None:
        """Forget the nodes that won't be reported, except those that are being asked. Clients can name any
        number of addresses."""
        kept = {*peers, *self._asked.values()}
        addresses = {(peer.host, peer.port) for peer in kept}
        for notes in (self._silent_since_ms, self._found):
            for peer in notes.keys() - kept:
                del notes[peer]
        for address in self._unreachable.keys() - addresses:
            del self._unreachable[address]
        self._of_other_clusters &= kept

    def _why(self, peer: Peer, now_ms: int) -> str | None:
        """Return what is known of a peer; None for a bootstrap server that wasn't asked."""
        since_ms = self._silent_since_ms.get(peer, now_ms)
        if now_ms - since_ms >= PATIENCE_MS:
            return f"hasn't answered for {(now_ms - since_ms) // 1000} s"
        return self._found.get(peer) or ("wasn't asked" if peer.id >= 0 else None)

    def _there_is_a_leader(self, leader_id: int, now_ms: int) -> list[LogEvent]:
        has_warned = self._wait_ms > FIRST_WAIT_MS
        after_s = (now_ms - self._leaderless_since_ms) // 1000
        self._leaderless_since_ms = now_ms
        self._wait_ms = FIRST_WAIT_MS
        self._next_warning_ms = now_ms + FIRST_WAIT_MS
        self._silent_since_ms.clear()
        self._found.clear()
        if not has_warned:
            return []
        return [LogEvent(False, "leader found", {"leader_id": leader_id, "after_s": after_s})]


def _is_sign_of_life(response: Message) -> bool:
    """Whether a leader sent the response: nobody else answers a fetch without an error."""
    partition = _fetched(response)
    return partition is not None and partition.error_code == ErrorCode.NONE


def _fetched(response: Message) -> Fetched | PartitionSnapshot | None:
    if isinstance(response, FetchResponse) and not response.error_code:
        return next((each for topic in response.responses for each in topic.partitions), None)
    if isinstance(response, FetchSnapshotResponse) and not response.error_code:
        return next((each for topic in response.topics for each in topic.partitions), None)
    return None


def _claim_of(response: Message) -> str | None:
    """Return the reason why the sender isn't our leader, or doesn't elect us; None if it gives none."""
    match response:
        case VoteResponse(error_code=0, topics=[topic]) if topic.partitions:
            return _of_vote(topic.partitions[0])
        case FetchResponse(error_code=0) | FetchSnapshotResponse(error_code=0):
            fetched = _fetched(response)
            return (
                None if fetched is None else _of_leader(fetched.error_code, fetched.current_leader.leader_id)
            )
        case VoteResponse() | FetchResponse() | FetchSnapshotResponse():
            return _refusal(response.error_code)
        case BeginQuorumEpochResponse() | EndQuorumEpochResponse() if response.error_code:
            return _refusal(response.error_code)
    return None


def _of_vote(vote: Voted) -> str:
    if vote.vote_granted:
        return "grants its vote"
    if vote.error_code:
        return _of_leader(vote.error_code, vote.leader_id)
    if vote.leader_id >= 0:
        return f"refuses its vote: says that {vote.leader_id} leads epoch {vote.leader_epoch}"
    return f"refuses its vote in epoch {vote.leader_epoch}"


def _of_leader(error: int, leader_id: int) -> str:
    return f"{_refusal(error)} and " + (
        "knows no leader" if leader_id < 0 else f"says that {leader_id} leads"
    )


def _refusal(error: int) -> str:
    return f"answers {ErrorCode.of(error).name}"
