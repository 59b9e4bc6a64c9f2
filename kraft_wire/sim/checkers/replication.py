"""Check replication: logs, high watermarks, committed and acknowledged records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.messages.fetch_response import FetchResponse
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.majority import majority_of
from kraft_wire.sim.checkers.checker import Checked, Checker, Recovered, holds
from kraft_wire.sim.machines.disk import Disk
from kraft_wire.sim.machines.snapshot_file import SnapshotFile


class LogMatching(Checker):
    """Two batches with the same offset and epoch are equal."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._written: dict[tuple[int, int], bytes] = {}

    def appended(self, node: Checked, batch: AppendBatch) -> None:
        known = self._written.setdefault((batch.base_offset, batch.epoch), batch.data)
        if known is not batch.data and known != batch.data:
            self.fail(node, f"has another batch at offset {batch.base_offset} of epoch {batch.epoch}")


class ConsistentCommittedData(Checker):
    """State machines that applied the log up to the same offset have the same state."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._digests: dict[int, bytes] = {}

    def applied(self, node: Checked, batch: AppendBatch, digest: bytes) -> None:
        if self._digests.setdefault(batch.last_offset + 1, digest) != digest:
            self.fail(node, f"another committed batch than others have ends at offset {batch.last_offset}")

    def installed(self, node: Checked, snapshot: SnapshotFile) -> None:
        if self._digests.setdefault(snapshot.id.end_offset, node.digest) != node.digest:
            self.fail(node, f"snapshot {snapshot.id} holds another state than others have")

    def digest_at(self, end_offset: int) -> bytes:
        """Return the digest that all nodes have at this offset."""
        return self._digests[end_offset]

    def recovered(self, recovery: Recovered) -> None:
        for end_offset in [end for end in self._digests if end > recovery.lost_from]:
            del self._digests[end_offset]


class EqualState(Checker):
    """The state at an offset is the same on every node, live or from a snapshot and the log after it."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._hashes: dict[int, bytes] = {}

    def check(self, node: Checked, end_offset: int, state_hash: bytes) -> None:
        """Compare a node's state with the known one at this offset."""
        if self._hashes.setdefault(end_offset, state_hash) != state_hash:
            self.fail(node, f"another state at offset {end_offset} than others have, or it had itself")


class AcknowledgedStays(Checker):
    """State machines apply the batches whose commitment was acknowledged, and no others at their offsets."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self.count = 0
        self.end_offset = 0
        self._acknowledged: dict[int, bytes] = {}

    def acknowledged(self, node: Checked, batch: AppendBatch) -> None:
        self.count += 1
        self.end_offset = max(self.end_offset, batch.last_offset + 1)
        self._acknowledged[batch.base_offset] = batch.data

    def applied(self, node: Checked, batch: AppendBatch, digest: bytes) -> None:
        known = self._acknowledged.get(batch.base_offset)
        if known is not None and known is not batch.data and known != batch.data:
            self.fail(node, f"the acknowledged batch at offset {batch.base_offset} was replaced")

    def recovered(self, recovery: Recovered) -> None:
        for base_offset in [base for base in self._acknowledged if base >= recovery.lost_from]:
            del self._acknowledged[base_offset]


class MonotonicHighWatermark(Checker):
    """A process's high watermark never falls."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._known: dict[int, tuple[int, int]] = {}

    def advanced(self, node: Checked, high_watermark: int) -> None:
        life, known = self._known.get(node.id, (0, 0))
        if life == node.life and high_watermark < known:
            self.fail(node, f"the high watermark went from {known} to {high_watermark}")
        self._known[node.id] = node.life, high_watermark


class MajorityReachedHighWatermark(Checker):
    """A majority has everything below a leader's high watermark on stable storage, including the first record
    of the leader's epoch. No node has a higher high watermark than a leader had."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self.end_offset = 0

    def advanced(self, node: Checked, high_watermark: int) -> None:
        if node.leading is None:
            if high_watermark > self.end_offset:
                self.fail(node, f"takes {high_watermark} for committed, only {self.end_offset} is")
            return
        epoch, epoch_start_offset = node.leading
        if high_watermark <= epoch_start_offset:
            self.fail(node, f"high watermark {high_watermark} is not of its own epoch {epoch}")
        last = node.disk.batch_before(high_watermark)
        voters = node.raft.voters.ids
        holders = [id for id in voters if last is not None and _holds(self.nodes[id].disk, last)]
        if len(holders) < majority_of(len(voters)):
            self.fail(node, f"high watermark {high_watermark}, but only voters {holders} have that flushed")
        self.end_offset = max(self.end_offset, high_watermark)

    def applied(self, node: Checked, batch: AppendBatch, digest: bytes) -> None:
        if batch.last_offset >= self.end_offset:
            self.fail(node, f"applies {batch.last_offset}, only what is below {self.end_offset} is committed")

    def answering(self, node: Checked, token: int, response: Message) -> None:
        if isinstance(response, FetchResponse) and response.responses:
            told = response.responses[0].partitions[0].high_watermark
            if told > self.end_offset:
                self.fail(node, f"tells that {told} is committed, only {self.end_offset} is")

    def recovered(self, recovery: Recovered) -> None:
        self.end_offset = min(self.end_offset, recovery.lost_from)


def _holds(disk: Disk, last: AppendBatch) -> bool:
    """Whether a disk has a batch and all before it flushed, or had before it was damaged or replaced."""
    if disk.former is not None and _holds(disk.former, last):
        return True
    end_offset = last.last_offset + 1
    if disk.lost_below is not None and disk.lost_below >= end_offset:
        return True
    if disk.flushed_offset < end_offset:
        return False
    own = disk.batch_before(end_offset)
    return end_offset <= disk.start_offset if own is None else own.epoch == last.epoch


class FlushedBeforeFetch(Checker):
    """All records below the offset of a replica's Fetch are flushed, because the Fetch acknowledges them."""

    def sending(self, node: Checked, request: Message) -> None:
        if isinstance(request, FetchRequest):
            asked = request.topics[0].partitions[0]
            if asked.fetch_offset > node.disk.flushed_offset:
                self.fail(node, f"fetches {asked.fetch_offset}, only {node.disk.flushed_offset} is flushed")


class NoTruncationBelowHighWatermark(Checker):
    """Committed records are never truncated, and a leader never truncates its log."""

    def __init__(self, nodes: Mapping[int, Checked]) -> None:
        super().__init__(nodes)
        self._committed: dict[int, AppendBatch] = {}

    def applied(self, node: Checked, batch: AppendBatch, digest: bytes) -> None:
        self._committed[batch.base_offset] = batch

    def truncated(self, node: Checked, removed: Sequence[AppendBatch], end_offset: int) -> None:
        if node.leading is not None:
            self.fail(node, f"cuts its log at {end_offset} as a leader")
        for batch in removed:
            committed = self._committed.get(batch.base_offset)
            if committed is not None and committed.data == batch.data:
                self.fail(node, f"cuts its log at {end_offset}, below the committed {batch.base_offset}")

    def lost_from(self, disk: Disk) -> int:
        """Return the offset of the first committed batch that a disk doesn't have; the end of its log if it
        has all."""
        lost = (base for base, batch in self._committed.items() if not holds(disk, batch))
        return min(lost, default=disk.end_offset)

    def recovered(self, recovery: Recovered) -> None:
        for base_offset in [base for base in self._committed if base >= recovery.lost_from]:
            del self._committed[base_offset]
