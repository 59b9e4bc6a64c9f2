"""Read the records that an exporter wants from the controller's own files, without locks.

Nothing below the high watermark changes any more, and an open file stays readable when it is deleted.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kraft_wire.columnar.gather import Malformed
from kraft_wire.exporters.columns import SnapshotPart, log_columns, part_records, snapshot_columns
from kraft_wire.exporters.cursor import LogView
from kraft_wire.exporters.filters import Filter
from kraft_wire.exporters.kinds import BATCH_BYTES
from kraft_wire.exporters.records import ExportRecord, log_records, snapshot_records
from kraft_wire.exporters.resync.bases import Base
from kraft_wire.log.batch import Batch
from kraft_wire.log.errors import CorruptBatch
from kraft_wire.log.files import LOG_SUFFIX, parse_segment_file_name, segment_file_name
from kraft_wire.log.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotId, parse_snapshot_file_name
from kraft_wire.logs.open_segment import SegmentFile, opened
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import SegmentChanged
from kraft_wire.storage.log.batch_reader import read_batches
from kraft_wire.storage.snapshots.snapshot_store import SnapshotReader, SnapshotStore

if TYPE_CHECKING:
    from kraft_wire.exporters.changes import Changes
    from kraft_wire.metadata.state import MetadataState

MANY: Final = 500
"""So many records are read in columns."""


class NotThere(Exception):
    """Records or a snapshot that the folder doesn't hold, or not any more."""


class Selection(NamedTuple):
    """The wanted records of a part of the log, or of a snapshot. The reading goes on at ``next_offset``; None
    inside a snapshot. ``is_backlog``: there is more to read at once. ``ends_snapshot``: these are the last
    ones of a snapshot."""

    records: Sequence[ExportRecord]
    next_offset: int | None
    is_backlog: bool
    ends_snapshot: bool = False


