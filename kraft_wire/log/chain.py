"""Decide which batch may follow which in a metadata log.

A batch's checksum covers neither its base offset nor its leader epoch. Both are checked against the batches
around it: offsets have no gaps, epochs don't go back, and an epoch begins with its leader's LeaderChange
record and nowhere else.
"""

from __future__ import annotations

from kraft_wire.log.batch import Batch, BatchHeader
from kraft_wire.log.control import decode_control_batch, starts_epoch
from kraft_wire.log.epochs import EpochCache
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.protocol.messages.voters_record import VotersRecord


def offset_problem(header: BatchHeader, next_offset: int) -> str:
    """Return why a batch can't begin at ``next_offset``; empty if it does."""
    return (
        ""
        if header.base_offset == next_offset
        else f"the batch there begins with offset {header.base_offset}"
    )


def header_problem(header: BatchHeader, next_offset: int, last_epoch: int | None) -> str:
    """Return why a batch can't follow a log that ends at ``next_offset``, by its header alone; empty if it
    can.

    ``last_epoch`` is the epoch of the log's last record; None if it isn't known.
    """
    problem = offset_problem(header, next_offset)
    if not problem and last_epoch is not None and header.leader_epoch < last_epoch:
        return f"its epoch {header.leader_epoch} comes after epoch {last_epoch}"
    return problem


def batch_problem(batch: Batch, next_offset: int, last_epoch: int | None) -> str:
    """Return why a batch can't follow a log that ends at ``next_offset``; empty if it can.

    As ``header_problem``, and an epoch must begin with its leader's record.
    """
    problem = header_problem(batch.header, next_offset, last_epoch)
    if problem:
        return problem
    epoch = batch.header.leader_epoch
    try:
        is_first = starts_epoch(batch)
    except CorruptBatch as error:
        return error.reason
    if last_epoch is None or is_first == (epoch > last_epoch):
        return ""
    if is_first:
        return f"it begins with a leader's record, and epoch {epoch} began before"
    return f"epoch {epoch} does not begin with its leader's record, after epoch {last_epoch}"


class BatchChain:
    """The end of a log that is read batch by batch; each batch must be able to follow it.

    ``max_epoch`` is the epoch in quorum-state, which no batch may exceed; None if that isn't known.
    ``after_epoch`` is the epoch of the record before the first batch, if it is known.
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
        """Add a data batch of the same epoch, by its header alone. Returns False, and adds nothing, for any
        other batch: use ``take``."""
        is_next = header.base_offset == self.next_offset and header.leader_epoch == self._latest_epoch
        if header.is_control or not is_next:
            return False
        self.next_offset = header.next_offset
        self.batch_count += 1
        return True

    def take(self, position: int, batch: Batch) -> None:
        """Add a batch. Raises CorruptBatch, with ``position``, if it can't come next."""
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
        """Whether the batch's only problem is that its epoch is above the one in quorum-state."""
        is_ahead = self.max_epoch is not None and batch.header.leader_epoch > self.max_epoch
        return is_ahead and not batch_problem(batch, self.next_offset, self._latest_epoch)

    def _problem(self, batch: Batch) -> str:
        problem = batch_problem(batch, self.next_offset, self._latest_epoch)
        epoch = batch.header.leader_epoch
        if not problem and self.max_epoch is not None and epoch > self.max_epoch:
            return f"its epoch {epoch} is above {self.max_epoch}, the last one in quorum-state"
        return problem


def last_voters(batch: Batch) -> VotersRecord | None:
    """Return the batch's last VotersRecord; None if it has none or can't be decoded."""
    if not batch.header.is_control:
        return None
    try:
        messages = decode_control_batch(batch)
    except CorruptBatch:
        return None
    return next((message for message in reversed(messages) if isinstance(message, VotersRecord)), None)
