"""AddRaftVoter: who becomes a voter, and who doesn't (KafkaRaftClientReconfigTest)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.add_raft_voter_request import Listener
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.protocol.messages.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.events import RequestAbandoned, ResponseReceived, ShutDown
from tests.raft.core_quorum import ONE_WAY_MS, PORT, CoreQuorum
from tests.raft.lone_node import LISTENER
from tests.raft.membership.reconfiguration import (
    Asked,
    add,
    add_request,
    all_know,
    remove_request,
    voters_of,
    with_observers,
)


def test_add_voter() -> None:
    quorum = with_observers(3, 1)
    asked = add(quorum, 4)
    assert asked.error is ErrorCode.NONE
    assert voters_of(quorum.leader) == (1, 2, 3, 4)
    quorum.run_until(lambda: all_know(quorum, 1, 2, 3, 4))


def test_an_added_voter_counts_for_commits() -> None:
    quorum = with_observers(1, 2)
    assert add(quorum, 2).error is ErrorCode.NONE
    assert add(quorum, 3).error is ErrorCode.NONE
    quorum.run_until(quorum.agree)
    leader = quorum.leader
    quorum.isolate(leader.id)
    leader.propose()
    end = leader.end_offset
    quorum.run_for(1000)
    assert leader.high_watermark < end


def test_add_voter_is_answered_only_when_it_is_committed() -> None:
    quorum = with_observers(3, 1)
    leader = quorum.leader
    for node in quorum.followers():
        node.disk_is_stuck = True
    asked = Asked(leader, add_request(quorum.nodes[4]))
    quorum.run_for(500)
    assert voters_of(leader) == (1, 2, 3, 4)
    assert not asked.is_answered
    for node in quorum.followers():
        node.free_disk()
    quorum.run_until(lambda: asked.is_answered)
    assert asked.error is ErrorCode.NONE


def test_add_voter_completes_early_with_ack_when_committed_false() -> None:
    quorum = with_observers(3, 1)
    leader = quorum.leader
    for node in quorum.nodes.values():
        node.disk_is_stuck = True
    asked = Asked(leader, add_request(quorum.nodes[4], ack_when_committed=False))
    quorum.run_until(lambda: asked.is_answered)
    assert asked.error is ErrorCode.NONE
    assert leader.high_watermark < leader.end_offset
    again = Asked(leader, remove_request(quorum.nodes[4]))
    assert again.error is ErrorCode.REQUEST_TIMED_OUT, "the first change isn't committed"


def test_a_newcomer_whose_fetch_waits_is_told_at_once_that_it_is_a_voter() -> None:
    """Of two voters both are needed: without it nothing is committed."""
    quorum = with_observers(1, 1)
    quorum.run_for(100)  # its Fetch waits for news
    began_ms = quorum.now.monotonic_ms
    assert add(quorum, 2).error is ErrorCode.NONE
    assert quorum.now.monotonic_ms - began_ms <= 10 * ONE_WAY_MS


@pytest.mark.parametrize("cluster_id", ["", "another"])
def test_add_voter_invalid_cluster_id(cluster_id: str) -> None:
    quorum = with_observers(3, 1)
    asked = Asked(quorum.leader, add_request(quorum.nodes[4], cluster_id=cluster_id))
    assert asked.error is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert f"{cluster_id!r}" in asked.text
    assert voters_of(quorum.leader) == (1, 2, 3)
    assert add(quorum, 4, cluster_id=None).error is ErrorCode.NONE


def test_add_voter_to_not_leader() -> None:
    quorum = with_observers(3, 1)
    follower = quorum.followers()[0]
    assert Asked(follower, add_request(quorum.nodes[4])).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_add_voter_with_missing_default_listener() -> None:
    quorum = with_observers(3, 1)
    request = add_request(quorum.nodes[4])
    request.listeners[0].name = "INTERNAL"
    asked = Asked(quorum.leader, request)
    assert asked.error is ErrorCode.INVALID_REQUEST
    assert (
        asked.text
        == "a voter needs an endpoint on listener CONTROLLER, the request has endpoints on: INTERNAL"
    )


def test_an_answer_that_quotes_a_long_request_can_be_encoded() -> None:
    quorum = with_observers(3, 1)
    asked = Asked(quorum.leader, add_request(quorum.nodes[4], cluster_id="c" * 32_767))
    (answer,) = asked.answers
    assert asked.text.endswith("characters)")
    assert AddRaftVoterResponse.decode(answer.encode(1), 1) == answer


@pytest.mark.parametrize(
    "listener", [Listener(" ", "host", 1), Listener("OTHER", "h" * 256, 1), Listener("OTHER", "host", 0)]
)
def test_a_newcomer_with_endpoints_that_no_controller_has_is_refused(listener: Listener) -> None:
    quorum = with_observers(3, 1)
    request = add_request(quorum.nodes[4])
    request.listeners.append(listener)
    assert Asked(quorum.leader, request).error is ErrorCode.INVALID_REQUEST


def test_there_are_only_so_many_voters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraft_wire.raft.leader.add_voter.MOST_VOTERS", 4)
    quorum = with_observers(3, 2)
    assert add(quorum, 4).error is ErrorCode.NONE
    assert add(quorum, 5).error is ErrorCode.INVALID_REQUEST


def test_add_voter_with_pending_add_voter() -> None:
    quorum = with_observers(3, 2)
    first = Asked(quorum.leader, add_request(quorum.nodes[4]))
    second = Asked(quorum.leader, add_request(quorum.nodes[5]))
    assert second.error is ErrorCode.REQUEST_TIMED_OUT
    quorum.run_until(lambda: first.is_answered)
    assert first.error is ErrorCode.NONE
    assert add(quorum, 5).error is ErrorCode.NONE


def test_add_voter_with_pending_remove_voter() -> None:
    quorum = with_observers(3, 1)
    first = Asked(quorum.leader, remove_request(quorum.followers()[0]))
    assert Asked(quorum.leader, add_request(quorum.nodes[4])).error is ErrorCode.REQUEST_TIMED_OUT
    quorum.run_until(lambda: first.is_answered)
    assert add(quorum, 4).error is ErrorCode.NONE


def test_add_voter_without_fenced_previous_leaders() -> None:
    quorum = CoreQuorum(3, 1).start()
    quorum.run_until(lambda: bool(quorum.leaders))
    assert quorum.leader.running.high_watermark is None
    asked = Asked(quorum.leader, add_request(quorum.nodes[4]))
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT
    assert "has not committed a record of its epoch" in asked.text


def test_add_voter_with_kraft_version_0() -> None:
    quorum = with_observers(3, 1, kraft_version=0)
    asked = Asked(quorum.leader, add_request(quorum.nodes[4]))
    assert asked.error is ErrorCode.UNSUPPORTED_VERSION
    assert "upgrade kraft.version first" in asked.text


@pytest.mark.parametrize("directory_id", [None, Uuid(bytes(range(16)))])
def test_add_voter_with_existing_voter(directory_id: Uuid | None) -> None:
    quorum = with_observers(3, 1)
    voter = quorum.followers()[0]
    fields = {} if directory_id is None else {"voter_directory_id": directory_id}
    assert Asked(quorum.leader, add_request(voter, **fields)).error is ErrorCode.DUPLICATE_VOTER


def test_add_voter_timeout() -> None:
    quorum = with_observers(3, 1)
    leader = quorum.leader
    for node in quorum.nodes.values():
        node.disk_is_stuck = node is not leader
    asked = Asked(leader, add_request(quorum.nodes[4]))
    quorum.run_until(lambda: asked.is_answered)
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT
    assert voters_of(leader) == (1, 2, 3, 4), "the record may still be committed"
    late = Asked(leader, remove_request(quorum.nodes[4]))
    assert late.error is ErrorCode.REQUEST_TIMED_OUT
    assert "is not committed yet" in late.text
    for node in quorum.nodes.values():
        node.free_disk()
    quorum.run_until(lambda: all_know(quorum, 1, 2, 3, 4))


def test_add_voter_to_a_newcomer_that_does_not_answer() -> None:
    quorum = with_observers(3, 1)
    quorum.cut((quorum.leader.id, 4))
    asked = add(quorum, 4)
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT
    assert voters_of(quorum.leader) == (1, 2, 3)


def test_add_voter_to_a_newcomer_that_is_down() -> None:
    quorum = with_observers(3, 1)
    quorum.nodes[4].crash()
    asked = add(quorum, 4)
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT
    assert asked.text.startswith("node 4 did not answer at node-4:9093")


def test_a_newcomer_that_did_not_answer_can_be_asked_at_another_address_at_once() -> None:
    quorum = with_observers(3, 1)
    elsewhere = [Listener(name=LISTENER, host="elsewhere", port=PORT)]
    assert add(quorum, 4, listeners=elsewhere).error is ErrorCode.REQUEST_TIMED_OUT
    assert add(quorum, 4).error is ErrorCode.NONE


def test_a_leader_that_stops_adds_nobody_any_more() -> None:
    quorum = with_observers(3, 1)
    leader = quorum.leader
    for node in quorum.followers():
        node.disk_is_stuck = True
    leader.propose()
    asked = Asked(leader, add_request(quorum.nodes[4]))
    leader.step(ShutDown())
    assert leader.running.is_leader, "it waits for a commit"
    quorum.run_until(lambda: asked.is_answered)
    assert asked.error is ErrorCode.BROKER_NOT_AVAILABLE
    assert not leader.running.voters.get(4)


def test_an_answer_to_the_question_of_an_earlier_change_is_ignored() -> None:
    quorum = with_observers(3, 2)
    leader = quorum.leader
    quorum.cut((leader.id, 4), (leader.id, 5))
    first = Asked(leader, add_request(quorum.nodes[4]))
    quorum.run_until(lambda: first.is_answered)
    (question,) = _questions(leader.effects)
    second = Asked(leader, add_request(quorum.nodes[5]))
    leader.step(ResponseReceived(question.request_id, quorum.nodes[4].versions))
    assert voters_of(leader) == (1, 2, 3)
    assert not second.is_answered


def _questions(effects: Iterable[object]) -> list[SendRequest]:
    return [each for each in effects if isinstance(each, SendRequest) and each.request.API_KEY == 18]


@pytest.mark.parametrize(
    "feature", [None, SupportedFeatureKey("kraft.version", 0, 0), SupportedFeatureKey("kraft.version", 2, 3)]
)
def test_add_voter_invalid_feature_version(feature: SupportedFeatureKey | None) -> None:
    quorum = with_observers(3, 1)
    quorum.nodes[4].versions.supported_features = [] if feature is None else [feature]
    asked = add(quorum, 4)
    assert asked.error is ErrorCode.INVALID_REQUEST
    assert "does not support kraft.version 1" in asked.text
    assert voters_of(quorum.leader) == (1, 2, 3)


def test_a_newcomer_with_levels_that_are_no_range_is_refused() -> None:
    """Java's nodes end when they read such a record."""
    quorum = with_observers(3, 1)
    quorum.nodes[4].versions.supported_features = [SupportedFeatureKey("kraft.version", -5, 1)]
    assert add(quorum, 4).error is ErrorCode.INVALID_REQUEST
    assert voters_of(quorum.leader) == (1, 2, 3)


