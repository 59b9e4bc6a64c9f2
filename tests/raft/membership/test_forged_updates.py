"""UpdateRaftVoter in a voter's name, from somebody else: it doesn't take the place of a voter that is up."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages import begin_quorum_epoch_response
from kraft_wire.protocol.messages.begin_quorum_epoch_request import BeginQuorumEpochRequest
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.update_raft_voter_request import Listener
from kraft_wire.protocol.own_messages.voter_entry_request import VoterEntryRequest
from kraft_wire.protocol.own_messages.voter_entry_response import Endpoint, VoterEntryResponse
from kraft_wire.raft.effects import Effect, SendRequest, UpdateRefused, VoterEntryRefused
from kraft_wire.raft.events import RequestAbandoned, ShutDown, UpgradeKraftVersion
from kraft_wire.raft.follower.membership_requests import MANY_VAIN_UPDATES
from kraft_wire.raft.leader.voter_questions import MOST_QUESTIONS, MOST_WAITING
from kraft_wire.raft.leader.wanted_entry import LEAST_SILENCE_MS, SILENT_TIMEOUTS
from kraft_wire.raft.membership.change import EntryRefusal
from kraft_wire.raft.membership.voters import KRAFT_VERSION_RANGE, VersionRange, endpoints_of
from kraft_wire.raft.peers import is_questioned
from kraft_wire.wire.address import Address
from tests.raft.core_quorum import ONE_WAY_MS, PORT, CoreQuorum, QuorumNode
from tests.raft.election.claimed_leaders import TOPIC, announcement, fetch_answer
from tests.raft.lone_node import LISTENER, OTHER_DIRECTORY
from tests.raft.membership.reconfiguration import (
    Asked,
    endpoints,
    known_keys,
    remove,
    update_request,
    with_observers,
)

EVIL, OTHER_EVIL = "evil", "other-evil"
ANSWERED_MS = 2 * ONE_WAY_MS
RETRY_MS = 2000


def settled(**settings: int) -> CoreQuorum:
    """Return a quorum whose leader has led for a while."""
    quorum = with_observers(3, 0, **settings)
    quorum.run_for(10_000)
    return quorum


def impostor(voter: QuorumNode, epoch: int) -> Callable[[Message], Message]:
    """Return what answers in a voter's name: it leads this epoch, and is where it is meant to be."""

    def answer(request: Message) -> Message:
        if isinstance(request, FetchRequest):
            asked = request.topics[0].partitions[0].current_leader_epoch
            error = ErrorCode.NONE if asked == epoch else ErrorCode.FENCED_LEADER_EPOCH
            return fetch_answer(voter.id, epoch, error, high_watermark=1 << 40, host=EVIL)
        if isinstance(request, VoterEntryRequest):
            return VoterEntryResponse(0, None, [Endpoint(LISTENER, EVIL, PORT)], *KRAFT_VERSION_RANGE)
        assert isinstance(request, BeginQuorumEpochRequest)
        partition = begin_quorum_epoch_response.PartitionData(
            error_code=ErrorCode.FENCED_LEADER_EPOCH, leader_id=voter.id, leader_epoch=epoch
        )
        node = begin_quorum_epoch_response.NodeEndpoint(voter.id, EVIL, PORT)
        topic = begin_quorum_epoch_response.TopicData(TOPIC, [partition])
        return begin_quorum_epoch_response.BeginQuorumEpochResponse(topics=[topic], node_endpoints=[node])

    return answer


def with_impostor(**settings: int) -> tuple[CoreQuorum, QuorumNode]:
    """Return a quorum, and a voter in whose name somebody else answers at two hosts."""
    quorum = settled(**settings)
    voter = quorum.followers()[0]
    answers = impostor(voter, quorum.leader.running.epoch + 1)
    quorum.impostors = {EVIL: answers, OTHER_EVIL: answers}
    return quorum, voter


def ask(quorum: CoreQuorum, voter: QuorumNode, host: str, *more: Listener) -> Asked:
    """Ask the leader to move a voter to a host."""
    listeners = [Listener(name=LISTENER, host=host, port=PORT), *more]
    return Asked(quorum.leader, update_request(voter, quorum.leader.running.epoch, listeners=listeners))


