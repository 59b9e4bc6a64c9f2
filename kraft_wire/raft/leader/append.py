"""Append records as the leader, and commit what is flushed."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_wire.log.batch import encode_framed_batch
from kraft_wire.log.control import encode_control_batch
from kraft_wire.protocol.message import Message
from kraft_wire.raft.effects import AppendBatch
from kraft_wire.raft.errors import NotLeader
from kraft_wire.raft.events import Flushed, Propose
from kraft_wire.raft.membership.voters import VoterSet
from kraft_wire.raft.quorum_state import QuorumState


def propose(quorum: QuorumState, event: Propose) -> None:
    """Append the state machine's records as one batch.

    Raises NotLeader, also during a shutdown, and BatchTooLarge for a batch above 8 MiB.
    """
    if quorum.leadership is None or quorum.is_shutting_down:
        raise NotLeader(quorum.epoch, quorum.leader_id)
    data = encode_framed_batch(quorum.log.end_offset, quorum.epoch, quorum.now.wall_ms, event.records)
    _append(quorum, data, event.records.count)


def append_voters(quorum: QuorumState, voters: VoterSet) -> None:
    """Append a voter set, which counts from now on."""
    append_control(quorum, [voters.to_record()])


def append_control(quorum: QuorumState, messages: Sequence[Message]) -> None:
    """Append a control batch. Its voter set is used at once."""
    base_offset = quorum.log.end_offset
    data = encode_control_batch(base_offset, quorum.epoch, quorum.now.wall_ms, messages)
    _append(quorum, data, len(messages))
    for offset, message in enumerate(messages, base_offset):
        quorum.history.apply(offset, message)
    if quorum.leadership is not None:
        quorum.leadership.adopt(quorum.history.voters, quorum.now.monotonic_ms)


def _append(quorum: QuorumState, data: bytes, record_count: int) -> None:
    base_offset = quorum.log.end_offset
    next_offset = base_offset + record_count
    quorum.log.note_append(quorum.epoch, next_offset, len(data))
    quorum.emit(AppendBatch(data, base_offset, next_offset - 1, quorum.epoch))


def handle_flushed(quorum: QuorumState, event: Flushed) -> None:
    """Count the leader's own log up to the flushed offset. Records that aren't flushed don't count."""
    quorum.log.note_flush(event.end_offset, event.generation)
    quorum.check_loss_made_good()
    leadership = quorum.leadership
    if leadership is not None and leadership.note_flush(quorum.log.flushed_offset):
        quorum.announce_high_watermark()
