"""Check snapshots, the log start offset and the voter set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.membership.voters import voters_of_record
from kraft_wire.sim.checkers.checker import Checked, Checker
from kraft_wire.sim.machines.snapshot_file import SnapshotFile


class SnapshotAtLogStart(Checker):
    """If the log start offset isn't 0, there is a snapshot that ends there or later."""

    def trimmed(self, node: Checked) -> None:
        disk = node.disk
        start = disk.start_offset
        if start and not any(id.end_offset >= start for id in disk.snapshots):
            self.fail(node, f"the log begins at {start}, snapshots are {sorted(disk.snapshots)}")

    def stepped(self, node: Checked) -> None:
        if node.raft.log_start_offset > node.disk.start_offset:
            self.fail(node, f"begins at {node.raft.log_start_offset}, on disk at {node.disk.start_offset}")

    def started(self, node: Checked) -> None:
        self.trimmed(node)


class LeaderNeverLoadsSnapshot(Checker):
    """Only a follower installs a snapshot: a leader has all records."""

    def installed(self, node: Checked, snapshot: SnapshotFile) -> None:
        if node.leading is not None:
            self.fail(node, f"installs snapshot {snapshot.id} as a leader")
        if snapshot.id == BOOTSTRAP_SNAPSHOT_ID:
            self.fail(node, "installs another's 0-0 checkpoint")


class SnapshotGoesForward(Checker):
    """An installed snapshot never ends below the high watermark."""

    def installed(self, node: Checked, snapshot: SnapshotFile) -> None:
        if snapshot.id.end_offset < node.high_watermark:
            self.fail(node, f"goes back from {node.high_watermark} to snapshot {snapshot.id}")


class VotersAreThoseOfTheLog(Checker):
    """The voter set is that of the latest VotersRecord in the snapshot or the log, committed or not."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._is_due: set[int] = set()

    def appended(self, node: Checked, batch: AppendBatch) -> None:
        if batch.data[22] & 0x20:
            self._is_due.add(node.id)

    def truncated(self, node: Checked, removed: Sequence[AppendBatch], end_offset: int) -> None:
        self._is_due.add(node.id)

    def installed(self, node: Checked, snapshot: SnapshotFile) -> None:
        self._is_due.add(node.id)

    def stepped(self, node: Checked) -> None:
        if node.id not in self._is_due:
            return
        self._is_due.discard(node.id)
        records = [m for m in node.disk.control_at(node.disk.end_offset) if isinstance(m, VotersRecord)]
        if records and voters_of_record(records[-1]) != node.raft.voters:
            self.fail(node, f"counts {node.raft.voters} as voters, its log {voters_of_record(records[-1])}")
