"""Compute the numbers of the report for one cluster.

Derived tables are read batch by batch: memory grows with brokers' sessions, topics, hours and controllers'
epochs, not with partitions or their changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_wire.lake.report.scales import HOUR_MS, MINUTE_MS, Span, time_step

NO_LEADER: Final = -1
BINS: Final = 150
"""The most columns of a plot over time."""


class Table(NamedTuple):
    """A derived table, and the columns that the report reads."""

    name: str
    columns: tuple[str, ...]


SESSIONS: Final = Table("broker_sessions", ("broker_id", "state", "start_timestamp", "end_timestamp"))
FAILOVERS: Final = Table(
    "failovers",
    ("epoch", "leader_id", "previous_leader_id", "start_timestamp", "last_timestamp", "leaderless_ms"),
)
LEADERSHIP: Final = Table(
    "leadership", ("topic", "leader_epoch", "unclean", "known_start", "start_timestamp")
)
UNDER_REPLICATED: Final = Table("under_replicated", ("topic", "leader", "start_timestamp", "end_timestamp"))
COUNTS: Final = (
    "partition_changes",
    "elections",
    "isr_changes",
    "fencings",
    "unfencings",
    "topics_created",
    "topics_removed",
    "config_changes",
)
CHURN: Final = Table("churn", ("hour", "records", *COUNTS))
TABLES: Final = (SESSIONS, FAILOVERS, LEADERSHIP, UNDER_REPLICATED, CHURN)


class Session(NamedTuple):
    """The time that a broker was in a state. ``end_ms`` is None if it still is."""

    broker_id: int
    state: str
    start_ms: int
    end_ms: int | None


class Failover(NamedTuple):
    """An epoch of the controllers. ``leaderless_ms`` is None for the first known one."""

    epoch: int
    leader_id: int | None
    previous_leader_id: int | None
    start_ms: int
    last_ms: int
    leaderless_ms: int | None


class Hour(NamedTuple):
    """The records of an hour: all of them, and those of each kind in the order of COUNTS."""

    start_ms: int
    records: int
    counts: tuple[int, ...]


class Bins:
    """A sum for each of the equal steps of a span."""

    def __init__(self, span: Span, at_least_ms: int = 0) -> None:
        self.step_ms = max(time_step(span, BINS - 1), at_least_ms)
        first = span.start_ms - span.start_ms % self.step_ms
        self.edges_ms = np.arange(first, span.end_ms + self.step_ms, self.step_ms, dtype=np.int64)
        self.values = np.zeros(len(self.edges_ms) - 1)

    def count(self, times_ms: Any, weights: Any = None) -> None:
        """Add events to their steps."""
        self.values += np.histogram(times_ms, self.edges_ms, weights=weights)[0]

    def raise_to(self, times_ms: Any, values: Any) -> None:
        """Raise each step to the largest event in it."""
        steps = np.searchsorted(self.edges_ms, np.asarray(times_ms, np.int64), side="right") - 1
        np.maximum.at(self.values, steps, values)

    def add_up(self, starts_ms: Any, ends_ms: Any) -> None:
        """Add the milliseconds of each step that intervals cover."""
        lengths = ends_ms - starts_ms
        before = [np.clip(edge - starts_ms, 0, lengths).sum() for edge in self.edges_ms]
        self.values += np.diff(before)


class Elections(msgspec.Struct):
    """The changes of partitions' leaders."""

    bins: Bins
    by_topic: Counter[str]
    unclean: int = 0

    @property
    def total(self) -> int:
        return self.by_topic.total()


class Shortages(msgspec.Struct):
    """The times in which partitions had too few replicas in sync. ``offline`` is the number of intervals that
    began without a leader."""

    bins: Bins
    ms_by_topic: Counter[str]
    intervals: int = 0
    offline: int = 0

    @property
    def partition_minutes(self) -> float:
        return self.ms_by_topic.total() / MINUTE_MS


class Figures(msgspec.Struct):
    """The numbers of one cluster."""

    cluster: str
    span: Span
    sessions: Sequence[Session]
    failovers: Sequence[Failover]
    elections: Elections
    shortages: Shortages
    hours: Sequence[Hour]

    @property
    def brokers(self) -> int:
        return len({session.broker_id for session in self.sessions})

    @property
    def fencings(self) -> int:
        return sum(hour.counts[COUNTS.index("fencings")] for hour in self.hours)

    @property
    def records(self) -> int:
        return sum(hour.records for hour in self.hours)

    @property
    def waits_ms(self) -> list[int]:
        """The time without a leader, for each change of the leader."""
        return [one.leaderless_ms for one in self.failovers if one.leaderless_ms is not None]


