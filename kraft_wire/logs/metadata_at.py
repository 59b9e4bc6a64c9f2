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
from kraft_wire.logs.ranges import without_state
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


class _LaterSnapshot(Exception):
    """A snapshot holds records that were written after the wanted time."""


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

    A snapshot that is damaged, or holds later records than are wanted, is passed over if there is an older
    one, or the log from its beginning.

    Raises MissingMoment, DamagedLog, DataLoss, ReplayError, CorruptBatch, ProtocolError, and the errors of
    the store.
    """
    if moment.offset is not None and moment.offset >= bounds.end.offset:
        raise _not_reached(bounds, moment.offset)
    problem: DamagedLog | None = None
    for start in _starts(bounds, moment):
        then = MetadataThen(bounds.cluster, MetadataState(), QuorumThen(), bounds.committed_end_offset)
        try:
            if start is not None:
                _take_snapshot(then, store, start, moment)
        except _LaterSnapshot:
            continue
        except DamagedLog as error:
            problem = problem or error
            continue
        _take_log(then, store, bounds, start, moment)
        return then
    if problem is not None:
        raise problem
    raise MissingMoment(f"cluster {bounds.cluster}: that time isn't there any more; the log begins later")


def take_earlier_election(then: MetadataThen, store: LogStore[Any], bounds: LogBounds) -> None:
    """Find out who led, and who voted in a static quorum, from the part of the log before the snapshot that
    was read: snapshots don't say it. If that part is damaged or gone, it stays unknown."""
    last = None
    wanted = LogRange(bounds.cluster, bounds.start_offset, then.offset + 1)
    try:
        with closing(_batches(store, wanted)) as batches:
            for batch in batches:
                if batch.header.is_control and batch.header.last_offset <= then.offset:
                    last = next(filter(_is_election, decode_control_batch(batch)), last)
    except DamagedLog:
        return
    if last is not None:
        then.quorum.take(last)


def _is_election(message: Message) -> bool:
    return isinstance(message, LeaderChangeMessage)


def _starts(bounds: LogBounds, moment: Moment) -> list[SnapshotId | None]:
    """Return the snapshots to begin with, the newest first; None is the beginning of the log.

    Raises MissingMoment for an offset that was deleted, DataLoss if no snapshot reaches the log.
    """
    snapshots = [each for each in bounds.snapshots if bounds.start_offset <= each.end_offset]
    fit = [
        each
        for each in snapshots
        if each.end_offset <= bounds.end.offset
        and (moment.offset is None or each.end_offset <= moment.offset + 1)
    ]
    starts: list[SnapshotId | None] = [*reversed(fit)]
    if bounds.start_offset == 0:
        starts.append(None)
    elif moment.offset is not None and snapshots and not fit:
        raise MissingMoment(
            f"cluster {bounds.cluster}: offset {moment.offset} isn't there any more; the first that can be "
            f"shown is {snapshots[0].end_offset - 1}"
        )
    if not starts:
        raise without_state(bounds)
    return starts


def _not_reached(bounds: LogBounds, offset: int) -> LogError:
    if bounds.damage is not None:
        return _damaged(bounds.damage, bounds.end.offset - 1)
    if bounds.end.offset == 0:
        return MissingMoment(f"cluster {bounds.cluster}: the log is empty")
    return MissingMoment(
        f"cluster {bounds.cluster}: offset {offset} isn't there yet: the last record has offset "
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
                    raise _LaterSnapshot


def _take_log(
    then: MetadataThen, store: LogStore[Any], bounds: LogBounds, start: SnapshotId | None, moment: Moment
) -> None:
    """Apply the log from a snapshot, or from its beginning, up to the moment."""
    start_offset = 0 if start is None else start.end_offset
    end_offset = bounds.end.offset if moment.offset is None else moment.offset + 1
    wanted = LogRange(bounds.cluster, start_offset, end_offset, None, bounds.committed_end_offset)
    with closing(_batches(store, wanted)) as batches:
        for batch in batches:
            if moment.time_ms is not None and batch.header.base_timestamp > moment.time_ms:
                break
            _take(then, batch, end_offset)
        else:
            if moment.offset is None and bounds.damage is not None:
                raise _damaged(bounds.damage, then.offset)
    if then.offset == UNKNOWN and moment.time_ms is not None:
        what = "the first record was written after that time" if bounds.end.offset else "the log is empty"
        raise MissingMoment(f"cluster {bounds.cluster}: {what}")


def _take(then: MetadataThen, batch: Batch, end_offset: int) -> None:
    """Apply a batch, or its records before ``end_offset``."""
    header = batch.header
    if header.is_control:
        for message in decode_control_batch(batch):
            then.quorum.take(message)
    elif header.next_offset <= end_offset:
        then.state.replay_batch(batch)
    else:
        then.state.replay_values(record_values(batch)[: end_offset - header.base_offset], header.base_offset)
    then.offset = min(header.last_offset, end_offset - 1)
    then.epoch, then.time_ms = header.leader_epoch, header.max_timestamp


def _batches(store: LogStore[Any], wanted: LogRange) -> Generator[Batch]:
    """Yield the batches of a range in the order of the log, or those of a snapshot. Raises DamagedLog."""
    last_offset = wanted.start_offset - 1
    for piece in store.pieces(wanted):
        for page in store.pages(piece):
            if isinstance(page, Damage):
                raise _damaged_snapshot(page) if wanted.snapshot else _damaged(page, last_offset)
            for batch in _batches_of(page):
                last_offset = batch.header.last_offset
                yield batch


def _damaged_snapshot(damage: Damage) -> DamagedLog:
    return DamagedLog(
        f"{damage.file}: the snapshot is damaged at byte {damage.position}: {damage.reason}. What it holds "
        "can't be known, and there is no older snapshot; read another controller's log"
    )


def _damaged(damage: Damage, last_offset: int) -> DamagedLog:
    before = "" if last_offset < 0 else f"; --as-of-offset {last_offset} shows the one before it"
    return DamagedLog(
        f"{damage.file}: {damage}. The state after the damage can't be known{before}. Or read another "
        "controller's log"
    )


def _batches_of(placed: PlacedPage) -> Iterator[Batch]:
    page = placed.page
    for position, header in sorted([*page.batches, *page.control_batches], key=lambda batch: batch[0]):
        yield Batch(header, page.chunk.data[position : position + header.size_bytes])
