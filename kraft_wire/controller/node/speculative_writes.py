"""Apply records before they are committed, and hold responses back until they are.

A handler decides on a state that contains every earlier decision, committed or not. Its records are applied
at once, with an undo journal. Its response is parked with the log end offset of that moment, and is sent when
the high watermark reaches it. So a response never shows or acknowledges anything that could still be lost
(the rule of Kafka's DeferredEventQueue). When the leadership is lost, everything after the high watermark is
undone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from kraft_wire.controller.decision.context import ControllerState, Result
from kraft_wire.controller.decision.records import (
    MAX_BATCH_BYTES,
    MAX_RECORDS_PER_BATCH,
    Records,
    TooLargeForBatch,
    VersionedRecord,
    parts_of,
)
from kraft_wire.controller.node.events import ApiRequest
from kraft_wire.log.batch import FramedRecords, frame_values
from kraft_wire.log.record import encode_records
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.raft.errors import InvariantViolated

SINGLE_WEIGHT: Final = 6
"""A record that isn't in columns counts as so many that are: it is undone in 5 to 10 µs."""


class NotApplied(Exception):
    """Records that a handler decided on can't be applied: it is an internal error of the handler."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class PreparedBatch(NamedTuple):
    """The records of one batch, and their bytes."""

    records: Sequence[VersionedRecord]
    framed: FramedRecords


class Released(NamedTuple):
    """A response that may be sent: everything before ``end_offset`` is committed.

    It ``changes`` something if records were written for the request.
    """

    request: ApiRequest
    response: Message
    end_offset: int
    changes: bool


def prepare(result: Result) -> list[PreparedBatch]:
    """Encode the records of a decision that are to be written, one item for each batch.

    Raises ApiError(POLICY_VIOLATION) if an atomic decision does not fit into one batch: a request that is too
    large must fail without ending the leadership (KAFKA-14204).
    """
    batches = prepare_records(result.records, atomic=result.atomic)
    return [] if result.validate_only else batches


def prepare_records(records: Sequence[VersionedRecord], *, atomic: bool) -> list[PreparedBatch]:
    """Encode records as ``prepare`` does."""
    if isinstance(records, Records):
        framed = _framed_parts(records)
        fits = framed.count <= MAX_RECORDS_PER_BATCH and framed.size_bytes <= MAX_BATCH_BYTES
        if not fits and not atomic:
            raise InvariantViolated(f"a piece of work has {framed.count} records, {framed.size_bytes} bytes")
        batches = [PreparedBatch(records, framed)] if len(records) else []
    else:
        batches = list(_split(records))
        fits = len(batches) <= 1
    if atomic and not fits:
        raise TooLargeForBatch(len(records))
    return batches


def undo_weight(batches: Iterable[PreparedBatch]) -> int:
    """Return about how long it would take to undo these records, in records of columns."""
    parts = (part for batch in batches for part in parts_of(batch.records))
    return sum(len(part) * (SINGLE_WEIGHT if isinstance(part, Sequence) else 1) for part in parts)


def _framed_parts(records: Records) -> FramedRecords:
    pieces: list[bytes] = []
    count = 0
    for part in records.parts:
        if isinstance(part, Sequence):
            values = [encode_metadata_record(record, version) for record, version in part]
            pieces += encode_records(values, first_delta=count)
        else:
            pieces.append(part.encode(count))
        count += len(part)
    return FramedRecords(pieces, count)


def _split(records: Sequence[VersionedRecord]) -> Iterator[PreparedBatch]:
    pending = iter(records)
    while chunk := list(islice(pending, MAX_RECORDS_PER_BATCH)):
        yield from _split_by_size(chunk)


def _split_by_size(records: list[VersionedRecord]) -> Iterator[PreparedBatch]:
    values = tuple(encode_metadata_record(record, version) for record, version in records)
    # The framing of a record in a batch takes at most 20 bytes.
    if sum(map(len, values)) + 20 * len(values) <= MAX_BATCH_BYTES:
        yield PreparedBatch(records, frame_values(values))
    elif len(records) == 1:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"one {records[0][0].NAME} takes {len(values[0])} bytes; the limit is {MAX_BATCH_BYTES}",
        )
    else:
        middle = len(records) // 2
        yield from _split_by_size(records[:middle])
        yield from _split_by_size(records[middle:])


class SpeculativeWrites:
    """The decisions that are not committed: applied records and parked responses."""

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._parked: deque[Released] = deque()
        self._committed_offset = 0

    def begin(self, committed_offset: int) -> None:
        """Start recording changes, so that they can be undone down to ``committed_offset``."""
        self._committed_offset = committed_offset
        self._state.metadata.journal.recording = True

    def apply(self, batch: PreparedBatch, base_offset: int) -> None:
        """Apply a batch that is about to be appended at ``base_offset``.

        Raises NotApplied, with nothing changed, for records that contradict the metadata: nobody could replay
        them from the log.
        """
        try:
            self._state.next_offset = self._applied(batch, base_offset)
        except Exception as error:
            self._state.metadata.undo_to(base_offset)
            raise NotApplied(error) from error

    def _applied(self, batch: PreparedBatch, base_offset: int) -> int:
        """Apply the records, and return the offset after the last one."""
        metadata = self._state.metadata
        offset = base_offset
        for part in parts_of(batch.records):
            if isinstance(part, Sequence):
                for position, (record, _) in enumerate(part, offset):
                    metadata.replay(record, position)
            else:
                metadata.apply_columns(part, offset)
            offset += len(part)
        return offset

    def release_when_committed(self, response: Released) -> Released | None:
        """Return the response if everything before its ``end_offset`` is committed, else park it."""
        if response.end_offset <= self._committed_offset:
            return response
        self._parked.append(response)
        return None

    def committed(self, high_watermark: int) -> list[Released]:
        """Return the responses that ``high_watermark`` releases, in the order of their decisions."""
        self._committed_offset = high_watermark
        self._state.metadata.forget_below(high_watermark)
        released = []
        while self._parked and self._parked[0].end_offset <= high_watermark:
            released.append(self._parked.popleft())
        return released

    def revert(self) -> list[ApiRequest]:
        """Undo everything that is not committed. Returns the requests of the parked responses."""
        self._state.metadata.undo_to(self._committed_offset)
        self._state.metadata.journal.recording = False
        requests = [parked.request for parked in self._parked]
        self._parked.clear()
        return requests
