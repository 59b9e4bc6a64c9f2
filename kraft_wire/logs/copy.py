"""Find out what one copy of a log holds: up to where it can be read, and up to where it is committed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from kraft_wire.log.batch import BatchHeader
from kraft_wire.log.recovery import committed_end, is_ahead
from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.logs.folders import LogFolder, list_folder
from kraft_wire.logs.open_segment import Entry, OpenSegment, SegmentFile, opened
from kraft_wire.logs.positions import BEGINNING, LogPosition
from kraft_wire.logs.store import Damage
from kraft_wire.logs.walk import BatchWalk, Run, Spot
from kraft_wire.storage.errors import SegmentChanged

_LOOK_BYTES: Final = 64 * 1024
_ATTEMPTS: Final = 4

Known = Mapping[str, tuple[Entry, ...]]
"""Batches of each segment, by its path, that were seen when its folder was read before."""


class LastBatch(NamedTuple):
    """The last batch of a log, and where it lies."""

    path: str
    position: int
    header: BatchHeader

    @property
    def entry(self) -> Entry:
        return Entry(self.header.last_offset, self.position)


class LogCopy(msgspec.Struct, frozen=True):
    """The log in a folder when it was read.

    A crash can't have lost anything below ``durable_offset``. ``damage`` is the damage at the log's end; None
    if the log ends with a whole batch, or with a torn tail as a crash leaves it.
    """

    cluster: str
    path: str
    segments: tuple[SegmentFile, ...]
    snapshots: tuple[SnapshotId, ...]
    start_offset: int
    end: LogPosition
    durable_offset: int = 0
    committed_end_offset: int = 0
    damage: Damage | None = None
    last: LastBatch | None = None

    @property
    def is_empty(self) -> bool:
        return not self.segments and not self.snapshots

    @property
    def reach(self) -> tuple[int, int, int]:
        """A sort key: copies of a log that end later, and then those that start earlier, have a higher one.

        A later epoch comes first: it has all committed records, even if an earlier epoch has more offsets.
        """
        return self.end.epoch, self.end.offset, -self.start_offset

    def holds(self, position: LogPosition) -> bool:
        """See ``LogStore.holds``; for a position in the log."""
        if position.offset == self.start_offset and self._is_start(position):
            return True
        for header in self.headers_from(position.offset - 1):
            if header.base_offset > position.offset:
                return False
            if header.leader_epoch == position.epoch and header.next_offset >= position.offset:
                return True
        return position == self.end

    def position_at(self, offset: int) -> LogPosition:
        """See ``LogStore.position_at``."""
        if offset == self.start_offset:
            return self._start()
        for header in self.headers_from(offset - 1):
            if header.next_offset >= offset:
                return LogPosition(header.leader_epoch, max(header.base_offset, offset))
        return self.end

    def headers_from(self, offset: int) -> Iterator[BatchHeader]:
        """Yield the headers of readable batches, from the one that holds an offset, or an earlier one, on."""
        first = max(0, bisect_right(self.segments, offset, key=lambda segment: segment.base_offset) - 1)
        for number, segment in enumerate(self.segments[first:], first):
            with opened(segment) as file:
                start = file.at_or_before(offset)
                walk = BatchWalk(
                    file, start, next_offset=self.next_base_offset(number), page_bytes=_LOOK_BYTES
                )
                for found in walk:
                    if isinstance(found, Run):
                        yield from (header for _, header in found.batches)

    def next_offset_within(self, offset: int, max_bytes: int) -> int:
        """See ``LogStore.next_offset_within``."""
        left = max_bytes
        for number, segment in enumerate(self.segments):
            following = self.next_base_offset(number)
            if following is not None and following <= offset:
                continue
            with opened(segment) as file:
                start = _holding(file, offset)
                if left < file.end - start.position:
                    near = file.near_position(start.position + left)
                    found = _last_before(file, max(start, near), offset, start.position + left)
                    return found if found is not None else self.end.offset if following is None else following
                left -= file.end - start.position
        return self.end.offset

    def next_base_offset(self, number: int) -> int | None:
        """Return where the segment after this one begins; None for the newest segment."""
        return self.segments[number + 1].base_offset if number + 1 < len(self.segments) else None

    def _is_start(self, position: LogPosition) -> bool:
        """Whether a position fits the log's start. The records before it can't be compared, unless a snapshot
        ends there."""
        return position.offset == 0 or position.epoch <= self._start().epoch

    def _start(self) -> LogPosition:
        for snapshot_id in self.snapshots:
            if snapshot_id.end_offset == self.start_offset:
                return LogPosition(snapshot_id.epoch, snapshot_id.end_offset)
        first = next(self.headers_from(self.start_offset), None) if self.start_offset else None
        return LogPosition(0 if first is None else first.leader_epoch, self.start_offset)


def _holding(file: OpenSegment, offset: int) -> Spot:
    """Return the batch that holds an offset, or the first batch of a file that begins after the offset.

    Bytes must be counted from that batch: the bytes between index entries, or without an index the whole
    segment, may be more than a trigger reads.
    """
    found = file.at_or_before(offset)
    for spot in file.spots(found):
        if spot.base_offset > offset:
            break
        found = spot
    return found


def _last_before(file: OpenSegment, start: Spot, offset: int, position: int) -> int | None:
    """Return the base offset of the last batch up to a position, but at least of the next batch after
    ``offset``."""
    found = None
    for spot in file.spots(start):
        if found is not None and spot.position > position:
            break
        if spot.base_offset > offset:
            found = spot.base_offset
    return found


def read_copy(path: Path, known: Known = MappingProxyType({})) -> LogCopy:
    """Read the log in a folder.

    A controller may be working on it: files that have gone are listed again, and damage counts only if a
    second attempt finds it, too. Raises CorruptFile, SegmentChanged, OSError.
    """
    damage = None
    for _ in range(_ATTEMPTS):
        with suppress(SegmentChanged):
            found = _copy_of(_listed(path, known))
            if found.damage == damage:
                return found
            damage = found.damage
    return _copy_of(_listed(path, known))


def _listed(path: Path, known: Known) -> LogFolder:
    folder = list_folder(path)
    segments = [replace(each, known=known.get(each.path, ())) for each in folder.segments]
    return replace(folder, segments=tuple(segments))


def _copy_of(folder: LogFolder) -> LogCopy:
    last, damage = _end_of(folder)
    start_offset, end = _bounds(folder, last)
    newest = folder.snapshots[-1] if folder.snapshots else None
    segments = folder.segments
    if newest is not None and is_ahead(newest, start_offset, end.offset, end.epoch):
        # The snapshot came from a leader. The log is ignored: the controller resets it when it starts.
        segments, damage = (), None
        start_offset, end = newest.end_offset, LogPosition(newest.epoch, newest.end_offset)
    return LogCopy(
        folder.cluster,
        folder.path,
        segments,
        folder.snapshots,
        start_offset,
        end,
        folder.floor.offset,
        max(committed_end(folder.floor, end.offset), newest.end_offset if newest else 0),
        damage,
        last,
    )


def _bounds(folder: LogFolder, last: LastBatch | None) -> tuple[int, LogPosition]:
    if not folder.segments:
        return 0, BEGINNING
    start_offset, newest_base_offset = folder.segments[0].base_offset, folder.segments[-1].base_offset
    if last is not None:
        end_offset = max(last.header.next_offset, newest_base_offset)
        return start_offset, LogPosition(last.header.leader_epoch, end_offset)
    epochs = [each.epoch for each in folder.snapshots if each.end_offset <= newest_base_offset]
    return start_offset, LogPosition(epochs[-1] if epochs else 0, newest_base_offset)


def _end_of(folder: LogFolder) -> tuple[LastBatch | None, Damage | None]:
    """Return the last batch, and the damage after it, if there is more than a crash leaves."""
    damage = None
    next_offset = None
    for segment in reversed(folder.segments):
        last, found = _end_of_segment(folder.cluster, segment, next_offset, folder.floor.offset)
        damage = damage or found
        if last is not None:
            return last, damage
        next_offset = segment.base_offset
    return None, damage


def _end_of_segment(
    cluster: str, segment: SegmentFile, next_offset: int | None, durable_offset: int
) -> tuple[LastBatch | None, Damage | None]:
    last = damage = None
    with opened(segment) as file:
        for found in BatchWalk(
            file,
            file.last_indexed(),
            next_offset=next_offset,
            durable_offset=durable_offset,
            page_bytes=_LOOK_BYTES,
        ):
            if isinstance(found, Run):
                at, header = found.batches[-1]
                last, damage = LastBatch(segment.path, found.position + at, header), None
            else:
                damage = Damage(cluster, segment.path, *found)
    return last, damage