def test_add_voter_with_api_versions_from_incorrect_node() -> None:
    """The node that listens at the newcomer's address refuses the question."""
    quorum = with_observers(3, 1)
    quorum.nodes[4].versions = ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    asked = add(quorum, 4)
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT
    assert asked.text.endswith("answered ApiVersions with INVALID_REQUEST")
    assert voters_of(quorum.leader) == (1, 2, 3)


def test_add_voter_with_lagging_new_voter() -> None:
    quorum = CoreQuorum(3, 1).start()
    quorum.nodes[4].disk_is_stuck = True
    quorum.elect()
    asked = add(quorum, 4)
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT
    assert "has not caught up with the log" in asked.text


def test_add_voter_of_an_observer_that_caught_up_within_the_hour() -> None:
    quorum = with_observers(3, 1)
    _stop_fetching(quorum, 4)
    quorum.run_for(50 * 60 * 1000)
    assert add(quorum, 4).error is ErrorCode.NONE


def test_add_voter_of_an_observer_that_caught_up_longer_ago() -> None:
    quorum = with_observers(3, 1)
    _stop_fetching(quorum, 4)
    quorum.run_for(61 * 60 * 1000)
    assert add(quorum, 4).error is ErrorCode.REQUEST_TIMED_OUT


def _stop_fetching(quorum: CoreQuorum, observer: int) -> None:
    """Let an observer wait for its disk: it still answers ApiVersions."""
    quorum.nodes[observer].disk_is_stuck = True
    quorum.leader.propose()


