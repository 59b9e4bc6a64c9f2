"""What a leader sent, before it is believed."""

from __future__ import annotations

from typing import NamedTuple

from kraft_wire.log.batch import Batch, split_batches
from kraft_wire.log.control import decode_control_batch, starts_epoch
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.protocol.message import Message
from kraft_wire.raft.history import why_unsupported


class Fetched(NamedTuple):
    """A batch, and what its control records say, in order; a batch of data has none."""

    batch: Batch
    control: list[Message]


def fetched_batches(data: bytes, next_offset: int, last_epoch: int, leader_epoch: int) -> list[Fetched]:
    """The whole batches of ``data``, which follow a log that ends at ``next_offset`` with ``last_epoch``.

    A batch that is cut off at the end is left for the next Fetch. Raises CorruptBatch, its position that in
    ``data``, for a bad checksum, for a batch that can't be there in a log of ``leader_epoch``'s leader, and
    for control records that say nothing known: only a newer release can go by them.
    """
    batches, _ = split_batches(data)
    fetched = []
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
        fetched.append(Fetched(batch, _control(batch, position)))
        next_offset, last_epoch = header.next_offset, header.leader_epoch
        position += len(batch.data)
    return fetched


def _control(batch: Batch, position: int) -> list[Message]:
    if not batch.header.is_control:
        return []
    messages = decode_control_batch(batch)
    reason = why_unsupported(messages)
    if reason is not None:
        raise CorruptBatch(position, batch.header.base_offset, reason)
    return messages
