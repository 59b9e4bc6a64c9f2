"""What a leader sent, before it is believed."""

from __future__ import annotations

from kraft_wire.log.batch import Batch, split_batches
from kraft_wire.log.control import starts_epoch
from kraft_wire.log.errors import CorruptBatch


def fetched_batches(data: bytes, next_offset: int, last_epoch: int, leader_epoch: int) -> list[Batch]:
    """The whole batches of ``data``, which follow a log that ends at ``next_offset`` with ``last_epoch``.

    A batch that is cut off at the end is left for the next Fetch. Raises CorruptBatch, its position that in
    ``data``, for a bad checksum, and for a batch that can't be there in a log of ``leader_epoch``'s leader.
    """
    batches, _ = split_batches(data)
    position = 0
    for batch in batches:
        header = batch.header
        if header.base_offset != next_offset:
            raise CorruptBatch(position, next_offset, f"it says offset {header.base_offset}")
        if not last_epoch <= header.leader_epoch <= leader_epoch:
            reason = f"its epoch {header.leader_epoch} is not between {last_epoch} and {leader_epoch}"
            raise CorruptBatch(position, next_offset, reason)
        # A checksum doesn't cover the epoch.
        if starts_epoch(batch) != (header.leader_epoch > last_epoch):
            reason = f"epoch {header.leader_epoch} begins with its leader's record, and here it is not so"
            raise CorruptBatch(position, next_offset, reason)
        next_offset, last_epoch = header.next_offset, header.leader_epoch
        position += len(batch.data)
    return batches
