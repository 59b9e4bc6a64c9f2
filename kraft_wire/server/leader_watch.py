"""Why there is no leader: what became of our requests to the other controllers, and when it is worth telling.

No I/O and no clock: the owner says what was asked, what came of it, and what time it is.
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
from kraft_wire.raft.voters import Peer
from kraft_wire.server.config_endpoints import format_address

FIRST_WAIT_MS: Final = 5_000
LONGEST_WAIT_MS: Final = 60_000
PATIENCE_MS: Final = 1_000
"""A request that is under way for longer is worth a word. A leader keeps a Fetch for half of that."""
PAUSE_MS: Final = 3_000
"""So late only looks a process that stood still, and it can't say what happened meanwhile."""


class News(NamedTuple):
    """What the log should say."""

    is_warning: bool
    event: str
    fields: dict[str, object]


def label(peer: Peer) -> str:
    """``id@host:port`` of a node; an address of controller.quorum.bootstrap.servers has no id."""
    address = format_address(peer.host, peer.port)
    return f"{peer.id}@{address}" if peer.id >= 0 else address


class LeaderWatch:
    """Times are monotonic milliseconds. ``other_cluster_of`` is the cluster id that a node itself has
    named."""

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

    # What becomes of our requests.

    def sent(self, request_id: int, peer: Peer, now_ms: int) -> None:
        """A peer is asked."""
        self._asked[request_id] = peer
        self._silent_since_ms.setdefault(peer, now_ms)

    def cancelled(self, request_id: int) -> None:
        """No answer came in time, or none is wanted any more."""
        self._asked.pop(request_id, None)

    def unreachable(self, host: str, port: int, reason: str) -> None:
        """What the system said of a connection that wasn't made, or broke."""
        self._unreachable[host, port] = reason

    def failed(self, request_id: int, failure: Failure) -> None:
        """A request gets no answer."""
        peer = self._asked.pop(request_id, None)
        if peer is None or failure is Failure.TIMED_OUT:
            return
        self._silent_since_ms.pop(peer, None)
        reason = self._unreachable.get((peer.host, peer.port)) if failure is Failure.LOST else None
        self._found[peer] = reason or failure.value

    def answered(self, request_id: int, response: Message, now_ms: int) -> list[News]:
        """A peer answers."""
        peer = self._asked.pop(request_id, None)
        if peer is None:
            return []
        self._silent_since_ms.pop(peer, None)
        if _is_sign_of_life(response):
            self._of_other_clusters.discard(peer)
            return self._there_is_a_leader(peer.id, now_ms)
        return self._take_in(peer, response)

    def _take_in(self, peer: Peer, response: Message) -> list[News]:
        if getattr(response, "error_code", ErrorCode.NONE) != ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._of_other_clusters.discard(peer)
            said = _what_it_says(response)
            if said is not None:
                self._found[peer] = said
            return []
        theirs = self._other_cluster_of(peer.id)
        self._found[peer] = f"has another cluster id ({theirs or 'it does not say which'})"
        self._found[peer] += f", ours is {self._cluster_id}"
        if peer in self._of_other_clusters or theirs is not None:
            return []  # one that has named its own has been told already
        self._of_other_clusters.add(peer)
        return [
            News(
                True,
                "another controller refuses this one's cluster id: one of the two was formatted for another"
                " cluster",
                {"controller": label(peer), "cluster_id": self._cluster_id},
            )
        ]

    # By the clock.

    def look(self, now_ms: int, leads: int | None, peers: Sequence[Peer]) -> list[News]:
        """At least every second. ``leads`` is our own id while we lead; ``peers`` are whom we may ask."""
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
            "others": others or "nobody is known to ask: see controller.quorum.bootstrap.servers",
        }
        return [News(True, "no leader", fields)]

    def _why(self, peer: Peer, now_ms: int) -> str | None:
        """What is known of a peer; None of a mere address that wasn't asked."""
        since_ms = self._silent_since_ms.get(peer, now_ms)
        if now_ms - since_ms >= PATIENCE_MS:
            return f"hasn't answered for {(now_ms - since_ms) // 1000} s"
        return self._found.get(peer) or ("wasn't asked" if peer.id >= 0 else None)

    def _there_is_a_leader(self, leader_id: int, now_ms: int) -> list[News]:
        has_warned = self._wait_ms > FIRST_WAIT_MS
        after_s = (now_ms - self._leaderless_since_ms) // 1000
        self._leaderless_since_ms = now_ms
        self._wait_ms = FIRST_WAIT_MS
        self._next_warning_ms = now_ms + FIRST_WAIT_MS
        self._silent_since_ms.clear()
        self._found.clear()
        if not has_warned:
            return []
        return [News(False, "there is a leader again", {"leader_id": leader_id, "after_s": after_s})]


def _is_sign_of_life(response: Message) -> bool:
    """Only a leader answers a fetch without an error."""
    partition = _fetched(response)
    return partition is not None and partition.error_code == ErrorCode.NONE


def _fetched(response: Message) -> Fetched | PartitionSnapshot | None:
    if isinstance(response, FetchResponse) and not response.error_code:
        return next((each for topic in response.responses for each in topic.partitions), None)
    if isinstance(response, FetchSnapshotResponse) and not response.error_code:
        return next((each for topic in response.topics for each in topic.partitions), None)
    return None


def _what_it_says(response: Message) -> str | None:
    """What keeps whoever answers so from being our leader, or from electing us; None where it says
    nothing."""
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
        return f"doesn't grant its vote: it says that {vote.leader_id} leads epoch {vote.leader_epoch}"
    return f"doesn't grant its vote in epoch {vote.leader_epoch}"


def _of_leader(error: int, leader_id: int) -> str:
    return f"{_refusal(error)} and " + (
        "knows no leader" if leader_id < 0 else f"says that {leader_id} leads"
    )


def _refusal(error: int) -> str:
    return f"answers {ErrorCode.of(error).name}"