def forge(quorum: CoreQuorum, voter: QuorumNode, host: str = EVIL, *more: Listener) -> ErrorCode:
    """Ask, and run until that is answered."""
    asked = ask(quorum, voter, host, *more)
    quorum.run_until(lambda: asked.is_answered)
    return asked.error


def forge_until_believed(quorum: CoreQuorum, voter: QuorumNode, host: str = EVIL) -> int:
    """Ask again and again. Returns after how many milliseconds the leader believes it."""
    started_ms = quorum.now.monotonic_ms
    while (error := forge(quorum, voter, host)) is not ErrorCode.NONE:
        assert error is ErrorCode.REQUEST_TIMED_OUT
        quorum.run_for(RETRY_MS)
    return quorum.now.monotonic_ms - started_ms


def host(quorum: CoreQuorum, voter: QuorumNode) -> str:
    (endpoint, *_) = (each for each in endpoints(quorum.leader, voter.id) if each.listener == LISTENER)
    return endpoint.host


def is_at(quorum: CoreQuorum, voter: QuorumNode, at: str) -> bool:
    """Whether the leader knows a voter at a host."""
    return host(quorum, voter) == at


def restart_at(voter: QuorumNode, at: str) -> None:
    """Restart a voter on a host."""
    if voter.is_up:
        voter.crash()
    voter.config = msgspec.structs.replace(voter.config, endpoints=endpoints_of([(LISTENER, at, PORT)]))
    voter.start()


def questions(effects: list[Effect]) -> list[str]:
    """Return the hosts where voters were asked whether they are there."""
    sent = (effect for effect in effects if isinstance(effect, SendRequest))
    return [each.peer.host for each in sent if is_questioned(each.peer)]


# A voter that is up.


def test_a_leader_does_not_go_on_asking_a_voter_that_has_moved() -> None:
    quorum = settled()
    voter = quorum.followers()[0]
    restart_at(voter, "new-host")
    quorum.run_until(lambda: is_at(quorum, voter, "new-host"), within_ms=60_000)
    quorum.run_for(1_000)
    begun = len(quorum.leader.effects)
    quorum.run_for(10_000)
    asked = [e for e in quorum.leader.effects[begun:] if isinstance(e, SendRequest) and e.peer.id == voter.id]
    assert not [each for each in asked if isinstance(each.request, BeginQuorumEpochRequest)]


def test_a_voter_that_is_down_whenever_somebody_has_it_asked_keeps_its_place() -> None:
    """Somebody else chooses when that is. So the leader asks by itself, too."""
    quorum, voter = with_impostor()
    for _ in range(6):
        voter.crash()
        assert forge(quorum, voter) is ErrorCode.REQUEST_TIMED_OUT
        voter.start()
        quorum.run_for(4_000)
    assert is_at(quorum, voter, f"node-{voter.id}")


def test_a_leader_asks_a_voter_by_itself_only_as_long_as_it_is_silent() -> None:
    quorum, voter = with_impostor()
    voter.crash()
    assert forge(quorum, voter) is ErrorCode.REQUEST_TIMED_OUT
    voter.start()
    quorum.run_for(1_000)
    begun = len(quorum.leader.effects)
    quorum.run_for(10_000)
    asked = [e for e in quorum.leader.effects[begun:] if isinstance(e, SendRequest) and e.peer.id == voter.id]
    assert not [each for each in asked if isinstance(each.request, BeginQuorumEpochRequest)]


def test_a_voter_that_answers_where_it_is_is_not_moved() -> None:
    quorum, voter = with_impostor()
    leader, begun, end_offset = quorum.leader, len(quorum.leader.effects), quorum.leader.end_offset
    for _ in range(20):
        assert forge(quorum, voter) is ErrorCode.REQUEST_TIMED_OUT
    assert host(quorum, voter) == f"node-{voter.id}"
    assert leader.end_offset == end_offset
    refused = [effect for effect in leader.effects[begun:] if isinstance(effect, VoterEntryRefused)]
    present, wanted = Address(f"node-{voter.id}", PORT), Address(EVIL, PORT)
    key = voter.config.replica_key
    assert refused == [VoterEntryRefused(key, present, wanted, EntryRefusal.OTHER_ENTRY)], "once a second"


