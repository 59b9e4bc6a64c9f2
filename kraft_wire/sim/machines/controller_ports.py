"""Execute the effects of a whole node on a simulated machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kraft_wire.controller.node.effects import HandlerFailed, NodeNotice, TaskFailed, WorkFailed
from kraft_wire.controller.node.events import DigestFailed, DigestMade, StateLoaded, TimestampsFound
from kraft_wire.controller.reading.timestamp_lookup import find_timestamps
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.metadata.digest import digest_of
from kraft_wire.metadata.errors import UnwritableMetadata
from kraft_wire.metadata.state import MetadataState
from kraft_wire.raft.effects import Notice
from kraft_wire.sim.checkers.violations import Violation
from kraft_wire.sim.machines.log_port import SimLog
from kraft_wire.sim.machines.metadata_state import state_in
from kraft_wire.sim.machines.ports import SimPorts
from kraft_wire.sim.machines.snapshot_port import SimSnapshots
from kraft_wire.sim.scheduler import MS

if TYPE_CHECKING:
    from kraft_wire.sim.machines.controller_node import ControllerNode


class ControllerPorts(SimPorts):
    """The ports of a machine on which a whole node runs (``NodePorts``)."""

    def __init__(self, node: ControllerNode) -> None:
        super().__init__(node)
        self.log: ControllerLog = ControllerLog(node)
        self.snapshots: ControllerSnapshots = ControllerSnapshots(node)

    def set_log_levels(self, levels: Mapping[str, str | None]) -> None:
        raise Violation("NoDefect", f"node {self._node.id}: a simulated node has no loggers, but {levels}")

    def notice(self, notice: NodeNotice) -> None:
        if isinstance(notice, HandlerFailed | WorkFailed | TaskFailed):
            raise Violation("NoDefect", f"node {self._node.id}: a handler failed: {notice.error!r}")
        if isinstance(notice, Notice):
            super().notice(notice)


class ControllerLog(SimLog):
    """The log of one node (``NodeLogPort``)."""

    def __init__(self, node: ControllerNode) -> None:
        super().__init__(node)
        self._controller = node

    def read_committed(self, start_offset: int, end_offset: int) -> None:
        self._node.after(0, self._controller.read_committed, start_offset, end_offset)

    def find_timestamps(self, timestamps: Sequence[int], end_offset: int) -> None:
        found = find_timestamps(self._controller.batches(0, end_offset), timestamps)
        self._node.after(0, self._controller.take, TimestampsFound(found))


class ControllerSnapshots(SimSnapshots):
    """The snapshots of one node (``NodeSnapshotPort``)."""

    def __init__(self, node: ControllerNode) -> None:
        super().__init__(node)
        self._controller = node

    def install(self, snapshot_id: SnapshotId) -> None:
        super().install(snapshot_id)
        node = self._controller
        loaded = StateLoaded(snapshot_id, state_in(node.disk.snapshots[snapshot_id], node.release.value))
        node.after(node.chance.randrange(MS, 500 * MS), node.take, loaded)

    def digest_state(self, metadata: MetadataState, end_offset: int) -> None:
        """Make the digest now and report it later. Nothing is undone: the state is the node's own."""
        node = self._controller
        made = _digest_of(metadata, end_offset)
        node.after(node.chance.randrange(MS, 500 * MS), node.take, made)

    def free_state(self, metadata: MetadataState) -> None:
        """Empty it, so that whoever still uses it is found."""
        for _ in metadata.free_in_pieces():
            pass

    def write(self, snapshot_id: SnapshotId, *, is_urgent: bool) -> None:
        self._controller.write_own_snapshot(snapshot_id)


def _digest_of(metadata: MetadataState, end_offset: int) -> DigestMade | DigestFailed:
    if metadata.last_applied_offset >= end_offset:
        return DigestFailed("the state is ahead of the offset")
    try:
        made = digest_of(metadata)
    except UnwritableMetadata as error:
        return DigestFailed(str(error))
    return DigestMade(made.digest, made.record_count)
