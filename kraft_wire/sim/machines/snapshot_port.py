"""Execute effects on simulated snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraft_wire.log.errors import LogError
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.raft.events import Event, SnapshotRejected, SnapshotVerified
from kraft_wire.sim.machines.snapshot_file import SnapshotFile, read_snapshot

if TYPE_CHECKING:
    from kraft_wire.sim.machines.node import SimNode


class SimSnapshots:
    """The snapshots of one node, on the node's disk (``SnapshotPort``)."""

    def __init__(self, node: SimNode) -> None:
        self._node = node
        self._verified: dict[SnapshotId, SnapshotFile] = {}

    def reset(self) -> None:
        """Forget the snapshots that the former process had verified."""
        self._verified.clear()

    def read(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        return self._node.disk.snapshots[snapshot_id].data[position : position + max_bytes]

    def append_bytes(self, snapshot_id: SnapshotId, position: int, data: bytes) -> None:
        self._node.disk.append_part(snapshot_id, position, data)

    def verify(self, snapshot_id: SnapshotId) -> None:
        node = self._node
        try:
            snapshot = read_snapshot(snapshot_id, node.disk.parts[snapshot_id])
        except LogError as error:
            node.disk.parts.pop(snapshot_id)
            event: Event = SnapshotRejected(snapshot_id, str(error))
        else:
            self._verified[snapshot.id] = snapshot
            info = snapshot.info
            event = SnapshotVerified(
                info.id, info.size_bytes, info.last_contained_log_timestamp_ms, snapshot.control
            )
        took_us = node.chance.randrange(node.speed.min_us, 20 * node.speed.max_us)
        node.after(took_us, node.take, event)

    def install(self, snapshot_id: SnapshotId) -> None:
        node = self._node
        snapshot = self._verified.pop(snapshot_id)
        node.disk.install(snapshot)
        node.start_again_from(snapshot)
        for check in node.world.checkers.installed:
            check(node, snapshot)
        node.check_log_start()

    def abandon(self, snapshot_id: SnapshotId) -> None:
        self._node.disk.parts.pop(snapshot_id, None)

    def delete(self, snapshot_id: SnapshotId) -> None:
        self._node.disk.snapshots.pop(snapshot_id, None)
        self._node.check_log_start()