class FolderReader:
    """A reader for one exporter. ``with_changes``, records of the log say what they change. ``base`` is the
    state that was kept for it; None if none is.

    All methods may block, and raise OSError and LogError for files that can't be read; those that read raise
    NotThere.
    """

    def __init__(
        self,
        folder: Path,
        wanted: Filter,
        *,
        with_changes: bool = False,
        read_bytes: int = BATCH_BYTES,
        base: Base | None = None,
    ) -> None:
        self._folder = folder
        self.base = base
        self._changes = _changes(folder) if with_changes else None
        self._wanted = wanted
        self._read_bytes = read_bytes
        self._knows_topic_ids = not wanted.needs_topic_ids
        self._log = _LogFile(folder)
        self._snapshot: _SnapshotPages | None = None
        self._difference: _Difference | None = None

    def look(self) -> LogView:
        """Return what the folder holds now."""
        bases, snapshots = _listed(self._folder)
        newest = snapshots[-1] if snapshots else None
        kept = None if self.base is None else self.base.offset()
        if bases:
            return LogView(bases[0], newest, kept)
        return LogView(0 if newest is None else newest.end_offset, newest, kept)

    def read_log(self, offset: int, end_offset: int) -> Selection:
        """Return the wanted records of the next batches from ``offset`` on, below ``end_offset``."""
        if not self._knows_topic_ids:
            self._learn_topic_ids(offset)
            self._knows_topic_ids = True
        batches: list[Batch] = []
        size_bytes = 0
        for batch in self._log.batches(offset, end_offset):
            batches.append(batch)
            size_bytes += batch.header.size_bytes
            if size_bytes >= self._read_bytes:
                break
        next_offset = max(offset, self._log.next_offset)
        records = self._log_records(batches, offset)
        return Selection(records, next_offset, is_backlog=offset < next_offset < end_offset)

    def read_snapshot(self, snapshot_id: SnapshotId) -> Selection:
        """Return the wanted records of the next part of a snapshot that has any."""
        if self._snapshot is None or self._snapshot.id != snapshot_id:
            self._forget_snapshot()
            self._snapshot = _SnapshotPages(self._folder, snapshot_id)
        try:
            records, is_last = self._next_wanted(self._snapshot)
        except BaseException:
            self._forget_snapshot()
            raise
        if is_last:
            self._forget_snapshot()
        return self._part_of_state(records, snapshot_id, is_last=is_last)

    def read_difference(self, snapshot_id: SnapshotId) -> Selection:
        """Return the next wanted records of the difference between a snapshot and the state that was kept."""
        found = self._difference
        if found is None or found.snapshot_id != snapshot_id:
            found = self._difference = self._difference_from(snapshot_id)
        records, is_last = found.next_part(self._read_bytes)
        if is_last:
            self._difference = None
        return self._part_of_state(records, snapshot_id, is_last=is_last)

    def _part_of_state(
        self, records: Sequence[ExportRecord], snapshot_id: SnapshotId, *, is_last: bool
    ) -> Selection:
        if not is_last:
            return Selection(records, None, is_backlog=True)
        self._knows_topic_ids = True
        return Selection(records, snapshot_id.end_offset, is_backlog=True, ends_snapshot=True)

    def _difference_from(self, snapshot_id: SnapshotId) -> _Difference:
        """Compute a difference. A topic may have to be known by its id before a partition of it is wanted."""
        from kraft_wire.exporters.resync.difference import difference

        assert self.base is not None, "it is in the view that led here"
        with (
            _if_there("the kept state was deleted"),
            self.base.opened() as before,
            closing(_SnapshotPages(self._folder, snapshot_id)) as after,
        ):
            found = difference(self._learnt(_kept_records(before)), self._learnt(after.all()))
        return _Difference(snapshot_id, list(filter(self._wanted.takes, found)))

    def _learnt(self, records: Iterable[ExportRecord]) -> Iterator[ExportRecord]:
        for record in records:
            self._wanted.learn(record)
            yield record

    def _next_wanted(self, pages: _SnapshotPages) -> tuple[Sequence[ExportRecord], bool]:
        """Return the wanted records of the next part that has any, and whether no part after it has any: the
        next one that has is read as well, and kept."""
        found = pages.read_ahead
        while not pages.is_at_end:
            batches, part = pages.next_part(self._read_bytes)
            records = self._snapshot_records(batches, part)
            if found and records:
                pages.read_ahead = records
                return found, False
            found = found or records
        return found, True

    def close(self) -> None:
        """Close the files."""
        self._log.close()
        self._forget_snapshot()
        self._difference = None

    def _log_records(self, batches: Sequence[Batch], offset: int) -> Sequence[ExportRecord]:
        if self._changes is not None:
            return list(self._changed_records(self._changes, batches, offset))
        if self._are_many(batches):
            with suppress(Malformed):  # one by one, each record says what is wrong with it
                return log_columns(batches, self._wanted, offset)
        return [each for batch in batches for each in log_records(batch) if self._takes(each, offset)]

    def _changed_records(
        self, changes: Changes, batches: Sequence[Batch], offset: int
    ) -> Iterator[ExportRecord]:
        for batch in batches:
            changes.begin_at(batch.header.base_offset)
            for record in log_records(batch):
                is_wanted = self._takes(record, offset)
                if not batch.header.is_control:
                    changes.apply(record, is_wanted=is_wanted)
                if is_wanted:
                    yield record
            changes.end_at(batch.header.next_offset)

    def _snapshot_records(self, batches: Sequence[Batch], part: SnapshotPart) -> Sequence[ExportRecord]:
        if self._are_many(batches):
            with suppress(Malformed):
                return snapshot_columns(batches, self._wanted, part)
        return list(filter(self._wanted.takes, part_records(batches, part)))

    def _are_many(self, batches: Sequence[Batch]) -> bool:
        """Whether columns are worth it, and possible."""
        return self._wanted.is_by_type and sum(batch.header.record_count for batch in batches) >= MANY

    def _takes(self, record: ExportRecord, offset: int) -> bool:
        """Whether a record is wanted. The batch that holds ``offset`` may begin before it."""
        if record.offset < offset:
            self._wanted.learn(record)
            return False
        return self._wanted.takes(record)

    def _learn_topic_ids(self, offset: int) -> None:
        """Show the filter all topics that were created before an offset."""
        bases, snapshots = _listed(self._folder)
        before = [each for each in snapshots if each.end_offset <= offset]
        begin = bases[0] if bases else 0
        if before:
            begin = before[-1].end_offset
            with closing(_SnapshotPages(self._folder, before[-1])) as pages:
                for record in pages.all():
                    self._wanted.learn(record)
        with closing(_LogFile(self._folder)) as log:
            for batch in log.batches(begin, offset):
                for record in log_records(batch):
                    self._wanted.learn(record)

    def _forget_snapshot(self) -> None:
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None


