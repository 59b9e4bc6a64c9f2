"""Simulate a disk: what was written, how much of it is flushed, and what is left after a crash.

Writes of quorum-state, truncations, installed snapshots and deletions are atomic and durable when they
return, as in the server. Appended batches are not. A power cut may remove any of them that no finished flush
covers, may leave half of one, may leave zeros in place of one that other batches follow, and may bring back
batches that were truncated there before. The durable floor is written without a flush: a power cut may bring
back an older one.
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right

import msgspec

from kraft_wire.log.batch import is_intact, split_batches
from kraft_wire.log.chain import BatchChain
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.errors import LogError
from kraft_wire.log.files import ElectionState
from kraft_wire.log.recovery import (
    EPOCHS_WITHOUT_TRACE,
    NOTHING_KNOWN,
    Floor,
    committed_end,
    is_ahead,
    is_torn_tail,
    lost_below,
    no_vote_up_to,
    trusted_floor,
)
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.raft.config import DurableState
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.recovery.applying import Marker
from kraft_wire.sim.machines.control_records import control_records, voters_among
from kraft_wire.sim.machines.rot import FIRST_CHECKED_BYTE, flipped, size_of_batch
from kraft_wire.sim.machines.snapshot_file import SnapshotFile

_FLOORS_KEPT = 8
_BLOCK_SIZE_BYTES = 4096


class FlushMark(msgspec.Struct, frozen=True, gc=False):
    """The part of the log that a flush covers if it begins now."""

    end_offset: int
    generation: int


class Disk:
    """The files of one node. ``lost_below`` is set while damage has removed durable records.
    ``committed_offset`` is written with the floor. ``former`` is the disk that this one replaces. ``marker``
    is what a recovery of a lost majority wrote. Such a recovery has given up what this disk has committed
    from ``given_up_from`` on, if that is set; ``keeps_below`` is set while the node knows that it has such
    records, and is the end of them."""

    def __init__(self, formatted: SnapshotFile | None, former: Disk | None = None) -> None:
        self._formatted = formatted
        self.former = former
        self.election: ElectionState | None = None
        self.no_vote_up_to_epoch = -1
        self.batches: list[AppendBatch] = []
        self.bases: list[int] = []
        self.start_offset = 0
        self.end_offset = 0
        self.flushed_offset = 0
        self.lost_below: int | None = None
        self.committed_offset = 0
        self.size_bytes = 0
        self.generation = 0
        self.snapshots: dict[SnapshotId, SnapshotFile] = {}
        self.parts: dict[SnapshotId, bytes] = {}
        self.is_suspect = False
        self.given_up_from: int | None = None
        self.keeps_below: int | None = None
        self.marker: Marker | None = None
        self._floors: list[Floor] = [NOTHING_KNOWN]
        self._cut_off: list[AppendBatch] = []
        if formatted is not None:
            self.snapshots[formatted.id] = formatted

    # Elections.

    def write_election_state(self, state: ElectionState) -> None:
        is_new = self.election is None or self.election.leader_epoch != state.leader_epoch
        self.election = state
        if is_new:
            self._write_floor()
        if state.leader_epoch > self.no_vote_up_to_epoch:
            self.no_vote_up_to_epoch = -1

    @property
    def may_lose_election_state(self) -> bool:
        """Whether the other files show well enough in which epochs this node may have voted."""
        if self.election is None or not self.batches or self.is_suspect:
            return False
        return self.election.leader_epoch < self.last_epoch + EPOCHS_WITHOUT_TRACE

    def lose_election_state(self) -> None:
        """Remove quorum-state. The next start finds that it is missing."""
        self.election = None
        known = (
            self.batches[-1].epoch if self.batches else 0,
            self._floors[-1].quorum_epoch,
            *(snapshot_id.epoch for snapshot_id in self.snapshots),
        )
        self.no_vote_up_to_epoch = max(self.no_vote_up_to_epoch, no_vote_up_to(known))

    # The log.

    def append(self, batch: AppendBatch) -> None:
        if self.keeps_below is None:
            self.given_up_from = None  # it follows the new quorum
        self.batches.append(batch)
        self.bases.append(batch.base_offset)
        self.end_offset = batch.last_offset + 1
        self.size_bytes += len(batch.data)

    def flush_mark(self) -> FlushMark:
        return FlushMark(self.end_offset, self.generation)

    def flushed(self, mark: FlushMark) -> None:
        """End a flush. It covers nothing if the log was truncated meanwhile."""
        if mark.generation == self.generation:
            self._set_flushed(max(self.flushed_offset, mark.end_offset))
            self._write_floor()

    def _set_flushed(self, offset: int) -> None:
        self.flushed_offset = offset
        if self.lost_below is not None and offset >= self.lost_below:
            self.lost_below = None

    def note_committed(self, offset: int) -> None:
        """Note that everything below ``offset`` is committed. The next flush writes it."""
        self.committed_offset = offset

    def _write_floor(self, *, flush: bool = False) -> None:
        """Write the floor. After a power cut, any of the floors that weren't flushed may be left."""
        epoch = 0 if self.election is None else self.election.leader_epoch
        floor = Floor(self.flushed_offset, epoch, self.committed_offset)
        self._floors = [floor] if flush else [*self._floors[-_FLOORS_KEPT:], floor]

    def forget_loss(self) -> None:
        """Forget the loss: no committed record is missing any more."""
        self.lost_below = None

    def truncate(self, end_offset: int) -> list[AppendBatch]:
        """Truncate the log. Return the batches that were removed."""
        keep = bisect_left(self.bases, end_offset)
        removed = self.batches[keep:]
        del self.batches[keep:], self.bases[keep:]
        self.end_offset = end_offset
        self.size_bytes -= sum(len(batch.data) for batch in removed)
        self.generation += 1
        self._set_flushed(end_offset)
        self._cut_off = removed
        self.committed_offset = min(self.committed_offset, end_offset)
        self._write_floor(flush=True)
        return removed

    def trim(self, start_offset: int) -> int:
        """Remove the batches below ``start_offset``. Return their size in bytes."""
        drop = bisect_right([batch.last_offset for batch in self.batches], start_offset - 1)
        deleted_bytes = sum(len(batch.data) for batch in self.batches[:drop])
        del self.batches[:drop], self.bases[:drop]
        self.start_offset = start_offset
        self.size_bytes -= deleted_bytes
        return deleted_bytes

    def read(self, offset: int, end_offset: int, max_bytes: int) -> bytes:
        """Return whole batches from the one with ``offset`` on: about ``max_bytes``, at least one batch."""
        index = max(0, bisect_right(self.bases, offset) - 1)
        size_bytes = 0
        pieces: list[bytes] = []
        for batch in self.batches[index : index + 256]:
            if batch.last_offset >= end_offset or (pieces and size_bytes + len(batch.data) > max_bytes):
                break
            if batch.last_offset >= offset:
                pieces.append(batch.data)
                size_bytes += len(batch.data)
        return b"".join(pieces)

    def batches_between(self, offset: int, end_offset: int) -> list[AppendBatch]:
        """Return the whole batches in a range."""
        first, last = bisect_left(self.bases, offset), bisect_left(self.bases, end_offset)
        found = self.batches[first:last]
        if found and found[-1].last_offset >= end_offset:
            found.pop()
        return found

    def batch_before(self, end_offset: int) -> AppendBatch | None:
        """Return the batch that ends at ``end_offset``."""
        index = bisect_left(self.bases, end_offset) - 1
        batch = self.batches[index] if index >= 0 else None
        return batch if batch is not None and batch.last_offset + 1 == end_offset else None

    # Snapshots.

    def append_part(self, snapshot_id: SnapshotId, position: int, data: bytes) -> None:
        so_far = self.parts.get(snapshot_id, b"") if position else b""
        if len(so_far) != position:
            raise ValueError(f"a piece of {snapshot_id} at byte {position} follows {len(so_far)} bytes")
        self.parts[snapshot_id] = so_far + data

    def install(self, snapshot: SnapshotFile) -> None:
        """Start an empty log at the end of a snapshot."""
        self.given_up_from = self.keeps_below = None
        self.parts.pop(snapshot.id, None)
        self.snapshots[snapshot.id] = snapshot
        self._begin_at(snapshot.id.end_offset)

    def _begin_at(self, offset: int) -> None:
        self.batches, self.bases = [], []
        self.start_offset = self.end_offset = offset
        self.size_bytes = 0
        self.generation += 1
        self._set_flushed(offset)
        self._cut_off = []
        self.committed_offset = 0
        self._write_floor(flush=True)

    @property
    def latest_snapshot(self) -> SnapshotFile | None:
        newest = max(self.snapshots, key=lambda id: (id.epoch, id.end_offset), default=None)
        return None if newest is None else self.snapshots[newest]

    # Damage.

    def lose_power(self, chance: random.Random) -> None:
        """Lose what isn't flushed, except perhaps its first batches, and perhaps a torn one after them."""
        self._floors = [chance.choice(self._floors)]
        self.parts.clear()
        unflushed = self.batches[bisect_left(self.bases, self.flushed_offset) :]
        if unflushed and self._come_back(chance, unflushed):
            return
        kept = chance.randrange(len(unflushed) + 1) if unflushed else 0
        for _ in range(len(unflushed) - kept):
            self._drop_last()
        if kept < len(unflushed) and chance.random() < 0.5:
            torn = unflushed[kept]
            cut = chance.randrange(1, len(torn.data))
            self.append(msgspec.structs.replace(torn, data=torn.data[:cut]))
            self.is_suspect = True
        elif kept >= 2 and chance.random() < 0.5:
            hole = len(self.batches) - kept + chance.randrange(kept - 1)
            batch = self.batches[hole]
            self.batches[hole] = msgspec.structs.replace(batch, data=bytes(len(batch.data)))
            self.is_suspect = True

    def _come_back(self, chance: random.Random, unflushed: list[AppendBatch]) -> bool:
        """Bring back truncated batches: a truncation changes the file's length, but its last block keeps
        their bytes until a flush overwrites them. Return whether they came back."""
        older = self._cut_off
        if not older or older[0].base_offset != self.flushed_offset or chance.random() < 0.3:
            return False
        self.lose_unflushed()
        room = min(_BLOCK_SIZE_BYTES, sum(len(batch.data) for batch in unflushed))
        for batch in older:
            room -= len(batch.data)
            if room >= 0:
                self.append(batch)
        self.is_suspect = True
        return True

    def lose_unflushed(self) -> None:
        """Lose everything that isn't flushed, as when a flush fails."""
        while self.batches and self.batches[-1].last_offset >= self.flushed_offset:
            self._drop_last()

    def _drop_last(self) -> None:
        batch = self.batches.pop()
        self.end_offset = self.bases.pop()
        self.size_bytes -= len(batch.data)

    def flip_bit(self, chance: random.Random) -> bool:
        """Flip a bit in one batch of the log. Return False if there is no batch except a torn one, or one
        that a power cut replaced by zeros."""
        is_torn = bool(self.batches) and not is_intact(self.batches[-1].data)
        if len(self.batches) == is_torn:
            return False
        index = chance.randrange(len(self.batches) - is_torn)
        batch = self.batches[index]
        if size_of_batch(batch.data) <= FIRST_CHECKED_BYTE:
            return False
        self.batches[index] = msgspec.structs.replace(batch, data=flipped(batch.data, chance))
        self.is_suspect = True
        return True

    def misdirect_write(self, chance: random.Random) -> bool:
        """Write a batch where another one belongs. Return False if there are fewer than two."""
        if len(self.batches) < 2:
            return False
        wrong, right = chance.sample(range(len(self.batches)), 2)
        data = self.batches[right].data
        self.batches[wrong] = msgspec.structs.replace(self.batches[wrong], data=data)
        self.is_suspect = True
        return True

    def corrupt_snapshot(self, chance: random.Random) -> bool:
        """Flip a bit in the newest snapshot. Return False if there is none, or if it has no bytes."""
        snapshot = self.latest_snapshot
        if snapshot is None or not snapshot.data:
            return False
        data = flipped(snapshot.data, chance)
        rotten = SnapshotFile(snapshot.info, data, snapshot.control, snapshot.values)
        self.snapshots[snapshot.id] = rotten
        self.is_suspect = True
        return True

    # Recovery.

    @property
    def is_estranged(self) -> bool:
        """Whether it has committed records that a recovery has given up."""
        return self.keeps_below is not None

    @property
    def last_floor(self) -> Floor:
        """The floor as a reader finds it, if quorum-state still has its epoch."""
        return trusted_floor(self._floors[-1], None if self.election is None else self.election.leader_epoch)

    @property
    def recovered_epoch(self) -> int:
        """The epoch of a node that starts now."""
        return max(0 if self.election is None else self.election.leader_epoch, self.last_epoch)

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, in the log or in a snapshot."""
        if self.batches:
            return self.batches[-1].epoch
        latest = self.latest_snapshot
        return 0 if latest is None else latest.id.epoch

    def recover(self) -> DurableState:
        """Open the files as a starting node does: verify, truncate, flush."""
        self.parts.clear()
        floor = self.last_floor
        if self.is_suspect:
            self._verify(floor)
            self.is_suspect = False
        self.committed_offset = committed_end(floor, self.end_offset)
        self._follow_snapshot()
        if self.given_up_from is not None:
            known = max(self.committed_offset, self._covered)
            self.keeps_below = known if known > self.given_up_from else None
        self._set_flushed(self.end_offset)
        self._write_floor(flush=True)
        return DurableState(
            election=self.election,
            log_start_offset=self.start_offset,
            log_end_offset=self.end_offset,
            log_size_bytes=self.size_bytes,
            epochs=self._epochs(),
            snapshots=[snapshot.info for snapshot in self.snapshots.values()],
            control_records=self._control_records(),
            committed_offset=self.committed_offset,
            lost_below_offset=self.lost_below,
            no_vote_up_to_epoch=self.no_vote_up_to_epoch,
        )

    def _verify(self, floor: Floor) -> None:
        for snapshot_id in [id for id, snapshot in self.snapshots.items() if not snapshot.is_whole]:
            del self.snapshots[snapshot_id]
        self._verify_log(floor)
        if self.start_offset > self._covered:
            self._format_anew()

    def _follow_snapshot(self) -> None:
        """Start an empty log at the end of the newest snapshot if the log doesn't reach that far."""
        latest = self.latest_snapshot
        last_epoch = self.batches[-1].epoch if self.batches else 0
        if latest is not None and is_ahead(latest.id, self.start_offset, self.end_offset, last_epoch):
            self._begin_at(latest.id.end_offset)

    @property
    def _covered(self) -> int:
        latest = self.latest_snapshot
        return 0 if latest is None else latest.id.end_offset

    def _verify_log(self, floor: Floor) -> None:
        """Truncate the log at its first bad batch, which is a torn tail or damage."""
        bad = self._first_bad()
        if bad is None:
            return
        offset, rest = self.bases[bad], self.batches[bad:]
        has_hole = not any(rest[0].data)
        if not is_torn_tail(
            offset,
            floor.offset,
            has_hole=has_hole,
            is_cut_off=len(rest[0].data) < size_of_batch(rest[0].data),
            whole_batch_after=not has_hole and any(is_intact(batch.data) for batch in rest),
        ):
            self._lost(self.end_offset)
        while self.end_offset > offset:
            self._drop_last()

    def _first_bad(self) -> int | None:
        max_epoch = None if self.election is None else self.election.leader_epoch
        chain = BatchChain(self.bases[0] if self.bases else 0, max_epoch)
        for index, batch in enumerate(self.batches):
            try:
                whole, size_bytes = split_batches(batch.data)
                if size_bytes < len(batch.data):
                    return index
                chain.take(0, whole[0])
            except LogError:
                return index
        return None

    def _lost(self, end_offset: int) -> None:
        self.lost_below = max(self.lost_below or 0, lost_below(self._floors[-1].offset, end_offset))

    def _format_anew(self) -> None:
        """Start an empty log at 0, because no snapshot covers the log's start, and note the loss."""
        self._lost(max(self.end_offset, *(snapshot_id.end_offset for snapshot_id in self.snapshots), 0))
        self.snapshots = {} if self._formatted is None else {self._formatted.id: self._formatted}
        self._begin_at(0)

    def _epochs(self) -> EpochCache:
        epochs = EpochCache()
        for batch in self.batches:
            if batch.epoch != epochs.latest_epoch:
                epochs.assign(batch.epoch, batch.base_offset)
        return epochs

    def _control_records(self) -> list[tuple[int, Message]]:
        latest, covered = self.latest_snapshot, self._covered
        records = [] if latest is None else [(covered - 1, message) for message in latest.control]
        return records + list(control_records(each for each in self.batches if each.base_offset >= covered))

    def voters_records(self) -> list[tuple[int, VotersRecord]]:
        """Return the records of voter sets in the newest snapshot and in the log, with their offsets."""
        return voters_among(self._control_records())

    def control_at(self, end_offset: int) -> list[Message]:
        """Return the control records of a snapshot that ends at ``end_offset``."""
        latest: dict[type[Message], Message] = {
            type(message): message for offset, message in self._control_records() if offset < end_offset
        }
        return [latest[kind] for kind in (KRaftVersionRecord, VotersRecord) if kind in latest]
