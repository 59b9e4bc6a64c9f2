"""Follow the committed log on a node that is not the active controller."""

from __future__ import annotations

from kraft_wire.controller.decision.context import ControllerState
from kraft_wire.controller.node.effects import FreeState, ReadCommitted
from kraft_wire.controller.node.events import CommittedBatches, StateLoaded
from kraft_wire.controller.node.outbox import Outbox
from kraft_wire.controller.node.snapshot_policy import SnapshotPolicy
from kraft_wire.log.batch import Batch
from kraft_wire.log.snapshot import SnapshotId


class LogFollower:
    """The position up to which the metadata is applied, and the read or load that is in progress.

    ``applied_end`` is the offset after the last applied record. At most one read is in progress, and none
    while a snapshot is loaded.
    """

    def __init__(
        self, state: ControllerState, snapshots: SnapshotPolicy, outbox: Outbox, start_offset: int
    ) -> None:
        self.applied_end = start_offset
        self._state = state
        self._snapshots = snapshots
        self._outbox = outbox
        self._reading_to: int | None = None
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
        if self.is_busy:
            return
        if self.applied_end < high_watermark:
            self._reading_to = high_watermark
            self._outbox.emit(ReadCommitted(self.applied_end, high_watermark))

    def apply_committed(self, event: CommittedBatches) -> bool:
        """Apply the batches of a read. Returns whether the read is complete.

        Batches that arrive while a snapshot is loaded are dropped: the log no longer has them.
        """
        if self.is_loading:
            return False
        for batch in event.batches:
            self.apply(batch)
        if self._reading_to is None or event.end_offset < self._reading_to:
            return False
        self._reading_to = None
        return True

    def apply(self, batch: Batch) -> None:
        """Apply one committed batch."""
        if not batch.header.is_control:
            self._state.metadata.replay_batch(batch)
        self.applied_end = batch.header.next_offset
        self._snapshots.committed(batch.header.size_bytes, self._outbox.now.monotonic_ms)

    def snapshot_installed(self, snapshot_id: SnapshotId) -> None:
        """Stop reading until the state of this snapshot is loaded."""
        self._loading = snapshot_id
        self._reading_to = None

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
        self._snapshots.replaced()
        self.applied_end = event.snapshot_id.end_offset
        return True