class _Difference:
    """The records that make an earlier state the one of a snapshot, which are exported in parts."""

    def __init__(self, snapshot_id: SnapshotId, records: Sequence[ExportRecord]) -> None:
        self.snapshot_id = snapshot_id
        self._records = records
        self._next = 0

    def next_part(self, read_bytes: int) -> tuple[Sequence[ExportRecord], bool]:
        """Return the next records, and whether they are the last ones."""
        begin, size_bytes = self._next, 0
        while self._next < len(self._records) and size_bytes < read_bytes:
            size_bytes += len(self._records[self._next].value)
            self._next += 1
        return self._records[begin : self._next], self._next == len(self._records)


def _kept_records(reader: SnapshotReader) -> Iterator[ExportRecord]:
    """Yield the records of a kept state, all with the place of the snapshot of format: only their values
    count. Raises CorruptSnapshot."""
    for batch in reader.batches():
        yield from snapshot_records(batch, BOOTSTRAP_SNAPSHOT_ID, 0, 1)


class _SnapshotPages:
    """An open snapshot, which is read in parts. ``read_ahead`` are the records of the part that was read
    last, if they aren't exported yet."""

    def __init__(self, folder: Path, snapshot_id: SnapshotId) -> None:
        self.id = snapshot_id
        self.is_at_end = False
        self.read_ahead: Sequence[ExportRecord] = ()
        with _if_there(f"the snapshot {snapshot_id.end_offset}-{snapshot_id.epoch} was deleted"):
            store = SnapshotStore(folder, Disk())
            with closing(store):
                self._timestamp_ms = store.last_contained_log_timestamp_ms(snapshot_id)
                self._reader = store.open_reader(snapshot_id)
        self._batches = self._reader.batches()
        self._next_index = 1

    def next_part(self, read_bytes: int) -> tuple[list[Batch], SnapshotPart]:
        """Return the next batches and their place."""
        batches: list[Batch] = []
        first_indexes = []
        size_bytes, self.is_at_end = 0, True
        for batch in self._batches:
            batches.append(batch)
            first_indexes.append(self._next_index)
            self._next_index += self._count(batch)
            size_bytes += batch.header.size_bytes
            if size_bytes >= read_bytes:
                self.is_at_end = False
                break
        return batches, SnapshotPart(self.id, self._timestamp_ms, first_indexes)

    def all(self) -> Iterator[ExportRecord]:
        """Yield the records of all parts."""
        while not self.is_at_end:
            batches, part = self.next_part(BATCH_BYTES)
            yield from part_records(batches, part)

    def _count(self, batch: Batch) -> int:
        """Return how many records of a batch are exported."""
        if not batch.header.is_control:
            return batch.header.record_count
        return len(list(snapshot_records(batch, self.id, self._timestamp_ms, 1)))

    def close(self) -> None:
        self._reader.close()


