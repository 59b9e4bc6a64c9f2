"""A node without I/O: raft core and controller state behind one ``step(event, now) -> effects``.

Raft's RPCs go to the core; everything else goes to its handler. What the core decides comes back as
effects: some are for the owner (append, reply, persist), some move this state machine (a high watermark, a
leadership). The server executes effects on sockets and files, the simulator on its own.

Becoming active (Kafka's QuorumController.claim): raft makes the node leader; when its own first record is
committed, everything before it is too and is replayed; only then the node processes writes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import cast

import msgspec

from kraft_wire.controller import consumer_fetch, consumer_list_offsets, envelope
from kraft_wire.controller.activation import activation_result
from kraft_wire.controller.api_versions import API_VERSIONS
from kraft_wire.controller.apis import APIS, AnsweredBy
from kraft_wire.controller.consumer_fetches import ConsumerFetches, ParkedFetch
from kraft_wire.controller.context import Context, ControllerState, Entropy, VersionedRecord
from kraft_wire.controller.controller import PreparedBatch, SpeculativeWrites, prepare, prepare_records
from kraft_wire.controller.periodic import Schedule
from kraft_wire.controller.periodic_tasks import periodic_tasks
from kraft_wire.controller.registrar import Registrar
from kraft_wire.controller.requests import (
    Activated,
    ApiRequest,
    CommittedBatches,
    Decided,
    FindTimestamps,
    FirstWrite,
    HandlerFailed,
    Peer,
    ReadCommitted,
    Refused,
    ReplyCommitted,
    SnapshotFailed,
    StateLoaded,
    WriteSnapshot,
)
from kraft_wire.controller.snapshot_policy import SnapshotPolicy
from kraft_wire.log.batch import Batch, record_values
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.errors import ApiError, ErrorCode, ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.list_offsets_request import ListOffsetsRequest
from kraft_wire.raft import effects as raft_effects
from kraft_wire.raft import events as raft_events
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import Now

NodeEvent = raft_events.Event | ApiRequest | CommittedBatches | SnapshotFailed | StateLoaded
NodeEffect = (
    raft_effects.Effect
    | ReadCommitted
    | ReplyCommitted
    | FindTimestamps
    | WriteSnapshot
    | Activated
    | FirstWrite
    | Decided
    | Refused
    | HandlerFailed
)

OURSELVES = Peer(listener="")

NOTICEABLE_PAUSE_MS = 100
"""A Tick that comes this much late says that the process stood still: paused, swapped out, or overloaded."""


class Forwarded(msgspec.Struct, frozen=True):
    """The token of a request that came inside a broker's Envelope."""

    outer: Hashable
    inner: envelope.ForwardedRequest