def test_many_requests_at_once_end_no_leader() -> None:
    """The one at the forged address says that the voter leads a later epoch, and all are told so."""
    quorum, voter = with_impostor()
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    for number in range(300):
        ask(quorum, voter, (EVIL, OTHER_EVIL, "nowhere")[number % 3])
        for node in quorum.nodes.values():
            Asked(node, announcement(voter.id, epoch + 1, host=EVIL))
        quorum.run_for(number % 3)
    quorum.run_for(10_000)
    assert (quorum.leader, quorum.leader.running.epoch) == (leader, epoch)
    assert host(quorum, voter) == f"node-{voter.id}"


def test_the_answer_to_a_question_changes_nothing_else() -> None:
    quorum, voter = with_impostor()
    leader, epoch = quorum.leader, quorum.leader.running.epoch
    asked = ask(quorum, voter, EVIL)
    assert questions(leader.effects) == [EVIL, f"node-{voter.id}"]
    quorum.run_for(ANSWERED_MS)
    assert asked.is_answered
    assert (quorum.leader, leader.running.epoch) == (leader, epoch)


def test_an_address_where_the_voter_does_not_answer_is_refused() -> None:
    quorum = settled()
    leader, voter = quorum.leader, quorum.followers()[0]
    voter.crash()
    begun = len(leader.effects)
    assert forge(quorum, voter, "nowhere") is ErrorCode.REQUEST_TIMED_OUT
    refused = [effect for effect in leader.effects[begun:] if isinstance(effect, VoterEntryRefused)]
    present, wanted = Address(f"node-{voter.id}", PORT), Address("nowhere", PORT)
    assert refused == [VoterEntryRefused(voter.config.replica_key, present, wanted, EntryRefusal.NOT_THERE)]


def test_another_listener_at_the_present_address_is_no_excuse() -> None:
    quorum, voter = with_impostor()
    decoy = Listener(name="INTERNAL", host=f"node-{voter.id}", port=PORT)
    assert forge(quorum, voter, EVIL, decoy) is ErrorCode.REQUEST_TIMED_OUT


def test_nobody_adds_a_listener_to_a_voter() -> None:
    """Nodes whose own listener has that name would ask for the voter there."""
    quorum = settled()
    voter = quorum.followers()[0]
    before = endpoints(quorum.leader, voter.id)
    more = Listener(name="INTERNAL", host=EVIL, port=PORT)
    assert forge(quorum, voter, f"node-{voter.id}", more) is ErrorCode.REQUEST_TIMED_OUT
    assert endpoints(quorum.leader, voter.id) == before


def test_other_listeners_of_a_voter_that_can_not_be_asked_for_them_are_believed() -> None:
    """Those of a Java controller change, too."""
    quorum = settled()
    voter = quorum.followers()[0]
    quorum.unserved[voter.id] = {VoterEntryRequest}
    more = Listener(name="INTERNAL", host="inside", port=PORT)
    assert forge(quorum, voter, f"node-{voter.id}", more) is ErrorCode.NONE
    assert {each.host for each in endpoints(quorum.leader, voter.id)} == {f"node-{voter.id}", "inside"}


def test_an_entry_that_is_as_it_was_needs_no_question() -> None:
    quorum = settled()
    voter = quorum.followers()[0]
    assert ask(quorum, voter, f"node-{voter.id}").error is ErrorCode.NONE
    assert not questions(quorum.leader.effects)


# A voter that isn't there.


@pytest.mark.parametrize("fetch_timeout_ms", [1500, 2000, 3000])
def test_a_voter_that_moves_gets_its_new_address_after_a_while(fetch_timeout_ms: int) -> None:
    """A restart doesn't take so long: meanwhile nobody else gets its place."""
    quorum = settled(fetch_timeout_ms=fetch_timeout_ms)
    leader, voter = quorum.leader, quorum.followers()[0]
    silent_ms = max(SILENT_TIMEOUTS * leader.config.fetch_timeout_ms, LEAST_SILENCE_MS)
    for number in range(3):
        moved_ms = quorum.now.monotonic_ms
        restart_at(voter, f"host-{number}")
        quorum.run_until(partial(is_at, quorum, voter, f"host-{number}"))
        assert quorum.now.monotonic_ms - moved_ms >= silent_ms
        quorum.run_until(quorum.agree)