def _resign_while_asking(quorum: CoreQuorum) -> Asked:
    """Let the leader resign, because it hears from no majority, while it asks the newcomer for its
    versions."""
    leader = quorum.leader
    quorum.isolate(leader.id)
    asked = Asked(leader, add_request(quorum.nodes[4]))
    quorum.run_until(lambda: leader not in quorum.leaders)
    return asked


def test_add_voter_fails_when_losing_leadership() -> None:
    quorum = with_observers(3, 1, request_timeout_ms=5_000)
    leader = quorum.leader
    asked = _resign_while_asking(quorum)
    assert asked.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert voters_of(leader) == (1, 2, 3)


def test_a_leader_that_resigned_during_a_change_and_leads_again_has_none_pending() -> None:
    quorum = with_observers(3, 1, request_timeout_ms=5_000)
    former = quorum.leader
    _resign_while_asking(quorum)
    quorum.heal()
    quorum.elect()
    while quorum.leader is not former:
        quorum.shut_down(other := quorum.leader)
        quorum.elect()
        other.start()
    quorum.run_until(quorum.agree)
    assert voters_of(former) == (1, 2, 3)
    assert add(quorum, 4).error is ErrorCode.NONE
    quorum.run_until(lambda: all_know(quorum, 1, 2, 3, 4))


