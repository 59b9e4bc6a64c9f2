"""What comes of a change of the voters, from the leader's answers and looks at the quorum."""

from __future__ import annotations

import pytest

from kraft_wire.cli.quorum import NoAnswer, Refused, Uncertain
from kraft_wire.cli.quorum.changes.attempts import Attempts, CommitWatch, Step
from kraft_wire.client.quorum_description import QuorumDescription, ReplicaDescription
from kraft_wire.client.voter_changes import ChangeAnswer
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.uuid import Uuid

DEADLINE_S = 10.0
LATE_S = DEADLINE_S + 1
NONE = ChangeAnswer(ErrorCode.NONE, "")
LATE = ChangeAnswer(ErrorCode.REQUEST_TIMED_OUT, "the change was not committed in time")
DEPOSED = ChangeAnswer(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node does not lead the quorum any more")
STOPPING = ChangeAnswer(ErrorCode.BROKER_NOT_AVAILABLE, "this node is shutting down")
DUPLICATE = ChangeAnswer(ErrorCode.DUPLICATE_VOTER, "node 4 is one of the voters already")
NOT_FOUND = ChangeAnswer(ErrorCode.VOTER_NOT_FOUND, "3 is not one of the voters")
LOST = None


def quorum(end: int, committed: int, epoch: int = 1) -> QuorumDescription:
    leader = ReplicaDescription(1, Uuid.ZERO, end, 0, 0)
    return QuorumDescription(
        ErrorCode.NONE, leader_id=1, leader_epoch=epoch, high_watermark=committed, voters=(leader,)
    )


IDLE = quorum(100, 100)
APPENDED = quorum(101, 100)
COMMITTED = quorum(101, 101)
UNKNOWN_HIGH_WATERMARK = quorum(101, -1, epoch=2)


def after(*answers: ChangeAnswer | None) -> Attempts:
    """Return attempts after these answers; the change was not seen before the first and between them."""
    attempts = Attempts(DEADLINE_S)
    for answer in answers:
        assert attempts.seen(IDLE, False, 0) == Step.SEND
        attempts.sent(answer)
    return attempts


def test_a_change_that_is_there_already_is_not_sent_and_its_commit_is_awaited() -> None:
    attempts = Attempts(DEADLINE_S)
    assert attempts.seen(APPENDED, True, 0) == Step.LOOK
    assert attempts.seen(COMMITTED, True, 0) == Step.DONE
    assert not attempts.is_sent


def test_a_change_that_is_there_already_and_never_committed_is_uncertain() -> None:
    attempts = Attempts(DEADLINE_S)
    with pytest.raises(Uncertain, match="the leader has it in its log, and hasn't committed it in time"):
        attempts.seen(APPENDED, True, LATE_S)


@pytest.mark.parametrize("refusal", [DUPLICATE, NOT_FOUND])
def test_the_first_refusal_is_final(refusal: ChangeAnswer) -> None:
    attempts = after()
    with pytest.raises(Refused, match=f"the leader refuses: {refusal.error.name}: {refusal.message}"):
        attempts.sent(refusal)


@pytest.mark.parametrize("first", [LOST, DEPOSED, LATE])
def test_a_change_that_the_next_leader_commits_is_not_sent_again(first: ChangeAnswer | None) -> None:
    attempts = after(first)
    assert attempts.seen(UNKNOWN_HIGH_WATERMARK, True, 0) == Step.LOOK
    assert attempts.seen(quorum(102, 102, epoch=2), True, 0) == Step.DONE


@pytest.mark.parametrize("refusal", [DUPLICATE, NOT_FOUND])
@pytest.mark.parametrize("first", [LOST, DEPOSED, LATE])
def test_a_later_refusal_because_the_change_is_made_already_is_none(
    first: ChangeAnswer | None, refusal: ChangeAnswer
) -> None:
    attempts = after(first, refusal)
    assert attempts.seen(APPENDED, True, 0) == Step.LOOK
    assert attempts.seen(COMMITTED, True, 0) == Step.DONE


@pytest.mark.parametrize("first", [DEPOSED, LATE, STOPPING])
def test_a_later_refusal_of_a_change_that_is_not_made_is_final(first: ChangeAnswer) -> None:
    attempts = after(first, DUPLICATE)
    with pytest.raises(Refused, match="the leader refuses: DUPLICATE_VOTER"):
        attempts.seen(IDLE, False, 0)


def test_a_refusal_after_a_lost_answer_leaves_the_change_uncertain() -> None:
    attempts = after(LOST, DUPLICATE)
    with pytest.raises(Uncertain, match="an answer was lost; another one was DUPLICATE_VOTER"):
        attempts.seen(IDLE, False, 0)


@pytest.mark.parametrize("answer", [LOST, DEPOSED, LATE, STOPPING])
def test_it_is_sent_again_while_the_leader_does_not_have_it(answer: ChangeAnswer | None) -> None:
    assert after(answer).seen(IDLE, False, DEADLINE_S) == Step.SEND


@pytest.mark.parametrize("answer", [LOST, DEPOSED, LATE])
def test_it_is_uncertain_while_the_leader_has_it_uncommitted(answer: ChangeAnswer | None) -> None:
    attempts = after(answer)
    assert attempts.seen(APPENDED, True, 0) == Step.LOOK
    with pytest.raises(Uncertain, match="the leader has it in its log"):
        attempts.seen(APPENDED, True, LATE_S)


@pytest.mark.parametrize(
    ("answer", "error"), [(LOST, Uncertain), (DEPOSED, Uncertain), (LATE, Refused), (STOPPING, Refused)]
)
def test_what_is_known_of_a_change_that_is_not_seen_in_time(
    answer: ChangeAnswer | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        after(answer).seen(IDLE, False, LATE_S)


@pytest.mark.parametrize("answer", [LOST, DEPOSED, LATE, STOPPING])
def test_a_change_that_can_not_be_seen_is_made_by_the_answer_only(answer: ChangeAnswer | None) -> None:
    attempts = after(answer)
    assert attempts.seen(IDLE, None, 0) == Step.SEND
    with pytest.raises(Uncertain):
        attempts.seen(IDLE, None, LATE_S)
    attempts.sent(NONE)
    assert attempts.seen(IDLE, None, 0) == Step.DONE


def test_a_commit_that_the_leader_confirms_is_waited_for_until_it_is_seen() -> None:
    attempts = after(NONE)
    assert attempts.seen(IDLE, False, 0) == Step.LOOK
    assert attempts.seen(IDLE, True, 0) == Step.DONE
    assert after(NONE).seen(IDLE, False, LATE_S) == Step.DONE


def test_another_leader_commits_its_own_log() -> None:
    """Its log ends before the end of the first leader's, which had more."""
    attempts = after(DEPOSED)
    assert attempts.seen(quorum(150, 100), True, 0) == Step.LOOK
    assert attempts.seen(quorum(110, 110, epoch=2), True, 0) == Step.DONE


def test_a_change_that_another_leader_does_not_have_is_sent_again() -> None:
    attempts = after(DEPOSED)
    assert attempts.seen(APPENDED, True, 0) == Step.LOOK
    assert attempts.seen(quorum(101, 101, epoch=2), False, 0) == Step.SEND


def test_a_leader_that_can_not_be_reached_has_not_got_it() -> None:
    attempts = after()
    attempts.not_reached("c1:9093 can't be reached: Connection refused")
    assert attempts.seen(IDLE, False, 0) == Step.SEND
    with pytest.raises(NoAnswer, match="wasn't sent in time: c1:9093 can't be reached"):
        attempts.seen(IDLE, False, LATE_S)


def test_a_change_that_was_never_sent_is_not_refused() -> None:
    """The first look took longer than the command may."""
    with pytest.raises(NoAnswer, match="wasn't sent in time: the leader took too long to describe"):
        Attempts(DEADLINE_S).seen(IDLE, False, LATE_S)


def test_the_commit_of_a_change_that_is_not_there_is_not_waited_for() -> None:
    commit = CommitWatch()
    commit.seen(IDLE, False)
    assert (commit.is_appended, commit.is_committed) == (False, False)
    commit.seen(APPENDED, True)
    assert (commit.is_appended, commit.is_committed) == (True, False)
    commit.seen(COMMITTED, True)
    assert commit.is_committed