def test_a_voter_that_restarts_keeps_its_place() -> None:
    quorum, voter = with_impostor()
    voter.crash()
    for _ in range(3):
        assert forge(quorum, voter) is ErrorCode.REQUEST_TIMED_OUT
        quorum.run_for(RETRY_MS)
    voter.start()
    for _ in range(10):
        assert forge(quorum, voter) is ErrorCode.REQUEST_TIMED_OUT
        quorum.run_for(RETRY_MS)


def test_a_voter_that_restarts_now_and_then_is_not_silent_all_the_time() -> None:
    """Nobody has asked it while it was up."""
    quorum, voter = with_impostor()
    for _ in range(5):
        voter.crash()
        assert forge(quorum, voter) is ErrorCode.REQUEST_TIMED_OUT
        voter.start()
        quorum.run_for(SILENT_TIMEOUTS * quorum.leader.config.fetch_timeout_ms)


def test_a_voter_that_is_down_for_long_gets_its_place_back_from_somebody_who_stops() -> None:
    """Somebody has taken it, and answers in the voter's name."""
    quorum = settled()
    leader, voter = quorum.leader, quorum.followers()[0]
    voter.crash()
    quorum.impostors = {EVIL: impostor(voter, leader.running.epoch)}
    assert forge_until_believed(quorum, voter) >= SILENT_TIMEOUTS * leader.config.fetch_timeout_ms
    voter.start()
    quorum.run_for(20_000)
    assert host(quorum, voter) == EVIL, "it is taken for the voter"
    quorum.impostors = {}
    quorum.run_until(lambda: host(quorum, voter) == f"node-{voter.id}")
    quorum.run_until(quorum.agree)


def test_nobody_returns_a_voter_to_the_address_that_it_has_left() -> None:
    """Somebody else may be there now."""
    quorum = settled()
    leader, voter = quorum.leader, quorum.followers()[0]
    restart_at(voter, "new-host")
    quorum.run_until(lambda: host(quorum, voter) == "new-host")
    quorum.run_until(quorum.agree)
    quorum.impostors = {f"node-{voter.id}": impostor(voter, leader.running.epoch + 1)}
    for _ in range(20):
        assert forge(quorum, voter, f"node-{voter.id}") is ErrorCode.REQUEST_TIMED_OUT
        quorum.run_for(RETRY_MS)
    assert quorum.leader is leader


def test_a_voter_gets_no_new_address_while_another_one_is_named_too() -> None:
    """The one who asks more often would get its place."""
    quorum, voter = with_impostor()
    restart_at(voter, "new-host")
    for _ in range(3 * SILENT_TIMEOUTS):
        assert forge(quorum, voter) is ErrorCode.REQUEST_TIMED_OUT
        quorum.run_for(quorum.leader.config.fetch_timeout_ms)
    assert host(quorum, voter) == f"node-{voter.id}"
    quorum.run_until(lambda: host(quorum, voter) == "new-host", within_ms=5_000)


def test_a_forged_entry_does_not_ride_on_a_voter_that_moves() -> None:
    """Its own address is right, another listener isn't."""
    quorum = settled()
    voter = quorum.followers()[0]
    restart_at(voter, "new-host")
    more = Listener(name="INTERNAL", host=EVIL, port=PORT)
    forge(quorum, voter, "new-host", more)
    quorum.run_for(LEAST_SILENCE_MS - 20)
    while not is_at(quorum, voter, "new-host"):
        forge(quorum, voter, "new-host", more)
        quorum.run_for(1)
    assert {each.host for each in endpoints(quorum.leader, voter.id)} == {"new-host"}


