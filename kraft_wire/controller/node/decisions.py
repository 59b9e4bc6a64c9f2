"""Let handlers and periodic tasks decide, append and apply their records, and answer after the commit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from kraft_wire.controller.decision.api_table import AnsweredBy, Api, ApiTable
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.work import Piece
from kraft_wire.controller.node.activation import activation_result
from kraft_wire.controller.node.effects import (
    Activated,
    FirstWrite,
    HandlerFailed,
    RecordsAppended,
    SetLogLevels,
    TaskFailed,
    WorkFailed,
)
from kraft_wire.controller.node.events import ApiRequest, Caller
from kraft_wire.controller.node.known_waits import KnownWaits
from kraft_wire.controller.node.outbox import Outbox
from kraft_wire.controller.node.periodic_tasks import Schedule, periodic_tasks
from kraft_wire.controller.node.raft_driver import RaftDriver
from kraft_wire.controller.node.speculative_writes import (
    NotApplied,
    PreparedBatch,
    Released,
    SpeculativeWrites,
    prepare,
    prepare_records,
    undo_weight,
)
from kraft_wire.controller.node.works import InWork, Postponed, Uncommitted, WorkFor, WorkQueue
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import Propose, UpgradeKraftVersion

THIS_NODE = Caller(listener="")
MOST_ITEMS_TO_REFUSE = 1_000
"""Of all requests together that wait when the leadership is lost. A client sends all of a request to the next
controller if one item is answered with NOT_CONTROLLER."""
MOST_UNCOMMITTED_RECORDS = 12_000
"""Works wait while so many of their own records aren't committed, so that they take little memory. Clients'
requests wait while so many of theirs aren't. If the leadership is lost, all are undone in one step: of those
that take longer to undo there may be fewer (``undo_weight``)."""


class Decisions:
    """The decisions of one node: of its handlers, and while it is active also of its periodic tasks.

    ``make_context`` returns the context of a request of this caller at the time of the present step.
    """

    def __init__(
        self,
        core: RaftCore,
        state: ControllerState,
        outbox: Outbox,
        apis: ApiTable,
        raft: RaftDriver,
        make_context: Callable[[Caller], Context],
    ) -> None:
        self.is_active = False
        self.activation_end = 0
        self._core = core
        self._state = state
        self._outbox = outbox
        self._apis = apis
        self._raft = raft
        self._make_context = make_context
        self._writes = SpeculativeWrites(state)
        self._schedule = Schedule(periodic_tasks(state.settings))
        self._works = WorkQueue(state)
        self._of_works = Uncommitted()
        self._of_clients = Uncommitted()
        self._waits = KnownWaits(state.settings.kraft_wire_answer_when_known_ms)
        self._led_since_ms = 0
        self._first_write_offset: int | None = None

    # The term of an active controller.

    def leadership_began(self) -> None:
        """Remember when raft made this node the leader."""
        self._led_since_ms = self._outbox.now.monotonic_ms

    def activate(
        self,
        applied_end: int,
        bootstrap: Sequence[VersionedRecord],
        registration: ControllerRegistrationRequest,
    ) -> None:
        """Become the active controller. All metadata of the log is applied, up to ``applied_end``.

        ``bootstrap`` are the records for an empty log, ``registration`` is that of this controller.
        """
        now_ms = self._outbox.now.monotonic_ms
        self.is_active = True
        self._first_write_offset = self._core.log_end_offset
        self._writes.begin(applied_end)
        self._state.sessions.activate(self._state.metadata.brokers.values(), now_ms)
        self._state.next_offset = self._core.log_end_offset
        context = self._make_context(THIS_NODE)
        self._append(prepare(activation_result(self._state, bootstrap, context)))
        self.activation_end = self._core.log_end_offset
        self.register(registration)
        self._schedule.activate(now_ms)
        self._outbox.emit(Activated(self._core.epoch, now_ms - self._led_since_ms))

    def register(self, registration: ControllerRegistrationRequest) -> None:
        """Register this controller, if the metadata.version has registrations."""
        request = ApiRequest(None, ControllerRegistrationRequest.API_KEY, 0, registration, THIS_NODE)
        self.decide(request, self._make_context(THIS_NODE))

    def deactivate(self) -> None:
        """Stop being the active controller: undo what is not committed, refuse the waiting writes and answer
        the waiting reads."""
        self.is_active = False
        self._schedule.deactivate()
        self._of_works.clear()
        self._of_clients.clear()
        self._waits.let_go(self._outbox.now.monotonic_ms)  # they are committed
        waiting = [*self._writes.revert(), *self._works.clear()]
        for request in waiting:
            if self._apis[request.api_key].answered_by is AnsweredBy.ANY_CONTROLLER:
                self._read_again(request)
            else:
                text = "the leadership moved before this was committed"
                most_items = max(1, MOST_ITEMS_TO_REFUSE // len(waiting))
                self._outbox.refuse(request, ErrorCode.NOT_CONTROLLER, text, most_items=most_items)

    def _read_again(self, request: ApiRequest) -> None:
        """Answer a read from what is committed: now, or when it is its turn if it may take long."""
        if self._apis[request.api_key].reads_in_pieces:
            self._works.postpone(request, WorkFor.READERS)
        else:
            self.decide(request, self._make_context(request.caller))

    def stop_periodic_tasks(self) -> None:
        """Run no more periodic tasks in this term."""
        self._schedule.deactivate()

    def next_deadline_ms(self) -> int | None:
        """Return the time at which the next periodic task is due; now, if there is work to continue."""
        now_ms, overdue_ms = self._outbox.now.monotonic_ms, self._works.next_deadline_ms()
        if self._next_work() is not None or (overdue_ms is not None and overdue_ms <= now_ms):
            return now_ms
        deadlines_ms = self._schedule.next_deadline_ms(), self._waits.next_deadline_ms(), overdue_ms
        return min((each for each in deadlines_ms if each is not None), default=None)

    def committed(self, high_watermark: int) -> None:
        """Send the responses whose records are committed."""
        if self._first_write_offset is not None and high_watermark > self._first_write_offset:
            self._first_write_offset = None
            after_ms = self._outbox.now.monotonic_ms - self._led_since_ms
            self._outbox.emit(FirstWrite(self._core.epoch, after_ms))
        self._of_works.committed(high_watermark)
        self._of_clients.committed(high_watermark)
        for released in self._writes.committed(high_watermark):
            self._send(released)

    def answer_known(self) -> None:
        """Send responses whose changes all active brokers know now."""
        brokers, now_ms = self._state.metadata.brokers, self._outbox.now.monotonic_ms
        for released in self._waits.take_known(brokers, self._core.known_ends, now_ms):
            self._outbox.answer(released.request, released.response)

    def _send(self, released: Released) -> None:
        if self._waits.must_hold(released):
            self._waits.hold(released, self._outbox.now.monotonic_ms)
        else:
            self._outbox.answer(released.request, released.response)

    # Decisions.

    def decide(self, request: ApiRequest, context: Context) -> None:
        """Let the handler decide, append its records, and answer when everything is committed.

        If the handler raises, nothing has changed. A client's write is postponed if too much isn't committed.
        """
        has_to_wait = self._works.has_postponed_writes or self._is_full(self._of_clients)
        if has_to_wait and self._apis[request.api_key].is_clients_write:
            self._works.postpone(request, WorkFor.CLIENTS)
        else:
            self._begin(request, context)

    def _begin(self, request: ApiRequest, context: Context, *, was_postponed: bool = False) -> None:
        self._state.next_offset = self._core.log_end_offset
        api = self._apis[request.api_key]
        try:
            result = api.decide(self._state, request.request, request.version, context)
            batches = prepare(result)
        except ApiError as error:
            self._outbox.report_refusal(request, error)
            return
        except Exception as error:  # noqa: BLE001 - an internal error of a handler fails one request only: nothing has changed
            self._outbox.emit(HandlerFailed(request.api_key, request.version, error))
            self._fail(request)
            return
        if result.kraft_version is not None:
            self._raft.drive(UpgradeKraftVersion(result.kraft_version))
        try:
            self._append(batches, request.request, result.response)
        except NotApplied as error:
            self._outbox.emit(HandlerFailed(request.api_key, request.version, error.cause))
            self._fail(request)
            return
        if api.is_clients_write:
            self._of_clients.add(self._core.log_end_offset, undo_weight(batches))
        self._state.sessions.apply(result.session_changes)
        if result.log_levels:
            self._outbox.emit(SetLogLevels(result.log_levels))
        if result.response is None:
            is_for, has_written = _is_for(api), bool(batches)
            self._works.add(result.works, request, is_for, has_written=has_written, is_next=was_postponed)
            return
        self._works.add(result.works, None)
        changes = bool(batches) and api.is_clients_write
        self._answer(Released(request, result.response, self._seen_end(result), changes))

    def _answer(self, response: Released) -> None:
        released = self._writes.release_when_committed(response)
        if released is not None:
            self._send(released)

    def abandon(self, token: Hashable) -> None:
        """Drop what is only for a client that has gone."""
        self._works.abandon(token)

    def _next_work(self) -> InWork | Postponed | None:
        """Return what goes on now. Only the active controller writes, and not while too much that works, or
        clients, have written isn't committed yet."""
        if not self._works:
            return None
        may_go = {WorkFor.READERS}
        if self.is_active and self._core.accepts_proposals and not self._is_full(self._of_works):
            may_go.add(WorkFor.CLUSTER)
            if not self._is_full(self._of_clients):
                may_go.add(WorkFor.CLIENTS)
        return self._works.next(may_go)

    @staticmethod
    def _is_full(uncommitted: Uncommitted) -> bool:
        return uncommitted.weight >= MOST_UNCOMMITTED_RECORDS

    def refuse_overdue(self) -> None:
        """Answer one request for which nothing was written by its deadline: an answer may be long."""
        request = self._works.take_overdue(self._outbox.now.monotonic_ms)
        if request is not None:
            self._outbox.refuse(request, ErrorCode.REQUEST_TIMED_OUT, request.overdue_text)

    def continue_work(self) -> None:
        """Decide the next piece of a work, or begin a postponed request, if one may go on."""
        match self._next_work():
            case Postponed() as postponed:
                self._works.had_turn(postponed, has_ended=True)
                request = postponed.request
                if request.is_overdue(self._outbox.now.monotonic_ms):
                    self._outbox.refuse(request, ErrorCode.REQUEST_TIMED_OUT, request.overdue_text)
                    return
                self._outbox.serve(request)
                self._begin(request, self._make_context(request.caller), was_postponed=True)
            case InWork() as in_work:
                self._continue(in_work)

    def _continue(self, in_work: InWork) -> None:
        work, request = in_work.work, in_work.request
        if request is not None:
            self._outbox.serve(request)
        self._state.next_offset = self._core.log_end_offset
        try:
            piece = work.decide(self._state, self._make_context(THIS_NODE))
            batches = prepare_records(piece.records, atomic=piece.atomic)
            if piece.is_trial:
                batches = []
        except ApiError as error:
            self._works.had_turn(in_work, has_ended=True)
            if request is not None:
                self._outbox.report_refusal(request, error)
            return
        except Exception as error:  # noqa: BLE001 - as in ``decide``: this work fails, nothing else
            self._end_failed(in_work, error)
            return
        try:
            self._append(batches, request.request if request else None, piece.response)
        except NotApplied as error:
            self._end_failed(in_work, error.cause)
            return
        self._of_works.add(self._core.log_end_offset, undo_weight(batches))
        self._state.sessions.apply(piece.session_changes)
        in_work.has_written |= bool(batches)
        self._works.had_turn(in_work, has_ended=piece.is_last)
        if request is not None and piece.response is not None:
            changes = in_work.has_written and self._apis[request.api_key].is_clients_write
            self._answer(Released(request, piece.response, self._seen_end(piece), changes))

    def _end_failed(self, in_work: InWork, error: Exception) -> None:
        """End a work that failed with an internal error. What it wrote before stays."""
        self._works.had_turn(in_work, has_ended=True)
        self._outbox.emit(WorkFailed(in_work.work.key, error))
        if in_work.request is not None:
            self._fail(in_work.request)

    def _fail(self, request: ApiRequest) -> None:
        self._outbox.refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR, "internal error of the controller")

    def run_due_tasks(self) -> None:
        """Run the periodic tasks that are due."""
        now_ms = self._outbox.now.monotonic_ms
        for task in self._schedule.take_due(now_ms) if self.is_active else ():
            self._state.next_offset = self._core.log_end_offset
            try:
                done = task.run(self._state, self._make_context(THIS_NODE))
                batches = prepare_records(done.records, atomic=False)
            except Exception as error:  # noqa: BLE001 - as in ``decide``: it is tried again when it is due
                self._outbox.emit(TaskFailed(task.name, error))
                continue
            self._append(batches)
            self._state.sessions.apply(done.session_changes)
            self._works.add(done.works, None)
            if done.more:
                self._schedule.continue_soon(task, now_ms)

    def _seen_end(self, decision: Result | Piece) -> int:
        """Return the end of the records that a response may show: the response waits for their commit."""
        if decision.shown_end is None:
            return self._applied_end
        return min(decision.shown_end, self._applied_end)

    @property
    def _applied_end(self) -> int:
        """The end of the records that this node has applied and that may not be committed yet.

        A node that is not active applies committed records only.
        """
        return self._core.log_end_offset if self.is_active else 0

    def _append(
        self,
        batches: Iterable[PreparedBatch],
        request: Message | None = None,
        response: Message | None = None,
    ) -> None:
        for batch in batches:
            self._writes.apply(batch, self._core.log_end_offset)
            self._raft.drive(Propose(batch.framed))
            if not self.is_active:
                raise InvariantViolated("a proposal ended the leadership that it was made in")
            self._outbox.emit(RecordsAppended(batch.records, request, response))


def _is_for(api: Api) -> WorkFor:
    """Return whom the works of a request are for."""
    if api.reads_in_pieces:
        return WorkFor.READERS
    return WorkFor.CLUSTER if api.is_from_cluster else WorkFor.CLIENTS
