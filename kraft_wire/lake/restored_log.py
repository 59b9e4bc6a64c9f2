"""Write rows of the table ``records`` as a metadata log, as a follower would: batch by batch, and again from
a snapshot where records are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from kraft_wire.log.batch import (
    HEADER_SIZE_BYTES,
    MAX_BATCH_SIZE_BYTES,
    RECORD_OVERHEAD_BYTES,
    encode_batch,
)
from kraft_wire.log.control import CONTROL_RECORD_VERSION, encode_control_batch
from kraft_wire.log.errors import LogError
from kraft_wire.log.snapshot import SnapshotId, encode_snapshot, snapshot_file_name
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.kraft_version_record import KRaftVersionRecord
from kraft_wire.protocol.messages.leader_change_message import LeaderChangeMessage
from kraft_wire.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.protocol.messages.voters_record import VotersRecord
from kraft_wire.protocol.metadata_record import encode_metadata_record
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.log.metadata_log import MetadataLog
from kraft_wire.storage.snapshots.snapshot_store import write_snapshot
from kraft_wire.tabular.record_rows import BadRow, RecordRow

Content = bytes | Message
"""A metadata record's value, or a control record's message."""

_MAX_RECORDS_BYTES: Final = MAX_BATCH_SIZE_BYTES - HEADER_SIZE_BYTES


class MissingRows(LogError):
    """Records that are in no row, and in no later snapshot."""


class _Pending(NamedTuple):
    """A row whose batch isn't written yet."""

    row: RecordRow
    content: Content


class RestoredLog:
    """The log in a folder.

    Rows must come in the order of their offsets, and of their epochs for equal offsets; the rows of a
    snapshot after the row of its last offset, in the snapshot's order.

    A row of a later epoch with an offset that was there already, or after such rows, shows that the log was
    truncated: the superseded rows are left out. The last row is pending, because the next row may supersede
    it.
    """

    def __init__(self, partition: Path, disk: Disk) -> None:
        self.kraft_version = 0
        self.snapshot_id: SnapshotId | None = None
        self.last_timestamp_ms = 0
        self.superseded_count = 0
        self._partition = partition
        self._disk = disk
        self._log = MetadataLog.open(partition, disk)
        self._pending: list[_Pending] = []
        self._pending_bytes = 0
        self._missing_offset: int | None = None

    @property
    def start_offset(self) -> int:
        return self._log.start_offset

    @property
    def end_offset(self) -> int:
        return self._log.end_offset + len(self._pending)

    @property
    def epoch(self) -> int:
        """The epoch of the last record; 0 without records."""
        if self._pending:
            return self._pending[-1].row.epoch
        of_snapshot = 0 if self.snapshot_id is None else self.snapshot_id.epoch
        return max(self._log.epochs.latest_epoch or 0, of_snapshot)

    def add(self, rows: Iterable[RecordRow]) -> None:
        """Add all rows. Raises BadRow, MissingRows, BatchTooLarge, DiskFailed."""
        for snapshot_id, group in groupby(rows, _snapshot_id):
            if snapshot_id is None:
                for row in group:
                    self._append(row)
            elif self._missing_offset is not None or self.end_offset < snapshot_id.end_offset:
                self._begin_at(snapshot_id, group)
        self._write_pending()
        if self._missing_offset is not None:
            raise MissingRows(f"there is no row of offset {self._missing_offset}, and no later snapshot")

    def append_control(self, message: Message) -> None:
        """Append a control record that is in no row, with the last epoch and time. Raises DiskFailed."""
        batch = encode_control_batch(self.end_offset, self.epoch, self.last_timestamp_ms, [message])
        self._log.append([batch])

    def settle(self) -> None:
        """Flush everything and mark it as committed. Raises DiskFailed."""
        self._log.note_quorum_epoch(self.epoch)
        self._log.note_committed(self._log.end_offset)
        self._log.flush()

    def close(self) -> None:
        """Close the log. Raises DiskFailed."""
        self._log.close()

    # --- the log

    def _append(self, row: RecordRow) -> None:
        if row.epoch < self.epoch:
            self.superseded_count += 1
            return
        if self._pending and row.offset == self.end_offset - 1 and row.epoch > self.epoch:
            self._drop_last_pending()
        if row.offset < self.end_offset:
            raise BadRow(row, "the offset was there before; rows must be in order, each of them once")
        if row.offset > self.end_offset and self._missing_offset is None:
            self._write_pending()
            self._missing_offset = self.end_offset
        if self._missing_offset is None:
            self._add_pending(row)

    def _add_pending(self, row: RecordRow) -> None:
        content = _content(row)
        size_bytes = _size_bytes(content)
        if self._pending and (
            _batch_key(row) != _batch_key(self._pending[-1].row)
            or isinstance(content, LeaderChangeMessage)
            or self._pending_bytes + size_bytes > _MAX_RECORDS_BYTES
        ):
            self._write_pending()
        self._pending.append(_Pending(row, content))
        self._pending_bytes += size_bytes

    def _drop_last_pending(self) -> None:
        _, content = self._pending.pop()
        self._pending_bytes -= _size_bytes(content)
        self.superseded_count += 1

    def _write_pending(self) -> None:
        if not self._pending:
            return
        first = self._pending[0].row
        contents = [content for _, content in self._pending]
        self._log.append([_encoded(first, contents)])
        for content in contents:
            self._note(content)
        self.last_timestamp_ms = first.timestamp_ms
        self._clear_pending()

    def _clear_pending(self) -> None:
        self._pending.clear()
        self._pending_bytes = 0

    def _note(self, content: Content) -> None:
        if isinstance(content, KRaftVersionRecord):
            self.kraft_version = content.kraft_version

    # --- snapshots

    def _begin_at(self, snapshot_id: SnapshotId, rows: Iterator[RecordRow]) -> None:
        """Start again with a snapshot: the rows before don't reach it."""
        self._clear_pending()
        self.kraft_version = 0
        snapshot = _SnapshotRows(rows)
        for message in snapshot.control:
            self._note(message)
        timestamp_ms = snapshot.header.last_contained_log_timestamp
        chunks = encode_snapshot(snapshot_id, snapshot.control, snapshot.values(), timestamp_ms, timestamp_ms)
        write_snapshot(self._partition, snapshot_id, chunks, self._disk)
        if self.snapshot_id is not None:
            self._disk.remove(self._partition / snapshot_file_name(self.snapshot_id))
        self._log.reset_to(snapshot_id.end_offset)
        self.snapshot_id = snapshot_id
        self.last_timestamp_ms = timestamp_ms
        self._missing_offset = None


