"""Log events while there is no leader."""

from __future__ import annotations

import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import fetch_response, vote_response
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.protocol.messages.vote_response import VoteResponse
from kraft_wire.raft.events import Failure
from kraft_wire.raft.membership.voters import Peer
from kraft_wire.server.reports.leader_watch import LeaderWatch, LogEvent

TWO = Peer(2, "two.example", 9093)
THREE = Peer(3, "::1", 9094)
SERVER = Peer(-2, "server.example", 9095)
PEERS = [TWO, THREE, SERVER]
OURS, THEIRS = "our-cluster", "their-cluster"


class Watched:
    """A watch whose clock the test moves, a second at a time as its owner does."""

    def __init__(self, clusters: dict[int, str] | None = None) -> None:
        self.now_ms = 1_000_000
        self.events: list[LogEvent] = []
        self.leads: int | None = None
        self.watch = LeaderWatch(OURS, (clusters or {}).get, self.now_ms)
        self._last_id = 0

    def pass_seconds(self, seconds: int) -> list[LogEvent]:
        """Return the lines that are logged meanwhile."""
        told = len(self.events)
        for _ in range(seconds):
            self.now_ms += 1000
            self.events += self.watch.look(self.now_ms, self.leads, PEERS)
        return self.events[told:]

    def ask(self, peer: Peer) -> int:
        self._last_id += 1
        self.watch.sent(self._last_id, peer, self.now_ms)
        return self._last_id

    def answer(self, peer: Peer, response: Message) -> list[LogEvent]:
        return self.watch.answered(self.ask(peer), response, self.now_ms)

    def others(self, seconds: int = 5) -> object:
        """Return the other voters' states in the next warning."""
        (event,) = self.pass_seconds(seconds)
        assert (event.is_warning, event.event) == (True, "no leader")
        return event.fields["others"]


def vote(error: int = 0, granted: bool = False, leader_id: int = -1) -> VoteResponse:
    partition = vote_response.PartitionData(
        error_code=error, leader_id=leader_id, leader_epoch=7, vote_granted=granted
    )
    return VoteResponse(topics=[vote_response.TopicData(topic_name="t", partitions=[partition])])


def fetched(error: int = 0, leader_id: int = -1) -> FetchResponse:
    partition = fetch_response.PartitionData(
        error_code=error,
        current_leader=fetch_response.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=7),
    )
    return FetchResponse(responses=[fetch_response.FetchableTopicResponse(partitions=[partition])])


def test_it_warns_after_five_seconds_and_then_at_doubled_intervals_up_to_a_minute() -> None:
    node = Watched()
    warnings = node.pass_seconds(240)
    assert [event.fields["for_s"] for event in warnings] == [5, 15, 35, 75, 135, 195]


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (vote(), "refuses its vote in epoch 7"),
        (vote(leader_id=3), "refuses its vote: says that 3 leads epoch 7"),
        (vote(granted=True), "grants its vote"),
        (vote(ErrorCode.INVALID_VOTER_KEY), "answers INVALID_VOTER_KEY and knows no leader"),
        (
            fetched(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=3),
            "answers NOT_LEADER_OR_FOLLOWER and says that 3 leads",
        ),
        (VoteResponse(error_code=ErrorCode.INVALID_REQUEST), "answers INVALID_REQUEST"),
    ],
)
def test_it_says_what_another_controller_answers(response: Message, reason: str) -> None:
    node = Watched()
    node.answer(TWO, response)
    assert node.others() == [f"2@two.example:9093 {reason}", "3@[::1]:9094 wasn't asked"]


def test_it_says_why_a_connection_was_not_made() -> None:
    node = Watched()
    for peer in (TWO, SERVER):
        node.watch.unreachable(peer.host, peer.port, "Connection refused")
        node.watch.failed(node.ask(peer), Failure.LOST)
    node.watch.failed(node.ask(THREE), Failure.UNSUPPORTED)
    assert node.others() == [
        "2@two.example:9093 Connection refused",
        f"3@[::1]:9094 {Failure.UNSUPPORTED.value}",
        "server.example:9095 Connection refused",
    ]


