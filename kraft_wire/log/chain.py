"""Whether batches follow each other as those of one metadata log do."""

from __future__ import annotations

from kraft_wire.log.batch import Batch, BatchHeader
from kraft_wire.log.control import decode_control_batch, starts_epoch
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.protocol.messages.voters_record import VotersRecord


class BatchChain:
    """Checks that batches follow each other as those of one metadata log do.

    A checksum covers neither base offset nor leader epoch; these are held against the batches around:
    offsets are contiguous, epochs don't go back, and an epoch begins with its leader's LeaderChange and
    nowhere else. ``after_epoch`` is that of the record before the first, where it is known.
    """

    def __init__(self, next_offset: int, max_epoch: int | None, after_epoch: int | None = None) -> None:
        self.next_offset = next_offset
        self.epochs = EpochCache()
        self.voters: VotersRecord | None = None
        self.batch_count = 0
        self.max_epoch = max_epoch
        self._latest_epoch = after_epoch
        if after_epoch is not None:
            self.epochs.assign(after_epoch, next_offset)

    def take_usual(self, header: BatchHeader) -> bool:
        """Take a data batch of the same epoch without looking at its records; False where it isn't one."""
        is_next = header.base_offset == self.next_offset and header.leader_epoch == self._latest_epoch
        if header.is_control or not is_next:
            return False
        self.next_offset = header.next_offset
        self.batch_count += 1
        return True

    def take(self, position: int, batch: Batch) -> None:
        """Raises CorruptBatch where the batch cannot come next."""
        header = batch.header
        if not self.take_usual(header):
            problem = self._problem(batch)
            if problem:
                raise CorruptBatch(position, self.next_offset, problem)
            self.epochs.assign(header.leader_epoch, header.base_offset)
            self.voters = last_voters(batch) or self.voters
            self._latest_epoch = header.leader_epoch
            self.next_offset = header.next_offset
            self.batch_count += 1

    def is_only_ahead_of_quorum_state(self, batch: Batch) -> bool:
        """Whether all that is wrong with the batch is that quorum-state doesn't know its epoch."""
        is_ahead = self.max_epoch is not None and batch.header.leader_epoch > self.max_epoch
        return is_ahead and not self._problem_in_log(batch)

    def _problem(self, batch: Batch) -> str:
        epoch = batch.header.leader_epoch
        if self.max_epoch is not None and epoch > self.max_epoch:
            problem = f"its epoch {epoch} is above {self.max_epoch}, the last one in quorum-state"
        else:
            problem = ""
        return self._problem_in_log(batch) or problem

    def _problem_in_log(self, batch: Batch) -> str:
        header = batch.header
        latest = self._latest_epoch
        if header.base_offset != self.next_offset:
            return f"it says offset {header.base_offset}"
        if latest is not None and header.leader_epoch < latest:
            return f"its epoch {header.leader_epoch} comes after epoch {latest}"
        try:
            is_first = starts_epoch(batch)
        except CorruptBatch as error:
            return error.reason
        if latest is not None and is_first != (header.leader_epoch > latest):
            return (
                f"epoch {header.leader_epoch} does not begin with its leader's record, after epoch {latest}"
            )
        return ""


def last_voters(batch: Batch) -> VotersRecord | None:
    """The batch's last VotersRecord. Whoever can't read the batch finds none in it."""
    if not batch.header.is_control:
        return None
    try:
        messages = decode_control_batch(batch)
    except CorruptBatch:
        return None
    return next((message for message in reversed(messages) if isinstance(message, VotersRecord)), None)
