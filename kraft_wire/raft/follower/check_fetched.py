"""Check the batches of a Fetch response before they are appended."""

from __future__ import annotations

from typing import NamedTuple

from kraft_wire.log.batch import Batch, split_batches
from kraft_wire.log.chain import batch_problem
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.protocol.message import Message
from kraft_wire.raft.membership.voter_history import unsupported_reason


class Fetched(NamedTuple):
    """A batch and its control records, in order. A batch of data has none."""

    batch: Batch
    control: list[Message]


def fetched_batches(data: bytes, next_offset: int, last_epoch: int, leader_epoch: int) -> list[Fetched]:
    """Return the complete batches of ``data``, which follow a log that ends at ``next_offset`` with
    ``last_epoch``.

    A batch that is cut off at the end is left for the next Fetch. Raises CorruptBatch, with the position in
    ``data``, for a bad checksum, for a batch that can't follow in the log of ``leader_epoch``'s leader, and
    for control records that only a newer release supports.
    """
    batches, _ = split_batches(data)
    fetched = []
    position = 0
    for batch in batches:
        header = batch.header
        reason = batch_problem(batch, next_offset, last_epoch)
        if not reason and header.leader_epoch > leader_epoch:
            reason = f"its epoch {header.leader_epoch} is above {leader_epoch}, the leader's"
        if reason:
            raise CorruptBatch(position, next_offset, reason)
        fetched.append(Fetched(batch, _control(batch, position)))
        next_offset, last_epoch = header.next_offset, header.leader_epoch
        position += len(batch.data)
    return fetched


def _control(batch: Batch, position: int) -> list[Message]:
    if not batch.header.is_control:
        return []
    messages = decode_control_batch(batch)
    reason = unsupported_reason(messages)
    if reason is not None:
        raise CorruptBatch(position, batch.header.base_offset, reason)
    return messages