def test_a_change_that_was_not_committed_is_undone_by_the_next_leader() -> None:
    quorum = with_observers(3, 1)
    leader = quorum.leader
    quorum.cut(*((leader.id, other) for other in (1, 2, 3) if other != leader.id))
    asked = Asked(leader, add_request(quorum.nodes[4]))
    quorum.run_until(lambda: voters_of(leader) == (1, 2, 3, 4))
    quorum.cut(*((other, leader.id) for other in quorum.nodes if other != leader.id), (leader.id, 4))
    quorum.run_until(lambda: bool(quorum.others_than(leader)))
    quorum.heal()
    quorum.run_until(lambda: leader not in quorum.leaders and all_know(quorum, 1, 2, 3))
    assert asked.error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT)


@pytest.mark.parametrize("fields", [{"voter_directory_id": Uuid.ZERO}, {"voter_id": -1}])
def test_add_voter_with_missing_directory_id(fields: dict[str, object]) -> None:
    quorum = with_observers(3, 1)
    asked = Asked(quorum.leader, add_request(quorum.nodes[4], **fields))
    assert asked.error is ErrorCode.INVALID_REQUEST


def test_a_change_goes_on_when_its_client_is_gone() -> None:
    quorum = with_observers(3, 1)
    asked = Asked(quorum.leader, add_request(quorum.nodes[4]))
    quorum.leader.step(RequestAbandoned(asked.token))
    quorum.run_until(lambda: all_know(quorum, 1, 2, 3, 4))
    assert not asked.is_answered


def test_a_broker_does_not_become_a_voter() -> None:
    """It fetches like a controller, but its own listener serves no Vote."""
    quorum = with_observers(3, 1)
    quorum.nodes[4].versions.api_keys = [ApiVersion(api_key=0)]
    asked = add(quorum, 4)
    assert asked.error is ErrorCode.INVALID_REQUEST
    assert "is no controller: node-4:9093 serves no Vote" in asked.text
    assert voters_of(quorum.leader) == (1, 2, 3)
