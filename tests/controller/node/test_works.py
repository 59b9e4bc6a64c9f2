"""The queue of works: who has the next turn, and what is dropped."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from kraft_wire.controller.decision.context import Context, ControllerState
from kraft_wire.controller.decision.work import Piece, WorkKey, WorkKind
from kraft_wire.controller.node.events import ApiRequest, Caller
from kraft_wire.controller.node.works import WorkFor, WorkQueue
from kraft_wire.protocol.messages.create_topics_request import CreateTopicsRequest
from tests.controller.controller_harness import Harness

CREATE = WorkKey(WorkKind.CREATE_TOPICS)
FENCE = WorkKey(WorkKind.FENCE, 1)
READ = WorkKey(WorkKind.READ)


class SomeWork:
    """A work that is never done."""

    def __init__(self, key: WorkKey) -> None:
        self.key = key

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Decide nothing."""
        raise NotImplementedError


class Token:
    """A token that counts how often any is compared."""

    comparisons = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        Token.comparisons += 1
        return isinstance(other, Token) and other.number == self.number


@pytest.fixture
def state() -> ControllerState:
    return Harness().state


@pytest.fixture
def queue(state: ControllerState) -> WorkQueue:
    return WorkQueue(state)


def add(
    queue: WorkQueue,
    token: Hashable,
    key: WorkKey = CREATE,
    is_for: WorkFor = WorkFor.CLIENTS,
    *,
    has_written: bool = False,
) -> None:
    request = ApiRequest(token, CreateTopicsRequest.API_KEY, 7, CreateTopicsRequest(), Caller(listener=""))
    queue.add([SomeWork(key)], request, is_for, has_written=has_written)


def turn(queue: WorkQueue, *, may_write: bool = True, has_ended: bool = False) -> Hashable:
    """Let the next work have its turn. Returns the token of its request."""
    in_work = queue.next(set(WorkFor) if may_write else {WorkFor.READERS})
    assert in_work is not None and in_work.request is not None
    queue.had_turn(in_work, has_ended=has_ended)
    return in_work.request.token


def test_writes_have_turns_one_after_the_other_and_reads_end_first(queue: WorkQueue) -> None:
    for token in ("a", "b", "c"):
        add(queue, token)
    assert [turn(queue) for _ in range(4)] == ["a", "b", "c", "a"]
    for token in ("r", "s"):
        add(queue, token, READ, WorkFor.READERS)
    assert [turn(queue, may_write=False) for _ in range(2)] == ["r", "r"]
    assert [turn(queue, may_write=False, has_ended=True) for _ in range(2)] == ["r", "s"]
    assert queue.next({WorkFor.READERS}) is None
    assert [turn(queue, has_ended=True) for _ in range(3)] == ["b", "c", "a"]
    assert not queue


def test_the_keys_of_writes_are_known(state: ControllerState, queue: WorkQueue) -> None:
    add(queue, "a")
    add(queue, "b")
    add(queue, "fence", FENCE, WorkFor.CLUSTER)
    add(queue, "read", READ, WorkFor.READERS)
    assert state.in_work == {CREATE: 2, FENCE: 1} and state.is_being_fenced(1)
    queue.abandon("a")
    queue.abandon("read")
    assert state.in_work == {CREATE: 1, FENCE: 1}
    queue.abandon("b")
    assert state.in_work == {FENCE: 1}
    assert [request.token for request in queue.clear()] == ["fence"]
    assert not state.in_work and not state.is_being_fenced(1) and not queue


def test_only_clients_works_that_wrote_nothing_are_abandoned(queue: WorkQueue) -> None:
    add(queue, "wrote", has_written=True)
    add(queue, "fence", FENCE, WorkFor.CLUSTER)
    add(queue, "new")
    for token in ("wrote", "fence", "new", "never asked"):
        queue.abandon(token)
    assert {request.token for request in queue.clear()} == {"wrote", "fence"}


def test_an_abandoned_request_is_found_without_a_look_at_the_others(queue: WorkQueue) -> None:
    """A thousand connections may close at once."""
    for number in range(1_000):
        add(queue, Token(number))
    Token.comparisons = 0
    for number in range(0, 1_000, 2):
        queue.abandon(Token(number))
    assert Token.comparisons < 5_000
    tokens = [request.token for request in queue.clear()]
    assert [token.number for token in tokens if isinstance(token, Token)] == list(range(1, 1_000, 2))


def postpone(queue: WorkQueue, token: Hashable, is_for: WorkFor = WorkFor.CLIENTS) -> None:
    request = ApiRequest(token, CreateTopicsRequest.API_KEY, 7, CreateTopicsRequest(), Caller(listener=""))
    queue.postpone(request, is_for)


def test_postponed_requests_have_turns_and_count_as_no_work(state: ControllerState, queue: WorkQueue) -> None:
    add(queue, "a")
    postpone(queue, "b")
    assert state.in_work == {CREATE: 1} and queue.has_postponed_writes
    assert [turn(queue), turn(queue, has_ended=True), turn(queue)] == ["a", "b", "a"]
    assert not queue.has_postponed_writes


def test_postponed_reads_are_no_postponed_writes(queue: WorkQueue) -> None:
    postpone(queue, "read", WorkFor.READERS)
    assert queue and not queue.has_postponed_writes


def test_a_postponed_request_is_abandoned_or_dropped_with_all_others(queue: WorkQueue) -> None:
    for token in ("a", "b", "c"):
        postpone(queue, token)
    queue.abandon("a")
    assert turn(queue, has_ended=True) == "b" and queue.has_postponed_writes
    assert [request.token for request in queue.clear()] == ["c"]
    assert not queue.has_postponed_writes


def test_a_read_that_was_postponed_is_completed_before_the_next_one_begins(queue: WorkQueue) -> None:
    """Each that has begun holds its response."""
    postpone(queue, "a", WorkFor.READERS)
    postpone(queue, "b", WorkFor.READERS)
    assert turn(queue, has_ended=True) == "a"
    request = ApiRequest("a", CreateTopicsRequest.API_KEY, 7, CreateTopicsRequest(), Caller(listener=""))
    queue.add([SomeWork(READ)], request, WorkFor.READERS, is_next=True)
    assert [turn(queue, has_ended=True), turn(queue)] == ["a", "b"]
