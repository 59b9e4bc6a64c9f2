"""Count what happens in a node's steps."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kraft_wire.controller.decision.records import parts_of
from kraft_wire.controller.node import effects as nx
from kraft_wire.controller.node.events import ApiRequest, CommittedBatches, SnapshotFailed, StateLoaded
from kraft_wire.controller.node.node import Node, NodeEvent
from kraft_wire.metadata.partitions.partition import RECOVERING
from kraft_wire.metrics.request_times import RequestTimes
from kraft_wire.metrics.windows import LATENCY_BOUNDS_MS, Histogram, Latency, RecentCount, RecentGrowth
from kraft_wire.protocol.messages.partition_change_record import PartitionChangeRecord
from kraft_wire.raft import effects as fx
from kraft_wire.raft import events as fe
from kraft_wire.raft.events import Now
from kraft_wire.raft.roles import Role

STANDING: Final = frozenset({Role.PROSPECTIVE, Role.CANDIDATE})
SETTLED: Final = frozenset({Role.LEADER, Role.FOLLOWER})


class Delays:
    """Since when, in monotonic milliseconds, something hasn't come about; None if it isn't due.

    ``uncommitted``: the high watermark hasn't moved, although the log goes on. ``unflushed``: no flush has
    ended, although the log has bytes that aren't flushed. ``unapplied``: the state lags the high watermark.
    """

    def __init__(self) -> None:
        self.uncommitted_ms: int | None = None
        self.unflushed_ms: int | None = None
        self.unapplied_ms: int | None = None


class Counts:
    """The counts of one node (a ``Tap`` of the owner), since ``now``. Most steps are requests that are
    answered at once: they cost a count, and a class of a histogram."""

    def __init__(self, node: Node, now: Now) -> None:
        self._node = node
        self.started_ms = now.monotonic_ms
        self.requests: Counter[int] = Counter()
        self.request_times = RequestTimes()
        self.refused: Counter[str] = Counter()
        self.failed_raft_requests: Counter[str] = Counter()
        self.raft_requests = self.raft_responses = 0
        self.appended, self.fetched = RecentCount(), RecentCount()
        self.commits, self.elections = Latency(), Latency()
        self.flushes, self.leaderless = Histogram(LATENCY_BOUNDS_MS), Histogram(LATENCY_BOUNDS_MS)
        self.activations, self.first_writes = Histogram(LATENCY_BOUNDS_MS), Histogram(LATENCY_BOUNDS_MS)
        self.recent_steps, self.recent_delays, self.recent_cpu = (
            RecentGrowth(),
            RecentGrowth(),
            RecentGrowth(),
        )
        self.leader_changes = self.unclean_elections = self.internal_errors = 0
        self.snapshots_written = self.snapshots_failed = self.snapshots_installed = 0
        self.snapshots_loaded = int(_started_from_snapshot(node))
        self.truncations = 0
        self.snapshot_bytes = 0
        self.snapshot_ms = now.monotonic_ms
        self.applied_timestamp_ms: int | None = None
        """That of the last record which was applied as a standby, by its leader's clock."""
        self.appended_ms: int | None = None
        """When this node last appended records as the leader (monotonic)."""
        self.delays = Delays()
        self.is_stopping = False
        self._uncommitted: deque[tuple[int, int]] = deque()
        """The batches that this leader appended: end offset and time, oldest first."""
        self._stood_since_ms: int | None = None
        self._leaderless_since_ms: int | None = now.monotonic_ms
        self._flushing_since_ms: int | None = None
        self._leader: tuple[int, int] | None = None

    def stepped(self, event: NodeEvent, effects: Sequence[nx.NodeEffect], now: Now) -> None:
        """Count an event and its effects."""
        if type(event) is ApiRequest:
            self.requests[event.api_key] += 1
            if self.request_times.began(event, effects, now.monotonic_ms):
                return
        else:
            self._count_event(event, now.monotonic_ms)
        for effect in effects:
            on_effect = ON_EFFECTS.get(type(effect))
            if on_effect is not None:
                on_effect(self, effect, now.monotonic_ms)

    def _count_event(self, event: NodeEvent, now_ms: int) -> None:
        on_event = ON_EVENTS.get(type(event))
        if on_event is not None:
            on_event(self, event, now_ms)

    # Events.

    def _abandoned(self, event: fe.RequestAbandoned, now_ms: int) -> None:
        self.request_times.abandoned(event.token)

    def _response(self, event: fe.ResponseReceived, now_ms: int) -> None:
        self.raft_responses += 1

    def _failure(self, event: fe.RequestFailed, now_ms: int) -> None:
        self.failed_raft_requests[event.failure.name.lower()] += 1

    def _flushed(self, event: fe.Flushed, now_ms: int) -> None:
        if self._flushing_since_ms is not None:
            self.flushes.add(now_ms - self._flushing_since_ms)
        core = self._node.core
        is_idle = core.flushed_offset >= core.log_end_offset
        self.delays.unflushed_ms = self._flushing_since_ms = None if is_idle else now_ms

    def _applied(self, event: CommittedBatches | StateLoaded, now_ms: int) -> None:
        if isinstance(event, CommittedBatches) and event.batches:
            self.applied_timestamp_ms = event.batches[-1].header.max_timestamp
        if self._node.unapplied_records == 0:
            self.delays.unapplied_ms = None

    def _loaded(self, event: StateLoaded, now_ms: int) -> None:
        # If another snapshot was installed meanwhile, that one's state is waited for.
        self.snapshots_loaded += self._node.state.metadata is event.metadata
        self._applied(event, now_ms)

    def _snapshot_written(self, event: fe.SnapshotWritten, now_ms: int) -> None:
        self.snapshots_written += 1
        self.snapshot_bytes = event.size_bytes
        self.snapshot_ms = now_ms

    def _snapshot_failed(self, event: SnapshotFailed, now_ms: int) -> None:
        self.snapshots_failed += 1

    def _stopping(self, event: fe.ShutDown, now_ms: int) -> None:
        self.is_stopping = True

    # Effects.

    def _sent(self, effect: fx.SendRequest, now_ms: int) -> None:
        self.raft_requests += 1

    def _answered(self, effect: fx.Reply | fx.ReplySnapshotBytes | nx.ReplyCommitted, now_ms: int) -> None:
        self.request_times.answered((effect.token,), now_ms)

    def _answered_all(self, effect: fx.ReplyAlike | fx.ReplyRecords, now_ms: int) -> None:
        self.request_times.answered(effect.tokens, now_ms)

    def _batch(self, effect: fx.AppendBatch, now_ms: int) -> None:
        """Count the records of a batch. Consecutive offsets are consecutive records."""
        count = effect.last_offset - effect.base_offset + 1
        if self._node.core.is_leader:
            self.appended.add(count, now_ms)
            self.appended_ms = now_ms
            self._uncommitted.append((effect.last_offset + 1, now_ms))
        else:
            self.fetched.add(count, now_ms)
        if self.delays.uncommitted_ms is None:
            self.delays.uncommitted_ms = now_ms
        if self.delays.unflushed_ms is None:
            self.delays.unflushed_ms = self._flushing_since_ms = now_ms

    def _committed(self, effect: fx.HighWatermarkAdvanced, now_ms: int) -> None:
        while self._uncommitted and self._uncommitted[0][0] <= effect.offset:
            self.commits.add(now_ms - self._uncommitted.popleft()[1], now_ms)
        self.delays.uncommitted_ms = None if effect.offset >= self._node.core.log_end_offset else now_ms
        if self._node.unapplied_records == 0:
            self.delays.unapplied_ms = None
        elif self.delays.unapplied_ms is None:
            self.delays.unapplied_ms = now_ms

    def _log_cut(self, effect: fx.TruncateLog | fx.InstallSnapshot, now_ms: int) -> None:
        """Forget what was due of the log's end: it isn't there any more."""
        self._uncommitted.clear()
        self.delays.uncommitted_ms = self.delays.unflushed_ms = self._flushing_since_ms = None

    def _truncated(self, effect: fx.TruncateLog, now_ms: int) -> None:
        self.truncations += 1
        self._log_cut(effect, now_ms)

    def _installed(self, effect: fx.InstallSnapshot, now_ms: int) -> None:
        self.snapshots_installed += 1
        self._log_cut(effect, now_ms)

    def _role(self, effect: fx.RoleChanged, now_ms: int) -> None:
        if effect.role in STANDING and self._stood_since_ms is None:
            self._stood_since_ms = now_ms
        elif effect.role in SETTLED and self._stood_since_ms is not None:
            self.elections.add(now_ms - self._stood_since_ms, now_ms)
            self._stood_since_ms = None
        if effect.leader_id is None:
            if self._leaderless_since_ms is None:
                self._leaderless_since_ms = now_ms
        elif self._leaderless_since_ms is not None:
            self.leaderless.add(now_ms - self._leaderless_since_ms)
            self._leaderless_since_ms = None
        if effect.leader_id is not None and (effect.epoch, effect.leader_id) != self._leader:
            self._leader = effect.epoch, effect.leader_id
            self.leader_changes += 1

    def _lost_leadership(self, effect: fx.LostLeadership, now_ms: int) -> None:
        self._uncommitted.clear()

    def _activated(self, effect: nx.Activated, now_ms: int) -> None:
        self.activations.add(effect.after_ms)

    def _first_write(self, effect: nx.FirstWrite, now_ms: int) -> None:
        self.first_writes.add(effect.after_ms)

    def _refused(self, effect: nx.RequestRefused, now_ms: int) -> None:
        self.refused[effect.code.name] += 1

    def _internal_error(self, effect: object, now_ms: int) -> None:
        self.internal_errors += 1

    def _records(self, effect: nx.RecordsAppended, now_ms: int) -> None:
        for part in parts_of(effect.records):
            self.unclean_elections += _unclean_elections(part)