class Node:
    """One controller: call ``step`` with each event, execute what it returns in order.

    ``start_offset`` is the end of the snapshot that ``state`` was loaded from (0 for none). ``bootstrap`` are
    the records that the first leader of an empty log writes. ``registration`` is what this controller tells
    of itself when it becomes active (KIP-919).
    """

    def __init__(
        self,
        core: RaftCore,
        state: ControllerState,
        entropy: Entropy,
        *,
        start_offset: int,
        bootstrap: Sequence[VersionedRecord],
        registration: ControllerRegistrationRequest,
    ) -> None:
        self.core = core
        self.state = state
        self._entropy = entropy
        self._bootstrap = bootstrap
        self._registrar = Registrar(registration)
        self._writes = SpeculativeWrites(state)
        self._consumers = ConsumerFetches()
        self._schedule = Schedule(periodic_tasks(state.settings))
        self._snapshots = SnapshotPolicy(
            state.settings.metadata_log_max_record_bytes_between_snapshots,
            state.settings.metadata_log_max_snapshot_interval_ms,
        )
        self._applied_end = start_offset
        self._is_active = False
        self._led_since_ms = 0
        self._first_write_offset: int | None = None
        self._activation_end = 0
        self._reading_to: int | None = None
        self._loading: SnapshotId | None = None
        self._high_watermark = 0
        self._uncommitted_bytes = 0
        self._effects: list[NodeEffect] = []
        self._now = Now(0, 0)

    @property
    def is_active(self) -> bool:
        """Whether this node processes writes."""
        return self._is_active

    def next_deadline_ms(self) -> int | None:
        """The monotonic time by which the owner has to send a Tick."""
        deadlines = (
            self.core.next_deadline_ms(),
            self._schedule.next_deadline_ms(),
            self._snapshots.deadline_ms(),
            self._consumers.next_deadline_ms(),
            None if self._is_active else self._registrar.next_deadline_ms(self.state),
        )
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def catch_up(self, batches: Iterable[Batch], now: Now) -> None:
        """Apply what is known to be committed already, before anything else: who leads then needn't."""
        self._now = now
        for batch in batches:
            self._replay_batch(batch)

    def step(self, event: NodeEvent, now: Now) -> list[NodeEffect]:
        """Take one event in; returns what is to be done, in order."""
        self._now = now
        self._effects = []
        match event:
            case ApiRequest():
                self._serve(event)
            case CommittedBatches():
                self._replay(event)
            case StateLoaded():
                self._begin_with(event)
            case SnapshotFailed():
                self._snapshots.finished()
            case raft_events.ResponseReceived(request_id) | raft_events.RequestFailed(request_id):
                if not self._registrar.ended(request_id, self._now.monotonic_ms):
                    self._drive(event)
            case raft_events.RequestAbandoned(token):
                self._consumers.abandon(token)
                self._drive(event)
            case raft_events.ShutDown():
                self._schedule.deactivate()
                self._drive(event)
            case raft_events.SnapshotWritten():
                self._snapshots.finished()
                self._drive(event)
            case raft_events.Tick():
                self._notice_pause()
                self._drive(event)
                self._run_periodic_tasks()
                self._answer_consumers()
                self._maybe_snapshot()
            case _:
                self._drive(event)
        self._maybe_register()
        return self._effects

    def _notice_pause(self) -> None:
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is not None and self._now.monotonic_ms - deadline_ms >= NOTICEABLE_PAUSE_MS:
            self.state.sessions.forgive(self._now.monotonic_ms - deadline_ms)

    def _look_at_the_clock(self) -> None:
        """Let the core do what is overdue before anything is decided: a process that stood still may lead no
        more, and would learn it from its own proposal, half-way through a decision."""
        deadline_ms = self.core.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= self._now.monotonic_ms:
            self._drive(raft_events.Tick())

    # Raft: events in, effects out; those that concern the controller are acted on after all are passed on,
    # so that whatever the controller appends comes after whatever the core appended.

    def _drive(self, event: raft_events.Event) -> None:
        reactions = []
        for effect in self.core.step(event, self._now):
            match effect:
                case (
                    raft_effects.HighWatermarkAdvanced()
                    | raft_effects.BecameLeader()
                    | raft_effects.LostLeadership()
                    | raft_effects.RoleChanged()
                ):
                    reactions.append(effect)
                case raft_effects.Reply(token, response):
                    self._reply(token, response)
                case raft_effects.AppendBatch():
                    self._effects.append(effect)
                    self._uncommitted_bytes += len(effect.data)
                case raft_effects.InstallSnapshot(snapshot_id):
                    self._effects.append(effect)
                    self._loading = snapshot_id
                    self._reading_to = None
                case _:
                    self._effects.append(effect)
        for reaction in reactions:
            self._react(reaction)

    def _react(
        self,
        effect: raft_effects.HighWatermarkAdvanced
        | raft_effects.BecameLeader
        | raft_effects.LostLeadership
        | raft_effects.RoleChanged,
    ) -> None:
        match effect:
            case raft_effects.RoleChanged():
                self._mirror_raft()
                self._registrar.leader_changed()
            case raft_effects.HighWatermarkAdvanced(offset):
                self._on_high_watermark(offset)
            case raft_effects.BecameLeader():
                self._led_since_ms = self._now.monotonic_ms
                self._mirror_raft()
                self._maybe_activate()
            case raft_effects.LostLeadership():
                self._deactivate()
        self._effects.append(effect)

    def _mirror_raft(self) -> None:
        self.state.leader_id = self.core.leader_id if self.core.leader_id is not None else -1
        self.state.epoch = self.core.epoch
        self.state.kraft_version = self.core.kraft_version
        self.state.voter_ids = tuple(self.core.voters.ids)

    def _on_high_watermark(self, offset: int) -> None:
        self._high_watermark = offset
        committed_bytes, self._uncommitted_bytes = self._uncommitted_bytes, 0
        if self._is_active:
            self._note_first_write(offset)
            if committed_bytes:
                self._snapshots.committed(committed_bytes, self._now.monotonic_ms)
            for request, response in self._writes.committed(offset):
                self._reply(request.token, response)
            self._maybe_snapshot()
        else:
            self._read_on()
            self._maybe_activate()
        self._answer_consumers()

    def _note_first_write(self, high_watermark: int) -> None:
        if self._first_write_offset is not None and high_watermark > self._first_write_offset:
            self._first_write_offset = None
            self._effects.append(FirstWrite(self.core.epoch, self._now.monotonic_ms - self._led_since_ms))

    # A node that is not active follows the committed log.

    def _read_on(self) -> None:
        if self._loading is not None or self._reading_to is not None:
            return
        if self._applied_end < self._high_watermark:
            self._reading_to = self._high_watermark
            self._effects.append(ReadCommitted(self._applied_end, self._high_watermark))

    def _begin_with(self, event: StateLoaded) -> None:
        """What was applied until now is void: a snapshot took its place. One that another snapshot has taken
        the place of meanwhile says nothing: the log no longer follows it."""
        self._look_at_the_clock()
        if event.snapshot_id != self._loading:
            return
        self._loading = None
        self.state.metadata = event.metadata
        self._applied_end = event.snapshot_id.end_offset
        self._read_on()
        self._maybe_activate()

    def _replay(self, event: CommittedBatches) -> None:
        self._look_at_the_clock()
        if self._loading is not None:
            return
        for batch in event.batches:
            self._replay_batch(batch)
        if self._reading_to is not None and event.end_offset >= self._reading_to:
            self._reading_to = None
            self._read_on()
            self._maybe_activate()
            self._maybe_snapshot()

    def _replay_batch(self, batch: Batch) -> None:
        if not batch.header.is_control:
            self.state.metadata.replay_values(record_values(batch), batch.header.base_offset)
        self._applied_end = batch.header.next_offset
        self._snapshots.committed(batch.header.size_bytes, self._now.monotonic_ms)

    # The active controller.

    def _maybe_activate(self) -> None:
        caught_up = self._applied_end == self.core.log_end_offset and self._loading is None
        if self._is_active or not self.core.accepts_proposals or not caught_up:
            return
        self._is_active = True
        self._first_write_offset = self.core.log_end_offset
        self._mirror_raft()
        self._writes.begin(self._applied_end)
        self.state.sessions.activate(self.state.metadata.brokers.values(), self._now.monotonic_ms)
        self.state.next_offset = self.core.log_end_offset
        context = self._context(OURSELVES)
        self._append(prepare(activation_result(self.state, self._bootstrap, context)))
        self._activation_end = self.core.log_end_offset
        self._decide(
            ApiRequest(
                None, ControllerRegistrationRequest.API_KEY, 0, self._registrar.registration, OURSELVES
            )
        )
        self._schedule.activate(self._now.monotonic_ms)
        self._effects.append(Activated(self.core.epoch, self._now.monotonic_ms - self._led_since_ms))

    def _deactivate(self) -> None:
        self._mirror_raft()
        if not self._is_active:
            return
        self._is_active = False
        self._schedule.deactivate()
        for request in self._writes.revert():
            self._refuse(request, ErrorCode.NOT_CONTROLLER, "leadership moved before this was committed")
        self._applied_end = self._high_watermark

    def _run_periodic_tasks(self) -> None:
        if not self._is_active:
            return
        for task in self._schedule.take_due(self._now.monotonic_ms):
            self.state.next_offset = self.core.log_end_offset
            done = task.run(self.state, self._context(OURSELVES))
            self._append(prepare_records(done.records, atomic=False))
            if done.more:
                self._schedule.continue_soon(task, self._now.monotonic_ms)

    # Requests.

    def _serve(self, request: ApiRequest) -> None:
        api = APIS[request.api_key]
        if not api.supports(request.version):
            self._refuse(request, ErrorCode.UNSUPPORTED_VERSION, f"version {request.version} is not served")
            return
        if api.is_write:
            self._look_at_the_clock()
        match api.answered_by:
            case AnsweredBy.HANDLER if api.is_write and not (self._is_active and self.core.accepts_proposals):
                self._refuse(request, ErrorCode.NOT_CONTROLLER, "this node is not the active controller")
            case AnsweredBy.HANDLER:
                self._decide(request)
            case AnsweredBy.RAFT if _is_consumer_fetch(request):
                self._serve_consumer_fetch(request)
            case AnsweredBy.RAFT:
                self._drive(
                    raft_events.RpcRequest(
                        request.token, request.request, request.version, request.peer.listener
                    )
                )
            case AnsweredBy.NODE if request.api_key == EnvelopeRequest.API_KEY:
                self._serve_envelope(request)
            case AnsweredBy.NODE:
                self._serve_list_offsets(request)

    def _decide(self, request: ApiRequest) -> None:
        """Let the handler decide on what is applied, append its records, answer when all of that is
        committed.
        """
        self.state.next_offset = self.core.log_end_offset
        api = APIS[request.api_key]
        try:
            result = api.handler()(self.state, request.request, request.version, self._context(request.peer))
            batches = prepare(result)
        except ApiError as error:
            self._effects.append(Refused(request.api_key, request.peer, error.code, error.message))
            self._refuse(request, error.code, error.message)
            return
        except Exception as error:  # noqa: BLE001 - a defect on one request must not cost the process: nothing was changed
            self._effects.append(HandlerFailed(request.api_key, request.version, error))
            self._refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR, "the controller failed on this request")
            return
        self._append(batches)
        released = self._writes.release_when_committed(request, result.response, self._seen_end(request))
        if released is not None:
            self._reply(request.token, released.response)

    def _seen_end(self, request: ApiRequest) -> int:
        """The end of what a response just made may reveal: it waits until that is committed.

        A node that isn't active applies committed records only. ApiVersions reveals nothing but features,
        and is what peers ask first: it must not wait for a majority that may be gone.
        """
        if not self._is_active:
            return 0
        if request.api_key == API_VERSIONS:
            return self.state.metadata.features.epoch + 1
        return self.core.log_end_offset

    def _append(self, batches: Iterable[PreparedBatch]) -> None:
        for batch in batches:
            base_offset = self.core.log_end_offset
            self._drive(raft_events.Propose(batch.values))
            if not self._is_active:
                raise InvariantViolated("a proposal ended the leadership that it was made in")
            self._writes.apply(batch, base_offset)
            self._effects.append(Decided(batch.records))

    def _refuse(self, request: ApiRequest, code: ErrorCode, text: str) -> None:
        api = APIS[request.api_key]
        self._reply(request.token, api.error_response(request.request, request.version, code, text))

    def _reply(self, token: Hashable, response: Message) -> None:
        match token:
            case None:
                return
            case Forwarded(outer, inner):
                self._effects.append(raft_effects.Reply(outer, self._wrapped(inner, response)))
            case _:
                self._effects.append(raft_effects.Reply(token, response))

    def _wrapped(self, inner: envelope.ForwardedRequest, response: Message) -> EnvelopeResponse:
        try:
            return envelope.wrap(inner, response)
        except ProtocolError as error:
            # As with a handler's defect: it costs one request.
            self._effects.append(HandlerFailed(inner.api_key, inner.version, error))
            return EnvelopeResponse(response_data=None, error_code=int(ErrorCode.UNKNOWN_SERVER_ERROR))

    def _context(self, peer: Peer) -> Context:
        return Context(
            monotonic_ms=self._now.monotonic_ms,
            wall_ms=self._now.wall_ms,
            entropy=self._entropy,
            principal=peer.principal,
            listener=peer.listener,
            client_id=peer.client_id,
            client_address=peer.address,
        )

    # Requests that a broker forwards for its clients.

    def _serve_envelope(self, request: ApiRequest) -> None:
        try:
            inner = envelope.unwrap(cast(EnvelopeRequest, request.request))
        except ApiError as error:
            self._refuse(request, error.code, error.message)
            return
        self._serve(
            ApiRequest(
                token=Forwarded(request.token, inner),
                api_key=inner.api_key,
                version=inner.version,
                request=inner.request,
                peer=Peer(
                    listener=request.peer.listener,
                    address=inner.client_address,
                    client_id=inner.client_id,
                    principal=inner.principal,
                ),
            )
        )

    # Ordinary consumers of the metadata log.

    def _log_view(self) -> consumer_fetch.LogView:
        return consumer_fetch.LogView(
            node_id=self.state.node_id,
            leader_id=self.state.leader_id,
            epoch=self.core.epoch,
            log_start_offset=self.core.log_start_offset,
            high_watermark=self.core.high_watermark,
        )

    def _serve_consumer_fetch(self, request: ApiRequest) -> None:
        fetch = cast(FetchRequest, request.request)
        decision = consumer_fetch.decide(fetch, request.version, self._log_view())
        if isinstance(decision, consumer_fetch.ConsumerWait):
            deadline_ms = self._now.monotonic_ms + decision.max_wait_ms
            self._consumers.park(ParkedFetch(request, decision.offset, deadline_ms))
        else:
            self._answer_consumer(request, decision)

    def _answer_consumer(
        self, request: ApiRequest, decision: consumer_fetch.ConsumerRead | consumer_fetch.ConsumerAnswer
    ) -> None:
        if isinstance(decision, consumer_fetch.ConsumerRead):
            self._effects.append(ReplyCommitted(request.token, decision))
        else:
            self._reply(request.token, decision.response)

    def _answer_consumers(self) -> None:
        for parked in self._consumers.take_ready(self._high_watermark, self._now.monotonic_ms):
            fetch = cast(FetchRequest, parked.request.request)
            decision = consumer_fetch.decide(fetch, parked.request.version, self._log_view())
            if isinstance(decision, consumer_fetch.ConsumerWait):
                self._reply(parked.request.token, decision.response)
            else:
                self._answer_consumer(parked.request, decision)

    def _serve_list_offsets(self, request: ApiRequest) -> None:
        asked = cast(ListOffsetsRequest, request.request)
        view = self._log_view()
        timestamps = consumer_list_offsets.timestamps_wanted(asked)
        if timestamps and view.is_leader:
            self._effects.append(
                FindTimestamps(request.token, asked, request.version, view, tuple(timestamps))
            )
        else:
            self._reply(request.token, consumer_list_offsets.respond(asked, request.version, view))

    def _maybe_register(self) -> None:
        if not self._is_active:
            self._effects.extend(
                self._registrar.act(self.state, self.core.leader_peer, self._now.monotonic_ms)
            )

    # Snapshots.

    def _maybe_snapshot(self) -> None:
        if not self._snapshots.due(self._now.monotonic_ms) or self.state.metadata.in_transaction:
            return
        if self._loading is not None:
            return
        if self._is_active and self._high_watermark < self._activation_end:
            return  # what ends a former leader's transaction is applied, but not committed
        end_offset = self._high_watermark if self._is_active else self._applied_end
        self._snapshots.started()
        self._effects.append(WriteSnapshot(SnapshotId(end_offset, self.core.epoch_at(end_offset - 1))))


def _is_consumer_fetch(request: ApiRequest) -> bool:
    return request.api_key == FetchRequest.API_KEY and consumer_fetch.is_consumer_fetch(
        cast(FetchRequest, request.request)
    )