def test_it_says_for_how_long_a_request_went_unanswered_whatever_was_cancelled_and_asked_again() -> None:
    node = Watched()
    node.pass_seconds(1)
    node.watch.cancelled(node.ask(TWO))
    node.pass_seconds(2)
    node.watch.failed(node.ask(TWO), Failure.TIMED_OUT)
    node.ask(TWO)
    assert node.others(2) == ["2@two.example:9093 hasn't answered for 4 s", "3@[::1]:9094 wasn't asked"]


def test_a_leader_that_answers_a_fetch_ends_it_and_is_told_if_a_warning_was() -> None:
    node = Watched()
    node.pass_seconds(4)
    assert node.answer(TWO, fetched()) == []
    assert node.pass_seconds(4) == []
    node.pass_seconds(1)
    assert node.answer(TWO, fetched()) == [LogEvent(False, "leader found", {"leader_id": 2, "after_s": 5})]
    assert node.answer(TWO, fetched()) == []
    assert node.others() == ["2@two.example:9093 wasn't asked", "3@[::1]:9094 wasn't asked"]


def test_a_node_that_leads_has_a_leader() -> None:
    node = Watched()
    node.leads = 1
    assert node.pass_seconds(100) == []
    node.leads = None
    node.others()
    node.leads = 1
    assert [event.event for event in node.pass_seconds(10)] == ["leader found"]


def test_a_process_that_stood_still_does_not_count_that_time() -> None:
    node = Watched()
    node.pass_seconds(2)
    node.ask(TWO)
    node.now_ms += 3_600_000
    assert node.pass_seconds(2) == []
    node.now_ms += 3_600_000
    assert node.others(3) == ["2@two.example:9093 wasn't asked", "3@[::1]:9094 wasn't asked"]


def test_another_cluster_s_controller_is_told_once_and_again_after_a_change() -> None:
    node = Watched({3: THEIRS})
    refused = VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    (event,) = node.answer(TWO, refused)
    assert event.is_warning
    assert event.fields == {
        "controller": "2@two.example:9093",
        "cluster_id": OURS,
        "advice": "one of the two was formatted for another cluster",
    }
    assert node.answer(TWO, FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)) == []
    assert node.answer(THREE, refused) == []
    assert node.others() == [
        f"2@two.example:9093 has another cluster id (unknown), ours is {OURS}",
        f"3@[::1]:9094 has another cluster id ({THEIRS}), ours is {OURS}",
    ]
    assert node.answer(TWO, vote()) == []
    assert node.answer(TWO, refused) == [event]


def test_answers_to_requests_of_somebody_else_say_nothing() -> None:
    node = Watched()
    assert node.watch.answered(99, fetched(), node.now_ms) == []
    node.watch.failed(99, Failure.LOST)
    assert node.others() == ["2@two.example:9093 wasn't asked", "3@[::1]:9094 wasn't asked"]


def test_a_node_that_knows_nobody_says_so() -> None:
    watch = LeaderWatch(OURS, lambda id: None, 0)
    told = [event for now_ms in range(1000, 6000, 1000) for event in watch.look(now_ms, None, [])]
    assert [event.fields["others"] for event in told] == [
        "none is known: see controller.quorum.bootstrap.servers"
    ]


def test_it_forgets_the_nodes_that_clients_named() -> None:
    node = Watched()
    node.pass_seconds(1)
    before = _size(node.watch)
    refused = VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    for number in range(100):
        refusing, down, silent = (Peer(number, f"{number}.example", port) for port in (1, 2, 3))
        node.answer(refusing, refused)
        node.watch.unreachable(down.host, down.port, "Connection refused")
        node.watch.failed(node.ask(down), Failure.LOST)
        node.watch.cancelled(node.ask(silent))
    node.pass_seconds(1)
    assert _size(node.watch) == before


def _size(watch: LeaderWatch) -> int:
    """Return how many entries all collections of a watch have."""
    return sum(len(each) for each in vars(watch).values() if isinstance(each, dict | set))