def test_a_voter_whose_old_host_drops_packets_is_not_kept_waiting() -> None:
    """A Java voter sends one request at a time: without an answer it wouldn't fetch, and leave its leader."""
    quorum = settled()
    leader, voter = quorum.leader, quorum.followers()[0]
    quorum.unserved[voter.id] = {VoterEntryRequest}
    quorum.black_holes = {f"node-{voter.id}"}
    restart_at(voter, "new-host")
    asked = ask(quorum, voter, "new-host")
    quorum.run_until(lambda: asked.is_answered, within_ms=leader.config.fetch_timeout_ms // 4)
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT
    later = ask(quorum, voter, "new-host")
    assert later.error is ErrorCode.REQUEST_TIMED_OUT, "the voter is still being asked"
    quorum.run_until(lambda: is_at(quorum, voter, "new-host"))
    assert quorum.leader is leader


def test_a_voter_that_asks_in_vain_says_so() -> None:
    quorum, voter = with_impostor()
    restart_at(voter, "new-host")
    quorum.impostors[f"node-{voter.id}"] = quorum.impostors[EVIL]
    quorum.run_until(lambda: any(isinstance(effect, UpdateRefused) for effect in voter.effects), 60_000)
    refused = [effect for effect in voter.effects if isinstance(effect, UpdateRefused)]
    assert refused == [UpdateRefused(quorum.leader.id, ErrorCode.REQUEST_TIMED_OUT)]
    assert quorum.now.monotonic_ms > MANY_VAIN_UPDATES * quorum.leader.config.fetch_timeout_ms


def test_two_voters_swap_their_hosts() -> None:
    quorum = settled()
    one, other = quorum.followers()
    one.crash()
    other.crash()
    for voter, at in ((one, other.id), (other, one.id)):
        restart_at(voter, f"node-{at}")
    quorum.run_until(
        lambda: (
            bool(quorum.leaders)
            and host(quorum, one) == f"node-{other.id}"
            and host(quorum, other) == f"node-{one.id}"
        ),
        within_ms=40_000,
    )


# Requests that wait.


def test_requests_for_the_same_entry_share_a_question() -> None:
    quorum, voter = with_impostor()
    asked = [ask(quorum, voter, EVIL) for _ in range(MOST_WAITING + 1)]
    assert [each.is_answered for each in asked] == [False] * MOST_WAITING + [True]
    assert asked[-1].error is ErrorCode.REQUEST_TIMED_OUT
    assert len(questions(quorum.leader.effects)) == 2
    quorum.run_for(ANSWERED_MS)
    assert {each.error for each in asked[:-1]} == {ErrorCode.REQUEST_TIMED_OUT}


def test_a_few_questions_are_open_at_once() -> None:
    quorum, voter = with_impostor()
    asked = [ask(quorum, voter, f"evil-{number}") for number in range(MOST_QUESTIONS + 1)]
    assert [each.is_answered for each in asked] == [False] * MOST_QUESTIONS + [True]
    assert asked[-1].error is ErrorCode.REQUEST_TIMED_OUT
    other = ask(quorum, quorum.followers()[1], EVIL)
    assert not other.is_answered, "another voter has its own"


def test_the_leader_gives_no_answer_to_one_that_is_gone() -> None:
    quorum, voter = with_impostor()
    asked = ask(quorum, voter, EVIL)
    quorum.leader.step(RequestAbandoned(asked.token))
    quorum.run_for(5000)
    assert not asked.is_answered


def test_a_leader_that_is_replaced_answers_what_waits() -> None:
    quorum, voter = with_impostor()
    leader = quorum.leader
    quorum.isolate(leader.id)
    quorum.run_for(3 * leader.config.fetch_timeout_ms // 2 - 100)
    there = [Listener(name=LISTENER, host=EVIL, port=PORT)]
    asked = Asked(leader, update_request(voter, leader.running.epoch, listeners=there))
    quorum.run_until(lambda: not leader.running.is_leader)
    assert asked.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_that_stops_changes_nothing_more() -> None:
    quorum = settled()
    leader, voter = quorum.leader, quorum.followers()[0]
    restart_at(voter, "new-host")
    quorum.run_until(lambda: bool(leader.running._quorum.voter_questions))
    quorum.run_for(SILENT_TIMEOUTS * leader.config.fetch_timeout_ms - 1)
    quorum.run_until(lambda: bool(leader.running._quorum.voter_questions))
    for node in quorum.followers():
        node.disk_is_stuck = True
    leader.propose()
    leader.step(ShutDown())
    assert leader.running.is_leader, "it waits for a commit"
    end_offset = leader.end_offset
    quorum.run_for(ANSWERED_MS)
    assert not leader.running._quorum.voter_questions
    assert leader.end_offset == end_offset


def test_a_voter_that_is_removed_meanwhile_is_no_voter() -> None:
    quorum, voter = with_impostor()
    quorum.cut((quorum.leader.id, voter.id))
    asked = ask(quorum, voter, EVIL)
    remove(quorum, voter.id)
    assert asked.error is ErrorCode.VOTER_NOT_FOUND


# kraft.version 0.


@pytest.mark.parametrize("answers", [False, True])
def test_a_static_voter_is_believed_once_it_has_answered_to_its_directory_id(answers: bool) -> None:
    """A wrong one would be in the log after an upgrade of kraft.version: then no such voter would exist."""
    quorum = settled(kraft_version=0)
    leader, voter = quorum.leader, quorum.followers()[0]
    assert known_keys(leader)[voter.id] == voter.config.replica_key
    if not answers:
        quorum.isolate(voter.id)
    forged = update_request(voter, leader.running.epoch, voter_directory_id=OTHER_DIRECTORY)
    asked = Asked(leader, forged)
    quorum.run_until(lambda: asked.is_answered)
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT
    assert known_keys(leader)[voter.id] == voter.config.replica_key


def test_a_static_voter_that_somebody_else_plays_is_not_believed() -> None:
    quorum, voter = with_impostor(kraft_version=0)
    there = [Listener(name=LISTENER, host=EVIL, port=PORT)]
    forged = update_request(
        voter, quorum.leader.running.epoch, voter_directory_id=OTHER_DIRECTORY, listeners=there
    )
    asked = Asked(quorum.leader, forged)
    quorum.run_until(lambda: asked.is_answered)
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT
    assert known_keys(quorum.leader)[voter.id] == voter.config.replica_key
    assert forge(quorum, voter) is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_static_voter_keeps_its_address_also_right_after_an_election(is_ours: bool) -> None:
    """The new leader doesn't know its directory id yet. Whoever asks first has it from DescribeQuorum."""
    quorum = CoreQuorum(3, kraft_version=0).start()
    leader = quorum.elect()
    voter = quorum.followers()[0]
    if not is_ours:
        quorum.unserved[voter.id] = {VoterEntryRequest}
    assert not known_keys(leader)[voter.id].directory_id
    quorum.impostors = {EVIL: impostor(voter, leader.running.epoch)}
    quorum.run_until(lambda: leader.running.high_watermark == leader.end_offset)
    expected = ErrorCode.REQUEST_TIMED_OUT if is_ours else ErrorCode.NONE
    assert forge(quorum, voter) is expected
    quorum.run_for(10_000)
    leader.step(UpgradeKraftVersion(1))
    quorum.run_until(quorum.agree)
    assert host(quorum, voter) == f"node-{voter.id}"
    assert known_keys(leader)[voter.id] == voter.config.replica_key


def test_nobody_says_that_a_static_voter_can_not_be_upgraded() -> None:
    quorum = settled(kraft_version=0)
    leader, voter = quorum.leader, quorum.followers()[0]
    asked = Asked(leader, update_request(voter, leader.running.epoch, versions=VersionRange(0, 0)))
    quorum.run_until(lambda: asked.is_answered)
    assert asked.error is ErrorCode.REQUEST_TIMED_OUT
    leader.step(UpgradeKraftVersion(1))
    assert leader.running.kraft_version == 1


def test_a_static_voter_with_another_disk_is_believed() -> None:
    quorum = settled(kraft_version=0)
    leader, voter = quorum.leader, quorum.followers()[0]
    voter.crash()
    voter.config = msgspec.structs.replace(voter.config, directory_id=OTHER_DIRECTORY)
    voter.start()
    quorum.run_until(lambda: known_keys(leader)[voter.id].directory_id == OTHER_DIRECTORY)
