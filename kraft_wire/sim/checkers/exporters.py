"""Check what leaders export."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_wire.protocol.own_messages.resync import Resync
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.sim.checkers.checker import Checked, Checker
from kraft_wire.sim.checkers.violations import Violation


class ExportedIsCommitted(Checker):
    """A sink gets what is committed, in order, and nothing else. It misses nothing, unless it is told so
    because the log was trimmed. A position is what the sink has."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self.committed_end = 0
        self._batches: dict[int, bytes] = {}

    def applied(self, node: Checked, batch: AppendBatch, digest: bytes) -> None:
        self._batches.setdefault(batch.base_offset, batch.data)
        self.committed_end = max(self.committed_end, batch.last_offset + 1)

    def check_batch(self, node: Checked, batch: AppendBatch, sink_end: int) -> None:
        """Check a batch that a sink gets, which has everything below ``sink_end``."""
        if self._batches.get(batch.base_offset) != batch.data:
            self.fail(node, f"exports a batch at {batch.base_offset} that isn't committed")
        if batch.base_offset > sink_end:
            self._missing(node, f"exports {batch.base_offset}, the sink has what is below {sink_end}")

    def check_state(self, node: Checked, snapshot_end: int, sink_end: int) -> None:
        """Check a snapshot that a sink gets."""
        if snapshot_end > self.committed_end:
            self.fail(node, f"exports a snapshot up to {snapshot_end}, which isn't committed")
        if snapshot_end > sink_end:
            self._missing(node, f"exports a snapshot up to {snapshot_end}, the sink wasn't told")

    def check_resync(self, node: Checked, resync: Resync, sink_end: int) -> None:
        """Check what a sink is told to have missed."""
        if resync.from_ > sink_end:
            self._missing(node, f"tells a gap from {resync.from_} on, the sink has what is below {sink_end}")

    def check_restart(self, node: Checked, position: int) -> None:
        """Check that an exporter only begins again if the log doesn't lead on from its position."""
        if position >= node.disk.start_offset:
            self.fail(node, f"begins again, though its log has what comes after {position}")

    def check_position(self, node: Checked, position: int, sink_end: int) -> None:
        """Check a position that a node takes note of."""
        if position > sink_end:
            raise Violation(
                "PositionIsAcknowledged", f"node {node.id}: {position}, the sink has what is below {sink_end}"
            )

    def _missing(self, node: Checked, seen: str) -> None:
        raise Violation("NothingIsMissing", f"node {node.id}: {seen}")
