"""Plan what a query reads: the ranges of a batch, and the positions of a stream from trigger to trigger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic

from kraft_wire.logs.admission import Limit, shares
from kraft_wire.logs.positions import BEGINNING, LogPosition, Positions
from kraft_wire.logs.ranges import DataLoss, beginning, newest_state, range_between
from kraft_wire.logs.store import LogBounds, LogRange, LogStore, P
from kraft_wire.spark.filters import EVERY_ROW, RowFilter
from kraft_wire.spark.options import COMMITTED, EARLIEST, FAIL, LATEST, SNAPSHOT, BadOption, Options
from kraft_wire.spark.reading import CorruptSegment


class Planner(Generic[P]):
    """The plan of one query, by its options and by what the store has. Raises DataLoss, BadOption,
    CorruptSegment, and what the store raises."""

    def __init__(self, store: LogStore[P], options: Options) -> None:
        self._store = store
        self._options = options
        self._seen: dict[str, LogBounds] = {}
        self._target: Positions | None = None
        self._initial: Positions | None = None
        self._has_begun = False

    # --- a batch

    def batch(self, rows: RowFilter = EVERY_ROW) -> list[LogRange]:
        """Return the ranges of a batch: for each cluster the part between the two options that may be
        wanted."""
        starts, ends = self._options.starting_offsets, self._options.ending_offsets
        if starts == LATEST:
            raise BadOption("startingOffsets: latest is for streams; a batch would read nothing")
        self._look()
        named = self._named(starts) if isinstance(starts, dict) else {}
        if isinstance(ends, dict):
            wanted: dict[str, LogPosition | None] = {**self._named(ends)}
        elif self._options.tail == COMMITTED:
            wanted = {cluster: self._end(bounds) for cluster, bounds in self._seen.items()}
        else:
            wanted = dict.fromkeys(self._seen)
            self._check_ends()
        if starts == SNAPSHOT:
            named = {
                cluster: newest_state(self._seen[cluster], None if end is None else end.offset)
                for cluster, end in wanted.items()
            }
        wanted = {cluster: end for cluster, end in wanted.items() if rows.wants(cluster)}
        found = (rows.cut(each, self._seen[each.cluster].end) for each in self._ranges(named, wanted))
        return [each for each in found if each is not None]

    # --- a stream

    def initial(self) -> Positions:
        """Return where a new stream begins, by default at the end of the logs.

        Spark asks several times, while the logs grow, and must get the same answer.
        """
        if self._initial is None:
            self._initial = self._beginning()
        return self._initial

    def _beginning(self) -> Positions:
        starts = self._options.starting_offsets or LATEST
        self._look()
        if isinstance(starts, dict):
            return self._named(starts)
        find = {EARLIEST: beginning, SNAPSHOT: newest_state, LATEST: self._end}[starts]
        return {cluster: find(bounds) for cluster, bounds in self._seen.items()}

    def stop_at_what_is_there(self) -> None:
        """Never let ``latest`` return more than there is now."""
        self._look()
        self._target = self._ends()

    def latest(self, start: Mapping[str, LogPosition], limit: Limit) -> Positions:
        """Return how far the next trigger reads.

        A stream that begins at the end of the logs reads nothing in its first trigger. So its start is in the
        checkpoint, however soon it is killed.
        """
        self._look()
        is_first, self._has_begun = not self._has_begun, True
        if is_first and self._begins_with_what_comes and start == self._initial:
            return dict(start)
        ends = {**start, **(self._ends() if self._target is None else self._target)}
        for cluster, end in ends.items():
            position = start.get(cluster)
            if cluster not in self._seen:
                self._lost(cluster, position or end)
            elif self._options.tail == COMMITTED and position is not None and end.offset < position.offset:
                ends[cluster] = position  # it was read before, with tail=all
        missing = ends.keys() - self._seen.keys()
        waiting = {cluster: start[cluster] for cluster in missing if cluster in start}
        there = {cluster: end for cluster, end in ends.items() if cluster not in missing}
        return {**waiting, **self._limited(start, there, limit)}

    def available(self) -> Positions:
        """Return the ends of the logs when they were last read."""
        if not self._seen:
            self._look()
        return self._ends()

    def between(self, start: Mapping[str, LogPosition], end: Mapping[str, LogPosition]) -> list[LogRange]:
        """Return the ranges of a trigger between two positions of each cluster."""
        if not all(cluster in self._seen and _covers(self._seen[cluster], end[cluster]) for cluster in end):
            self._look()
        if start == self._initial and not self._has_begun:
            start = {
                cluster: self._start_before(cluster, start[cluster], end.get(cluster)) for cluster in start
            }
        return self._ranges(
            start, {cluster: position for cluster, position in end.items() if start.get(cluster) != position}
        )

    @property
    def _begins_with_what_comes(self) -> bool:
        return self._options.starting_offsets in (None, LATEST)

    def _start_before(self, cluster: str, start: LogPosition, end: LogPosition | None) -> LogPosition:
        """Return a start that isn't after the end.

        A stream that was killed in its first trigger repeats that trigger up to the same end, but gets a new
        start.
        """
        if end is None or start.offset <= end.offset:
            return start
        if self._begins_with_what_comes:
            return end
        if self._options.starting_offsets == SNAPSHOT:
            return newest_state(self._seen[cluster], end.offset)
        return start

    # --- both

    def _ranges(
        self, starts: Mapping[str, LogPosition], ends: Mapping[str, LogPosition | None]
    ) -> list[LogRange]:
        found = []
        for cluster, end in ends.items():
            start = starts.get(cluster)
            if cluster not in self._seen:
                self._lost(cluster, end)
                continue
            bounds = self._seen[cluster]
            if self._options.tail == COMMITTED and end is not None:
                end = min(end, self._end(bounds), key=lambda position: position.offset)
                if start is not None and end.offset < start.offset:
                    continue
            found.append(
                range_between(
                    bounds, start, end, self._store.holds, fail_on_data_loss=self._options.fail_on_data_loss
                )
            )
        return found

    def _look(self) -> None:
        self._seen = self._store.bounds()

    def _ends(self) -> Positions:
        self._check_ends()
        return {cluster: self._end(bounds) for cluster, bounds in self._seen.items()}

    def _end(self, bounds: LogBounds) -> LogPosition:
        """Return the position up to which a log is read."""
        if self._options.tail != COMMITTED:
            return bounds.end
        committed = bounds.committed_end_offset
        if committed is None or committed < bounds.start_offset:
            return BEGINNING
        return (
            self._store.position_at(bounds.cluster, committed)
            if committed < bounds.end.offset
            else bounds.end
        )

    def _check_ends(self) -> None:
        for bounds in self._seen.values():
            if bounds.damage is not None and self._options.corrupt == FAIL:
                raise CorruptSegment(bounds.damage)

    def _named(self, positions: Positions) -> Positions:
        """Return the positions of an option, for the clusters that exist."""
        for cluster, position in positions.items():
            if cluster not in self._seen:
                self._lost(cluster, position)
        return {cluster: position for cluster, position in positions.items() if cluster in self._seen}

    def _lost(self, cluster: str, position: LogPosition | None) -> None:
        if self._options.fail_on_data_loss:
            there = ", ".join(self._seen) or "none"
            raise DataLoss(
                cluster,
                f"{position} was asked for",
                f"there is no log of this cluster; the clusters with logs: {there}",
                "Correct the cluster's id or the path; with failOnDataLoss=false the cluster is left out",
            )

    def _limited(self, starts: Mapping[str, LogPosition], ends: Positions, limit: Limit) -> Positions:
        count = limit.offsets if limit.size_bytes is None else limit.size_bytes
        if count is None:
            return ends
        begins = {cluster: starts.get(cluster) or beginning(self._seen[cluster]) for cluster in ends}
        lags = {
            cluster: max(int(begins[cluster].snapshot), end.offset - begins[cluster].offset)
            for cluster, end in ends.items()
        }
        share = shares(lags, count)
        found = {}
        for cluster, end in ends.items():
            if not lags[cluster]:
                found[cluster] = end
            elif share[cluster]:
                found[cluster] = self._limited_end(
                    cluster, begins[cluster].offset, end, share[cluster], limit
                )
            elif cluster in starts:
                found[cluster] = starts[cluster]
        return found

    def _limited_end(
        self, cluster: str, start_offset: int, end: LogPosition, share: int, limit: Limit
    ) -> LogPosition:
        first = max(start_offset, self._seen[cluster].start_offset)
        if limit.offsets is not None:
            offset = first + share
        else:
            offset = self._store.next_offset_within(cluster, first, share)
        if offset >= end.offset:
            return end
        return min(self._store.position_at(cluster, offset), end, key=lambda position: position.offset)


def _covers(bounds: LogBounds, end: LogPosition) -> bool:
    return bounds.start_offset <= end.offset <= bounds.end.offset