Reader = Callable[[Table], Iterable[pa.RecordBatch]]
"""Yields a cluster's batches of a table, with the table's columns in order."""


def figures_of(cluster: str, read: Reader) -> Figures:
    """Compute all numbers of one cluster."""
    sessions = [session for batch in read(SESSIONS) for session in _sessions(batch)]
    failovers = sorted(failover for batch in read(FAILOVERS) for failover in _failovers(batch))
    hours = sorted(hour for batch in read(CHURN) for hour in _hours(batch))
    span = _span(sessions, failovers, hours)
    elections = Elections(Bins(span), Counter())
    for batch in read(LEADERSHIP):
        _count_elections(elections, batch)
    shortages = Shortages(Bins(span), Counter())
    for batch in read(UNDER_REPLICATED):
        _add_shortages(shortages, batch, span.end_ms)
    return Figures(cluster, span, sessions, failovers, elections, shortages, hours)


def _span(sessions: Sequence[Session], failovers: Sequence[Failover], hours: Sequence[Hour]) -> Span:
    """Return the span from the first known event to the last; a millisecond if there is none.

    An hour begins before its first record, so it doesn't count if another event of that hour is known.
    """
    starts = [each.start_ms for rows in (sessions, failovers) for each in rows]
    if hours and hours[0].start_ms + HOUR_MS <= min(starts, default=hours[0].start_ms + HOUR_MS):
        starts.append(hours[0].start_ms)
    ends = [*starts, *(hour.start_ms for hour in hours), *(failover.last_ms for failover in failovers)]
    start_ms = min(starts, default=0)
    return Span(start_ms, max(*ends, start_ms + 1) if ends else 1)


def _sessions(batch: pa.RecordBatch) -> Iterator[Session]:
    brokers, states, starts, ends = batch.columns
    rows = (brokers.to_pylist(), states.to_pylist(), _ms(starts).to_pylist(), _ms(ends).to_pylist())
    return map(Session._make, zip(*rows, strict=True))


def _failovers(batch: pa.RecordBatch) -> Iterator[Failover]:
    epochs, leaders, previous, starts, lasts, waits = batch.columns
    columns = (epochs, leaders, previous, _ms(starts), _ms(lasts), waits)
    return map(Failover._make, zip(*(column.to_pylist() for column in columns), strict=True))


def _hours(batch: pa.RecordBatch) -> Iterator[Hour]:
    starts, records, *counts = (
        (_ms(column) if pa.types.is_timestamp(column.type) else column).to_pylist()
        for column in batch.columns
    )
    for start_ms, total, *each in zip(starts, records, *counts, strict=True):
        yield Hour(start_ms, total, tuple(each))


def _count_elections(elections: Elections, batch: pa.RecordBatch) -> None:
    """Count changes of leaders. A first leader is no change, nor is one from before the known time."""
    _, leader_epochs, _, known_starts, _ = batch.columns
    changed = batch.filter(pc.and_(known_starts, pc.greater(leader_epochs, 0)))
    topics, _, unclean, _, starts = changed.columns
    elections.by_topic.update(_counted(topics))
    elections.unclean += pc.sum(unclean).as_py() or 0
    elections.bins.count(_ms(starts).to_numpy())


def _add_shortages(shortages: Shortages, batch: pa.RecordBatch, end_ms: int) -> None:
    topics, leaders, starts, ends = batch.columns
    starts_ms = _ms(starts).to_numpy()
    ends_ms = np.maximum(pc.fill_null(_ms(ends), end_ms).to_numpy(), starts_ms)
    shortages.bins.add_up(starts_ms, ends_ms)
    lengths = pa.table({"topic": topics, "ms": ends_ms - starts_ms})
    sums = lengths.group_by("topic").aggregate([("ms", "sum")])
    shortages.ms_by_topic.update(
        dict(zip(sums.column("topic").to_pylist(), sums.column("ms_sum").to_pylist(), strict=True))
    )
    shortages.intervals += batch.num_rows
    shortages.offline += pc.sum(pc.equal(leaders, NO_LEADER)).as_py() or 0


def _counted(names: pa.Array) -> dict[str, int]:
    return {each["values"]: each["counts"] for each in names.value_counts().to_pylist()}


def _ms(timestamps: pa.Array) -> pa.Array:
    return pc.cast(pc.cast(timestamps, pa.timestamp("ms", "UTC"), safe=False), pa.int64())
