"""Collect what the snapshots and the log of a folder say, wherever they are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

import msgspec

from kraft_wire.log.batch import Batch
from kraft_wire.log.chain import BatchChain
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.recovery import is_ahead
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.raft.recovery.evidence import EpochEvidence, QuorumHistory, SnapshotEvidence

SnapshotReader = Callable[[SnapshotId], Iterable[Batch]]
"""Reads the batches of a whole snapshot."""


class LogEvidence:
    """The log's offsets, its epochs, and the quorum's history, as a node that starts on the folder finds
    them."""

    def __init__(self, start_offset: int) -> None:
        self.start_offset = self.end_offset = start_offset
        self.last_timestamp_ms = -1
        self.epochs: list[EpochEvidence] = []
        self.history = QuorumHistory(takes_newer=True)
        self.unreadable = ""
        """The offset of the first whole batch that this release can't read, and the reason; empty if there is
        none."""
        self._digest = hashlib.sha256()

    @property
    def last_epoch(self) -> int:
        """The epoch of the log's last record; 0 for an empty log."""
        return self.epochs[-1].epoch if self.epochs else 0

    def take_log(self, batches: Iterable[tuple[int, Batch]]) -> None:
        """Read the batches, each with its position, up to the first one that can't follow. The folder's
        inspection says what that is: a torn tail, or damage. A whole batch that this release can't read
        doesn't end the log: ``unreadable`` names it. Raises DecodeError."""
        chain = BatchChain(self.start_offset, None)
        try:
            for position, batch in batches:
                self._check_control(batch)  # the chain ends where a batch begins with an unknown record
                chain.take(position, batch)
                self._take_history(batch)
                self._note_epoch(batch)
                self.end_offset = chain.next_offset
                self.last_timestamp_ms = batch.header.max_timestamp
        except CorruptBatch:
            pass  # the evidence ends here
        self._finish_epoch()

    def _check_control(self, batch: Batch) -> None:
        if batch.header.is_control:
            try:
                decode_control_batch(batch)
            except CorruptBatch as error:
                self._note_unreadable(error)

    def _take_history(self, batch: Batch) -> None:
        try:
            self.history.take(batch)
        except CorruptBatch as error:
            self._note_unreadable(error)

    def _note_unreadable(self, error: CorruptBatch) -> None:
        self.unreadable = self.unreadable or f"offset {error.offset}: {error.reason}"

    def begin_at(self, snapshot_id: SnapshotId, batches: Iterable[Batch]) -> None:
        """Note that the log is empty after this snapshot, which is ahead of what was read until now."""
        self.start_offset = self.end_offset = snapshot_id.end_offset
        self.epochs = []
        self.unreadable = ""
        self.history = QuorumHistory(takes_newer=True)
        self.take_snapshot(snapshot_id, batches)

    def take_snapshot(self, snapshot_id: SnapshotId, batches: Iterable[Batch]) -> None:
        """Read a whole snapshot. Raises DecodeError, and what ``batches`` raises, except CorruptBatch."""
        try:
            self.history.take_snapshot(snapshot_id, batches)
        except CorruptBatch as error:
            self._note_unreadable(error)

    def _note_epoch(self, batch: Batch) -> None:
        epoch = batch.header.leader_epoch
        if epoch != self.last_epoch or not self.epochs:
            self._finish_epoch()
            self._digest = hashlib.sha256()
            offset = batch.header.base_offset
            self.epochs.append(EpochEvidence(epoch, offset, offset, ""))
        self._digest.update(batch.data)

    def _finish_epoch(self) -> None:
        if self.epochs:
            self.epochs[-1] = msgspec.structs.replace(
                self.epochs[-1], end_offset=self.end_offset, digest=self._digest.hexdigest()
            )


def read_log(
    start_offset: int,
    snapshots: Sequence[SnapshotEvidence],
    batches_of: SnapshotReader,
    log: Iterable[tuple[int, Batch]],
) -> LogEvidence:
    """Read the newest whole snapshot that the log continues, or the newest at all, then the log.

    ``snapshots`` are in ascending order; ``log`` has the batches from ``start_offset`` on, each with its
    position. A snapshot that is ahead of the log replaces it, as it does when the node starts: committed
    records may have been lost in a power cut that a snapshot of them survived. Raises DecodeError, and what
    the two readers raise, except CorruptBatch.
    """
    found = LogEvidence(start_offset)
    whole = [SnapshotId(each.end_offset, each.epoch) for each in snapshots if each.is_whole]
    continued = [snapshot_id for snapshot_id in whole if snapshot_id.end_offset <= start_offset]
    for snapshot_id in (continued or whole)[-1:]:
        found.take_snapshot(snapshot_id, batches_of(snapshot_id))
    found.take_log(log)
    newest = max(whole, key=lambda snapshot_id: (snapshot_id.epoch, snapshot_id.end_offset), default=None)
    if newest is not None and is_ahead(newest, found.start_offset, found.end_offset, found.last_epoch):
        found.begin_at(newest, batches_of(newest))
    return found
