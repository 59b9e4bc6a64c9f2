"""Follow the committed log on a node that is not the active controller."""

from __future__ import annotations

from collections import deque

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.node.effects import FreeState, ReadCommitted, ReplayStopped
from kraft_wire.controller.node.events import CommittedBatches, StateLoaded, StateTooNew
from kraft_wire.controller.node.outbox import Outbox
from kraft_wire.controller.node.snapshot_policy import SnapshotPolicy
from kraft_wire.log.batch import Batch, BatchHeader
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.errors import RecordTooNew


class LogFollower:
    """The position up to which the metadata is applied, and the read or load that is in progress.

    ``applied_end`` is the offset after the last applied record. At most one read is in progress, and none
    while a snapshot is loaded. ``stopped`` is set if a committed record is one of a newer release: then
    nothing is read any more, until a snapshot replaces the state (Zeebe's ZEP-007, rolling upgrades).

    Nothing more is applied in a step after the first batch that ends at or after ``pause_at``. It is
    ``paused_after`` that batch until ``resume``, in the next step.
    """

    def __init__(
        self, state: ControllerState, snapshots: SnapshotPolicy, outbox: Outbox, start_offset: int
    ) -> None:
        self.applied_end = start_offset
        self.stopped: ReplayStopped | None = None
        self.pause_at: int | None = None
        self.paused_after: BatchHeader | None = None
        self._state = state
        self._snapshots = snapshots
        self._outbox = outbox
        self._reading_to: int | None = None
        self._looked_up_to = 0
        self._read: deque[Batch] = deque()
        self._read_end = 0
        self._loading: SnapshotId | None = None

    @property
    def is_loading(self) -> bool:
        """Whether the state of an installed snapshot is being loaded."""
        return self._loading is not None

    @property
    def is_busy(self) -> bool:
        """Whether a read or a load is in progress, whose records will be applied when it is complete."""
        return self.is_loading or self._reading_to is not None

    def read_up_to(self, high_watermark: int) -> None:
        """Ask for the committed batches that are not applied yet, unless a read or load is in progress."""
        if self.is_busy or self.stopped is not None:
            return
        if max(self.applied_end, self._looked_up_to) < high_watermark:
            self._reading_to = high_watermark
            self._outbox.emit(ReadCommitted(self.applied_end, high_watermark))

    def apply_committed(self, event: CommittedBatches) -> bool:
        """Apply the batches of a read. Returns whether the read is complete.

        Batches that arrive while a snapshot is loaded are dropped: the log no longer has them. Without
        batches, the high watermark is in the middle of one: a leader may say that. It is read when more of
        it is committed.
        """
        if self.is_loading:
            return False
        if not event.batches and self._reading_to is not None:
            self._looked_up_to, self._reading_to = self._reading_to, event.end_offset
        self._read.extend(event.batches)
        self._read_end = event.end_offset
        return self.resume()

    def resume(self) -> bool:
        """Apply the batches that were read and aren't applied yet. Returns whether the read is complete."""
        self.paused_after = None
        while self._read and self.paused_after is None:
            batch = self._read.popleft()
            if not self.apply(batch):
                self._read.clear()
                return False
            if self.pause_at is not None and self.applied_end >= self.pause_at:
                self.paused_after = batch.header
        if self.paused_after or self._reading_to is None or self._read_end < self._reading_to:
            return False
        self._reading_to = None
        return True

    def apply(self, batch: Batch) -> bool:
        """Apply one committed batch. Returns False if replay is stopped, by a record in it or before it."""
        if self.stopped is not None:
            return False
        try:
            if not batch.header.is_control:
                self._state.metadata.replay_batch(batch)
        except RecordTooNew as record:
            self.applied_end = record.offset
            self.stop(record.offset, str(record))
            return False
        self.applied_end = batch.header.next_offset
        self._snapshots.committed(batch.header.size_bytes, self._outbox.now.monotonic_ms)
        return True

    def stop(self, offset: int, reason: str) -> None:
        """Stop at a committed record that can't be applied. This node makes no snapshot from now on: the
        record may be in the middle of a batch, and a snapshot ends between two."""
        self.stopped = ReplayStopped(offset, reason)
        self._reading_to = None
        self._snapshots.forget()

    def snapshot_installed(self, snapshot_id: SnapshotId) -> None:
        """Stop reading until the state of this snapshot is loaded."""
        self._loading = snapshot_id
        self._reading_to = None
        self._read.clear()
        self.paused_after = None

    def state_too_new(self, event: StateTooNew) -> None:
        """Keep the old state, because that of the snapshot can't be loaded. Only the snapshot that was
        installed last counts."""
        if event.snapshot_id == self._loading:
            self._loading = None
            self.stop(self.applied_end, event.reason)

    def replace_state(self, event: StateLoaded) -> bool:
        """Replace the applied metadata by that of the snapshot. Returns whether it was replaced.

        Only the snapshot that was installed last counts: the log continues at its end.
        """
        if event.snapshot_id != self._loading:
            self._outbox.emit(FreeState(event.metadata))
            return False
        self._loading = None
        self._outbox.emit(FreeState(self._state.metadata))
        self._state.metadata = event.metadata
        self._snapshots.forget()
        self.stopped = None
        self.applied_end = event.snapshot_id.end_offset
        return True
