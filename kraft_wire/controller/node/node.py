"""Run a controller without I/O: ``step(event, now)`` drives raft core and controller and returns effects.

Raft's RPCs go to the core, all other requests to their handlers. Some effects of the core are for the owner
of the node (append, reply, persist); some change the state of the node (high watermark, leadership). The
server executes effects on sockets and files, the simulator on its own.

To become active (Kafka's QuorumController.claim), raft makes the node the leader. When all records of earlier
leaders are committed and applied, the node processes writes. Mostly they are when it is elected; otherwise,
and on an empty log, when its first own record is committed. Responses wait for that commit in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraft_wire.controller.decision.api_table import ApiTable
from kraft_wire.controller.decision.context import Authorizer, Context, ControllerState, Entropy
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.node.consumer_reads import ConsumerReads
from kraft_wire.controller.node.decisions import Decisions
from kraft_wire.controller.node.digests import Digests
from kraft_wire.controller.node.effects import (
    NodeEffect,
    ReplayContinues,
    ReplayStopped,
    WriteSnapshot,
)
from kraft_wire.controller.node.events import (
    ApiRequest,
    Caller,
    CommittedBatches,
    DigestFailed,
    DigestMade,
    SnapshotFailed,
    StateLoaded,
    StateTooNew,
    TimestampsFound,
)
from kraft_wire.controller.node.following import LogFollower
from kraft_wire.controller.node.outbox import Outbox
from kraft_wire.controller.node.raft_driver import RaftDriver, Reaction
from kraft_wire.controller.node.registrar import Registrar
from kraft_wire.controller.node.routing import RequestRouter
from kraft_wire.controller.node.snapshot_policy import SnapshotPolicy
from kraft_wire.controller.quotas.connections import ConnectionRates
from kraft_wire.controller.quotas.mutations import MutationQuotas
from kraft_wire.controller.quotas.request_times import RequestTimes
from kraft_wire.log.batch import Batch
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.errors import RecordTooNew
from kraft_wire.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from kraft_wire.raft import effects as raft_effects
from kraft_wire.raft import events as raft_events
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.events import Now

NodeEvent = (
    raft_events.Event
    | ApiRequest
    | CommittedBatches
    | DigestFailed
    | DigestMade
    | SnapshotFailed
    | StateLoaded
    | StateTooNew
    | TimestampsFound
)

NOTICEABLE_PAUSE_MS = 100
"""A Tick this late means that the process was suspended: stopped, swapped out, or overloaded."""


class Node:
    """One controller. Call ``step`` with each event, and execute the effects that it returns in order.

    ``apis`` is the table of the APIs that the node serves. ``start_offset`` is the end of the snapshot that
    ``state`` was loaded from (0 for none). ``bootstrap`` are the records that the first leader of an empty
    log writes. ``registration`` is the registration of this controller (KIP-919). Without an ``authorizer``
    every request is permitted.
    """

    def __init__(
        self,
        core: RaftCore,
        state: ControllerState,
        entropy: Entropy,
        apis: ApiTable,
        *,
        start_offset: int,
        bootstrap: Sequence[VersionedRecord],
        registration: ControllerRegistrationRequest,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.core = core
        self.state = state
        self._entropy = entropy
        self._apis = apis
        self._bootstrap = bootstrap
        self._authorizer = authorizer
        settings = state.settings
        state.mutation_quotas = MutationQuotas(
            settings.controller_quota_window_num * settings.controller_quota_window_size_seconds
        )
        window = settings.quota_window_num, settings.quota_window_size_seconds
        self._request_times = RequestTimes(*window)
        self._connection_rates = ConnectionRates(*window)
        self._outbox = Outbox(apis, self._throttle_time_ms)
        self._registrar = Registrar(registration)
        state.kraft_version_problem = core.kraft_version_problem
        self._snapshots = SnapshotPolicy(
            state.settings.metadata_log_max_record_bytes_between_snapshots,
            state.settings.metadata_log_max_snapshot_interval_ms,
        )
        self._follower = LogFollower(state, self._snapshots, self._outbox, start_offset)
        self._consumers = ConsumerReads(core, state, self._outbox)
        self._digests = Digests(core, state, self._outbox, self._follower)
        self._raft = RaftDriver(core, self._outbox, self._follower, self._react, self._note_appended)
        self._decisions = Decisions(core, state, self._outbox, apis, self._raft, self._context)
        self._requests = RequestRouter(
            core,
            apis,
            self._outbox,
            self._decisions,
            self._consumers,
            self._digests,
            self._raft,
            self._context,
            self._copy_raft_state,
            state.settings.kraft_wire_max_request_entries,
        )
        self._high_watermark = 0
        self._is_replay_stopped = False

    @property
    def replay_stopped(self) -> ReplayStopped | None:
        """The record that this release can't apply; None if there is none."""
        return self._follower.stopped

    @property
    def is_loading_state(self) -> bool:
        """Whether the state of an installed snapshot is being loaded."""
        return self._follower.is_loading

    @property
    def unapplied_records(self) -> int:
        """The number of committed offsets whose records aren't applied yet; 0 on the active controller."""
        return 0 if self.is_active else max(0, self._high_watermark - self._follower.applied_end)

    @property
    def applied_end(self) -> int:
        """The offset after the last committed record that is applied."""
        return self._high_watermark if self.is_active else self._follower.applied_end

    @property
    def is_active(self) -> bool:
        """Whether this node processes writes."""
        return self._decisions.is_active

    def next_deadline_ms(self) -> int | None:
        """Return the monotonic time by which the owner has to send a Tick."""
        earliest: int | None = None
        for deadline in (
            self.core.next_deadline_ms(),
            self._decisions.next_deadline_ms(),
            self._snapshots.deadline_ms(),
            self._consumers.next_deadline_ms(),
            self._digests.next_deadline_ms(),
            self._outbox.now.monotonic_ms if self._follower.paused_after else None,
            self._registrar.next_deadline_ms(self.state) if self._registers else None,
        ):
            if deadline is not None and (earliest is None or deadline < earliest):
                earliest = deadline
        return earliest

    def catch_up(self, batches: Iterable[Batch], now: Now) -> None:
        """Apply batches that are known to be committed, before the first step: a new leader starts sooner."""
        self._outbox.begin_step(now)
        for batch in batches:
            if not self._follower.apply(batch):
                return

    def stop_replay(self, record: RecordTooNew) -> None:
        """Apply nothing, before the first step: the newest snapshot has a record of a newer release."""
        self._follower.stop(record.offset, str(record))

    def step(self, event: NodeEvent, now: Now) -> list[NodeEffect]:
        """Process one event. Returns the effects in the order in which they must be executed."""
        self._begin_step(now)
        match event:
            case ApiRequest():
                self._requests.serve(event)
            case (
                CommittedBatches()
                | DigestFailed()
                | DigestMade()
                | StateLoaded()
                | StateTooNew()
                | TimestampsFound()
            ):
                self._take_what_was_asked_for(event)
            case SnapshotFailed() | raft_events.SnapshotWritten():
                self._end_snapshot(event)
            case raft_events.ResponseReceived(request_id) | raft_events.RequestFailed(request_id):
                if not self._registrar.request_ended(request_id, now.monotonic_ms):
                    self._raft.drive(event)
            case raft_events.RequestAbandoned(token):
                self._consumers.abandon(token)
                self._decisions.abandon(token)
                self._digests.abandon(token)
                self._raft.drive(event)
            case raft_events.ShutDown():
                self._decisions.stop_periodic_tasks()
                self._raft.drive(event)
            case raft_events.Start():
                self._raft.drive(raft_events.Start(can_lead=self.replay_stopped is None))
                self._snapshot_if_due()
            case raft_events.Tick():
                self._notice_pause()
                self._raft.drive(event)
                self._decisions.run_due_tasks()
                self._decisions.refuse_overdue()
                self._decisions.continue_work()
                self._consumers.answer_parked(self._high_watermark)
                self._snapshot_if_due()
            case _:
                self._raft.drive(event)
        self._note_replay()
        self._digests.go_on(self.applied_end, is_active=self.is_active)
        self._decisions.answer_known()
        self._register_if_due()
        return self._outbox.effects

    def note_time(self, used_ms: float) -> None:
        """Take note of how long the last step took: a quota may limit the time for a client."""
        client, quotas = self._outbox.client, self.state.metadata.quotas.by_entity
        if client is not None and quotas:
            now_ms = self._outbox.now.monotonic_ms
            self._request_times.note(quotas, client.principal.name, client.client_id, used_ms, now_ms)

    def accept_connection(self, address: str, now_ms: int) -> int:
        """Count a new connection from an IP address: a quota may limit them. Returns 0, or how long to hold
        it before it is closed."""
        return self._connection_rates.accept(self.state.metadata.quotas, address, now_ms)

    def _throttle_time_ms(self, client: Caller) -> int:
        quotas, now_ms = self.state.metadata.quotas.by_entity, self._outbox.now.monotonic_ms
        if not quotas:
            return 0
        return self._request_times.throttle_time_ms(quotas, client.principal.name, client.client_id, now_ms)

    def _begin_step(self, now: Now) -> None:
        self._outbox.begin_step(now)
        if self._follower.paused_after:
            self._raft.run_overdue_timers()
            self._go_on_following(is_read=self._follower.resume())

    @property
    def _registers(self) -> bool:
        """Whether this node registers itself with the active controller, and would see that in the log."""
        return not (self.is_active or self.core.is_observer_only) and self.replay_stopped is None

    def _take_what_was_asked_for(
        self,
        event: CommittedBatches | DigestFailed | DigestMade | StateLoaded | StateTooNew | TimestampsFound,
    ) -> None:
        match event:
            case DigestFailed() | DigestMade():
                self._digests.took(event)
            case CommittedBatches():
                self._apply_committed(event)
            case TimestampsFound():
                self._consumers.answer_found(event)
            case StateLoaded():
                self._replace_state(event)
            case StateTooNew():
                self._follower.state_too_new(event)

    # Time.

    def _notice_pause(self) -> None:
        deadline_ms, now_ms = self.next_deadline_ms(), self._outbox.now.monotonic_ms
        if deadline_ms is not None and now_ms - deadline_ms >= NOTICEABLE_PAUSE_MS:
            self.state.sessions.forgive(now_ms - deadline_ms)

    # Raft.

    def _react(self, effect: Reaction) -> None:
        match effect:
            case raft_effects.RoleChanged():
                self._copy_raft_state()
                self._registrar.leader_changed()
            case raft_effects.HighWatermarkAdvanced(offset):
                self._advance_high_watermark(offset)
            case raft_effects.BecameLeader():
                self._decisions.leadership_began()
                self._copy_raft_state()
                self._activate_if_ready()
            case raft_effects.LostLeadership():
                self._lose_leadership()
        self._outbox.emit(effect)

    def _copy_raft_state(self) -> None:
        leader_id = self.core.live_leader_id
        self.state.leader_id = -1 if leader_id is None else leader_id
        self.state.epoch = self.core.read_epoch
        self.state.kraft_version = self.core.kraft_version
        self.state.voter_ids = tuple(self.core.voters.ids)
        self.state.silent_voter_ids = self.core.silent_voter_ids(self._outbox.now.monotonic_ms)

    def _advance_high_watermark(self, offset: int) -> None:
        self._high_watermark = offset
        committed_bytes = self._raft.take_uncommitted_bytes()
        if self.is_active:
            if committed_bytes:
                self._snapshots.committed(committed_bytes, self._outbox.now.monotonic_ms)
            self._decisions.committed(offset)
            self._snapshot_if_due()
        else:
            self._follow()
        self._consumers.answer_parked(offset)

    def _lose_leadership(self) -> None:
        self._copy_raft_state()
        if self.is_active:
            self._decisions.deactivate()
            self._follower.applied_end = max(self._follower.applied_end, self._high_watermark)
            self._digests.lost_leadership(self.applied_end)

    def _note_appended(self, batch: raft_effects.AppendBatch) -> None:
        if self.is_active:
            self._digests.appended(batch)

    # The committed log.

    def _follow(self) -> None:
        """Become active if everything is applied; otherwise read the committed log on."""
        self._activate_if_ready()
        if not self.is_active:
            self._follower.read_up_to(self._high_watermark)

    def _apply_committed(self, event: CommittedBatches) -> None:
        self._raft.run_overdue_timers()
        self._go_on_following(is_read=self._follower.apply_committed(event))

    def _go_on_following(self, *, is_read: bool) -> None:
        if is_read:
            self._follow()
            self._snapshot_if_due()

    def _replace_state(self, event: StateLoaded) -> None:
        self._raft.run_overdue_timers()
        if self._follower.replace_state(event):
            self._follow()

    def _note_replay(self) -> None:
        """Report that replay has stopped or continues. The core must not lead while it is stopped."""
        stopped = self._follower.stopped
        if (stopped is not None) is self._is_replay_stopped:
            return
        self._is_replay_stopped = stopped is not None
        self._outbox.emit(stopped or ReplayContinues(self._follower.applied_end))
        self._raft.drive(raft_events.CanLead(stopped is None))

    def _activate_if_ready(self) -> None:
        if self.is_active or self._follower.is_busy or self.replay_stopped or not self._is_caught_up():
            return
        if self.core.accepts_proposals:
            self._copy_raft_state()
            self._decisions.activate(
                self._follower.applied_end, self._bootstrap, self._registrar.registration
            )

    def _is_caught_up(self) -> bool:
        """Whether the records of all earlier leaders are applied. Until the node is active, its own epoch has
        only control records.

        An empty log waits for the commit of these, too. The bootstrap records have the features, and
        ApiVersions waits until features are committed: followers that connect now could never fetch them.
        """
        if not self.state.metadata.stable_metadata_version:
            return self._follower.applied_end == self.core.log_end_offset
        epoch_start = self.core.epoch_start_offset
        return epoch_start is not None and self._follower.applied_end >= epoch_start

    def _context(self, caller: Caller) -> Context:
        return Context(
            monotonic_ms=self._outbox.now.monotonic_ms,
            wall_ms=self._outbox.now.wall_ms,
            entropy=self._entropy,
            apis=self._apis,
            principal=caller.principal,
            listener=caller.listener,
            client_id=caller.client_id,
            client_address=caller.address,
            is_forwarded=caller.is_forwarded,
            authorizer=self._authorizer,
        )

    # The registration of this controller, and snapshots.

    def _register_if_due(self) -> None:
        now_ms = self._outbox.now.monotonic_ms
        if self._registers:
            for effect in self._registrar.register(self.state, self.core.leader_peer, now_ms):
                self._outbox.emit(effect)
        elif self._can_write and self._registrar.is_due_here(self.state, now_ms):
            self._decisions.register(self._registrar.registration)

    @property
    def _can_write(self) -> bool:
        return self.is_active and self.core.accepts_proposals

    def _end_snapshot(self, event: SnapshotFailed | raft_events.SnapshotWritten) -> None:
        if isinstance(event, SnapshotFailed):
            self._snapshots.failed()
        else:
            self._snapshots.written()
            self._raft.drive(event)

    def _snapshot_if_due(self) -> None:
        if not self._snapshots.due(self._outbox.now.monotonic_ms) or self.state.metadata.in_transaction:
            return
        if self._follower.is_loading:
            return
        if self.is_active and self._high_watermark < self._decisions.activation_end:
            return  # the record that aborts a former leader's transaction is applied, but not committed
        end_offset = self._high_watermark if self.is_active else self._follower.applied_end
        snapshot_id = SnapshotId(end_offset, self.core.epoch_at(end_offset - 1))
        self._outbox.emit(WriteSnapshot(snapshot_id, is_urgent=self._snapshots.is_urgent))
        self._snapshots.started()