def _started_from_snapshot(node: Node) -> bool:
    """Whether the node's state at the start is that of a snapshot, and the log's after it."""
    latest, stopped = node.core.latest_snapshot, node.replay_stopped
    if latest is None or not latest.end_offset:
        return False
    return stopped is None or stopped.offset >= latest.end_offset


def _unclean_elections(part: Any) -> int:
    """Return the number of records that elect a leader outside the ISR: it has to recover."""
    changes = getattr(part, "changes", None)
    if changes is not None:  # in columns
        return int((changes.recovery_state == RECOVERING).sum())
    if not isinstance(part, list | tuple):
        return 0  # new partitions and removed topics, in columns
    return sum(
        isinstance(record, PartitionChangeRecord) and record.leader_recovery_state == RECOVERING
        for record, _ in part
    )


ON_EVENTS: Final[Mapping[type[Any], Callable[[Counts, Any, int], None]]] = {
    CommittedBatches: Counts._applied,
    StateLoaded: Counts._loaded,
    SnapshotFailed: Counts._snapshot_failed,
    fe.ResponseReceived: Counts._response,
    fe.RequestFailed: Counts._failure,
    fe.RequestAbandoned: Counts._abandoned,
    fe.Flushed: Counts._flushed,
    fe.SnapshotWritten: Counts._snapshot_written,
    fe.ShutDown: Counts._stopping,
}
ON_EFFECTS: Final[Mapping[type[Any], Callable[[Counts, Any, int], None]]] = {
    fx.Reply: Counts._answered,
    fx.ReplyAlike: Counts._answered_all,
    fx.ReplyRecords: Counts._answered_all,
    fx.ReplySnapshotBytes: Counts._answered,
    nx.ReplyCommitted: Counts._answered,
    fx.SendRequest: Counts._sent,
    fx.AppendBatch: Counts._batch,
    fx.HighWatermarkAdvanced: Counts._committed,
    fx.TruncateLog: Counts._truncated,
    fx.InstallSnapshot: Counts._installed,
    fx.RoleChanged: Counts._role,
    fx.LostLeadership: Counts._lost_leadership,
    nx.Activated: Counts._activated,
    nx.FirstWrite: Counts._first_write,
    nx.RequestRefused: Counts._refused,
    nx.HandlerFailed: Counts._internal_error,
    nx.WorkFailed: Counts._internal_error,
    nx.TaskFailed: Counts._internal_error,
    nx.ReplayStopped: Counts._internal_error,
    nx.RecordsAppended: Counts._records,
}