class _LogFile:
    """The segment in which the last reading ended. It stays open, so that the next one needs no search."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fd = -1
        self.base = -1
        self._position = 0
        self.next_offset = -1
        """The offset after the last batch that was read."""

    def batches(self, offset: int, end_offset: int) -> Iterator[Batch]:
        """Yield the batches from the one that holds ``offset`` on, all below ``end_offset``. Raises NotThere,
        CorruptBatch, OSError."""
        if self._fd < 0 or self.next_offset != offset:
            self._open(offset)
        while True:
            is_all = yield from self._rest_of_segment(offset, end_offset)
            if is_all:
                return
            self._open(self.next_offset)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _rest_of_segment(self, offset: int, end_offset: int) -> Generator[Batch, None, bool]:
        """Yield the batches of the open segment. Returns whether there are no more below ``end_offset``.

        Bytes after it aren't looked at: the controller may be writing them just now.
        """
        if self.next_offset >= end_offset:
            return True
        size_bytes = os.fstat(self._fd).st_size
        for position, batch in read_batches(self._fd, self._position, size_bytes):
            header = batch.header
            if header.base_offset != self.next_offset:
                raise CorruptBatch(position, header.base_offset, f"offset {self.next_offset} should follow")
            if header.next_offset > end_offset:
                return True  # no part of a batch is committed before all of it
            self._position = position + header.size_bytes
            self.next_offset = header.next_offset
            if self.next_offset > offset:
                yield batch
            if self.next_offset >= end_offset:
                return True
        return False

    def _open(self, offset: int) -> None:
        """Open the segment that should hold an offset, at the last batch that is known to begin before it."""
        bases, _ = _listed(self._folder)
        base = max((each for each in bases if each <= offset), default=None)
        if base is None or (self._fd >= 0 and base <= self.base and offset == self.next_offset):
            raise NotThere(f"the log has no segment with offset {offset}")
        self.close()
        path = self._folder / segment_file_name(base)
        with _if_there(f"{path} was deleted"), opened(_segment(path, base)) as segment:
            found = segment.at_or_before(offset)
            self._fd = os.dup(segment.fd)
        self.base, self._position, self.next_offset = base, found.position, found.base_offset


def _changes(folder: Path) -> Changes:
    """Exporters that don't ask for changes don't pay for their modules."""
    from kraft_wire.exporters.changes import Changes

    return Changes(partial(_state_below, folder))


def _state_below(folder: Path, offset: int) -> MetadataState:
    """Return the state of all records below an offset. Raises what ``FolderReader`` raises, and the errors of
    ``MetadataState.replay_batch``."""
    from kraft_wire.storage.snapshots.state_loading import load_state

    bases, snapshots = _listed(folder)
    before = [each for each in snapshots if each.end_offset <= offset]
    newest = before[-1] if before else BOOTSTRAP_SNAPSHOT_ID
    with (
        _if_there(f"the snapshot {newest.end_offset}-{newest.epoch} was deleted"),
        closing(SnapshotStore(folder, Disk())) as store,
    ):
        state = load_state(store, newest)
    begin = newest.end_offset if before or not bases else bases[0]
    with closing(_LogFile(folder)) as log:
        for batch in log.batches(begin, offset):
            if not batch.header.is_control:
                state.replay_batch(batch)
    return state


def _segment(path: Path, base_offset: int) -> SegmentFile:
    return SegmentFile(str(path), base_offset, path.stat().st_size)


def _listed(folder: Path) -> tuple[list[int], list[SnapshotId]]:
    """Return the base offsets of the segments and the ids of the snapshots, ascending, without the snapshot
    of format."""
    names = [path.name for path in folder.iterdir()]
    segments = (parse_segment_file_name(name) for name in names)
    snapshots = (parse_snapshot_file_name(name) for name in names)
    return (
        sorted(base for base, suffix in filter(None, segments) if suffix == LOG_SUFFIX),
        sorted(id for id in snapshots if id is not None and id.end_offset),
    )


@contextmanager
def _if_there(what: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, SegmentChanged):
        raise NotThere(what) from None