class _SnapshotRows:
    """A snapshot's rows: header, other control records, metadata records, footer. Raises BadRow."""

    def __init__(self, rows: Iterator[RecordRow]) -> None:
        self._rows = rows
        self._last = next(rows)
        header = self._last.message()
        if not isinstance(header, SnapshotHeaderRecord):
            raise BadRow(self._last, f"the first record of a snapshot is its header, not {self._last.type}")
        self.header = header
        self.control: list[Message] = []
        self._take_next()
        while self._last.type in (KRaftVersionRecord.NAME, VotersRecord.NAME):
            self.control.append(self._last.message())
            self._take_next()

    def values(self) -> Iterator[bytes]:
        while self._last.type != SnapshotFooterRecord.NAME:
            content = _content(self._last)
            if not isinstance(content, bytes):
                raise BadRow(self._last, f"{self._last.type} is out of place")
            yield content
            self._take_next()

    def _take_next(self) -> None:
        following = next(self._rows, None)
        if following is None:
            raise BadRow(self._last, "the snapshot has no footer: some of its rows are missing")
        self._last = following


def _snapshot_id(row: RecordRow) -> SnapshotId | None:
    return SnapshotId(row.offset + 1, row.epoch) if row.in_snapshot else None


def _batch_key(row: RecordRow) -> tuple[int, int, bool]:
    return row.epoch, row.timestamp_ms, row.is_control


def _content(row: RecordRow) -> Content:
    message = row.message()
    if not row.is_control:
        return encode_metadata_record(message, row.version)
    if row.version != CONTROL_RECORD_VERSION:
        raise BadRow(row, f"{row.type} is written at version {CONTROL_RECORD_VERSION}, not {row.version}")
    return message


def _size_bytes(content: Content) -> int:
    """Return the size in a batch. Control records count as 0: they are few and small."""
    return RECORD_OVERHEAD_BYTES + len(content) if isinstance(content, bytes) else 0


def _encoded(first: RecordRow, contents: list[Content]) -> bytes:
    place = first.offset, first.epoch, first.timestamp_ms
    values = [content for content in contents if isinstance(content, bytes)]
    if values:
        return encode_batch(*place, values)
    return encode_control_batch(*place, [content for content in contents if isinstance(content, Message)])
