"""Build the metadata of a moment: from a snapshot before it, and the log up to it.

The log may be that of a live quorum or lie in folders, and Java's controllers may have written it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, Final

import msgspec

from kraft_wire.log.batch import Batch, record_values
from kraft_wire.log.control import decode_control_batch
from kraft_wire.log.errors import LogError
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.logs.places import PlacedPage
from kraft_wire.logs.ranges import beginning, newest_state
from kraft_wire.logs.store import Damage, LogBounds, LogRange, LogStore
from kraft_wire.metadata.state import MetadataState
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.raft.membership.voters import Voter, voters_of_record

UNKNOWN: Final = -1


class MissingMoment(LogError):
    """A moment that the log doesn't reach. The text says why, and what there is."""


class DamagedLog(LogError):
    """A log whose state can't be known after some offset. The text names the damage, and what to do."""


class Moment(msgspec.Struct, frozen=True):
    """The moment after the record at ``offset``, or before the first record that was written after
    ``time_ms``, in milliseconds since 1970. Without either it is the end of the log."""

    offset: int | None = None
    time_ms: int | None = None


class QuorumThen(msgspec.Struct):
    """What control records say of the quorum. ``voters`` is empty for a static quorum, whose voters the
    leader names when it is elected: ``static_voter_ids``. ``leader_id`` is UNKNOWN right after a snapshot."""

    kraft_version: int = 0
    voters: tuple[Voter, ...] = ()
    static_voter_ids: tuple[int, ...] = ()
    leader_id: int = UNKNOWN

    def take(self, message: Message) -> None:
        """Apply a control record."""
        if isinstance(message, KRaftVersionRecord):
            self.kraft_version = message.kraft_version
        elif isinstance(message, VotersRecord):
            self.voters = tuple(voters_of_record(message).voters)
        elif isinstance(message, LeaderChangeMessage):
            self.leader_id = message.leader_id
            self.static_voter_ids = tuple(voter.voter_id for voter in message.voters)


class MetadataThen(msgspec.Struct):
    """The metadata of a moment.

    ``offset``, ``epoch`` and ``time_ms`` are those of the last record, UNKNOWN without one.
    ``committed_end_offset`` is where the part of the log that is known to be committed ends; None if nothing
    is known.
    """

    cluster_id: str
    state: MetadataState
    quorum: QuorumThen
    committed_end_offset: int | None
    offset: int = UNKNOWN
    epoch: int = UNKNOWN
    time_ms: int = UNKNOWN

    @property
    def may_be_uncommitted(self) -> bool:
        """Whether the last record isn't known to be committed."""
        return self.committed_end_offset is None or self.offset >= self.committed_end_offset


def metadata_at(store: LogStore[Any], bounds: LogBounds, moment: Moment) -> MetadataThen:
    """Replay the log of the cluster with these bounds up to a moment.

    Raises MissingMoment, DamagedLog, DataLoss, ReplayError, CorruptBatch, ProtocolError, and the errors of
    the store.
    """
    _check_offset(bounds, moment)
    end_offset = None if moment.offset is None else moment.offset + 1
    start = beginning(bounds) if moment.time_ms is not None else newest_state(bounds, end_offset)
    then = MetadataThen(bounds.cluster, MetadataState(), QuorumThen(), bounds.committed_end_offset)
    if start.snapshot:
        _take_snapshot(then, store, SnapshotId(start.offset, start.epoch), moment)
    wanted = LogRange(
        bounds.cluster, start.offset, end_offset or bounds.end.offset, None, bounds.committed_end_offset
    )
    with closing(_batches(store, wanted)) as batches:
        for batch in batches:
            if moment.time_ms is not None and batch.header.base_timestamp > moment.time_ms:
                break
            _take(then, batch, wanted.end_offset)
    if then.offset == UNKNOWN and moment.time_ms is not None:
        raise MissingMoment(f"cluster {bounds.cluster}: the first record was written after that time")
    return then


def _check_offset(bounds: LogBounds, moment: Moment) -> None:
    if moment.offset is not None and moment.offset >= bounds.end.offset:
        raise MissingMoment(
            f"cluster {bounds.cluster}: offset {moment.offset} isn't there yet: the last record has offset "
            f"{bounds.end.offset - 1}"
        )


def _take_snapshot(then: MetadataThen, store: LogStore[Any], snapshot_id: SnapshotId, moment: Moment) -> None:
    end_offset = snapshot_id.end_offset
    wanted = LogRange(then.cluster_id, end_offset, end_offset, snapshot_id)
    with closing(_batches(store, wanted)) as batches:
        then.state = MetadataState.from_snapshot_values(_values(then, batches, moment), end_offset - 1)
    then.offset, then.epoch = end_offset - 1, snapshot_id.epoch


def _values(then: MetadataThen, batches: Iterator[Batch], moment: Moment) -> Iterator[list[bytes]]:
    """Yield the data records of a snapshot, and take its control records."""
    for batch in batches:
        if not batch.header.is_control:
            yield record_values(batch)
            continue
        for message in decode_control_batch(batch):
            then.quorum.take(message)
            if isinstance(message, SnapshotHeaderRecord):
                then.time_ms = message.last_contained_log_timestamp
                if moment.time_ms is not None and then.time_ms > moment.time_ms:
                    raise MissingMoment(
                        f"cluster {then.cluster_id}: the log begins with a snapshot of a later time"
                    )


def _take(then: MetadataThen, batch: Batch, end_offset: int | None) -> None:
    """Apply a batch, or its records before ``end_offset``."""
    header = batch.header
    if header.is_control:
        for message in decode_control_batch(batch):
            then.quorum.take(message)
    elif end_offset is None or header.next_offset <= end_offset:
        then.state.replay_batch(batch)
    else:
        then.state.replay_values(record_values(batch)[: end_offset - header.base_offset], header.base_offset)
    last = header.last_offset if end_offset is None else min(header.last_offset, end_offset - 1)
    then.offset, then.epoch, then.time_ms = last, header.leader_epoch, header.max_timestamp


def _batches(store: LogStore[Any], wanted: LogRange) -> Generator[Batch]:
    """Yield the batches of a range in the order of the log. Raises DamagedLog."""
    for piece in store.pieces(wanted):
        for page in store.pages(piece):
            if isinstance(page, Damage):
                raise DamagedLog(
                    f"{page.file}: {page}. The state after the damage can't be known; ask for one before it, "
                    f"with --as-of-offset {page.offset - 1}, or read another controller's log"
                )
            yield from _batches_of(page)


def _batches_of(placed: PlacedPage) -> Iterator[Batch]:
    page = placed.page
    for position, header in sorted([*page.batches, *page.control_batches], key=lambda batch: batch[0]):
        yield Batch(header, page.chunk.data[position : position + header.size_bytes])
