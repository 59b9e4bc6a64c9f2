"""Check what readers of an observer may read."""

from __future__ import annotations

from collections.abc import Mapping

from kraft_wire.raft.effects import AppendBatch
from kraft_wire.sim.checkers.checker import Checked, Checker, Recovered


class ReadersSeeCommitted(Checker):
    """Readers of a node that only observes read committed records, in the epoch of the last of them. While
    the process runs, neither goes back."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._committed_end = 0
        self._epochs: dict[int, int] = {}
        self._seen: dict[int, tuple[int, int, int]] = {}

    def advanced(self, node: Checked, high_watermark: int) -> None:
        if node.leading is not None:
            self._committed_end = max(self._committed_end, high_watermark)

    def applied(self, node: Checked, batch: AppendBatch, digest: bytes) -> None:
        self._epochs[batch.last_offset + 1] = batch.epoch

    def stepped(self, node: Checked) -> None:
        if not node.config.is_observer_only:
            return
        end_offset, epoch = node.raft.read_end_offset or 0, node.raft.read_epoch
        life, known_end, known_epoch = self._seen.get(node.id, (0, 0, 0))
        if (life, known_end, known_epoch) == (node.life, end_offset, epoch):
            return
        if life == node.life and (end_offset < known_end or epoch < known_epoch):
            self.fail(node, f"readers went from {known_end}, {known_epoch} back to {end_offset}, {epoch}")
        if end_offset > self._committed_end:
            self.fail(node, f"readers read up to {end_offset}, only {self._committed_end} is committed")
        if epoch != self._epochs.get(end_offset, epoch):
            self.fail(node, f"readers read epoch {epoch} at {end_offset}, it is {self._epochs[end_offset]}")
        self._seen[node.id] = node.life, end_offset, epoch

    def recovered(self, recovery: Recovered) -> None:
        self._committed_end = min(self._committed_end, recovery.lost_from)
        self._epochs = {end: epoch for end, epoch in self._epochs.items() if end <= recovery.lost_from}
