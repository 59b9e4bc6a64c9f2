"""The side-by-side table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from compat.bench.measure import JAVA_NAME, Figures, Sizes
from compat.bench.quorum import QuorumFigures, median_ms

F = TypeVar("F")


class Row(msgspec.Struct, Generic[F], frozen=True):
    """One figure of both; ``goal`` is the ratio ours/Java to reach, as far as one is set."""

    title: str
    value: Callable[[F], float]
    unit: str
    goal: float | None = None


def rows(sizes: Sizes) -> list[Row[Figures]]:
    many = sizes.many
    return [
        Row("start-up to the first write answered", lambda f: f.start_up_s * 1000, "ms", 1 / 8),
        Row("resident memory, idle", lambda f: f.idle_resident_bytes / 2**20, "MiB", 1 / 2),
        Row("resident memory after the load", lambda f: f.loaded_resident_bytes / 2**20, "MiB"),
        Row("create a topic, 1 in flight, p50", lambda f: f.one_in_flight.percentile_ms(50), "ms", 1 / 10),
        Row("create a topic, 1 in flight, p99", lambda f: f.one_in_flight.percentile_ms(99), "ms"),
        Row(f"create a topic, {many} in flight, p50", lambda f: f.many_in_flight.percentile_ms(50), "ms"),
        Row(f"create a topic, {many} in flight, p99", lambda f: f.many_in_flight.percentile_ms(99), "ms"),
        Row(f"create a topic, {many} in flight", lambda f: f.many_in_flight.per_second, "topics/s"),
        Row("bulk creation", lambda f: f.bulk_partitions_per_s, "partitions/s"),
        Row("heartbeats", lambda f: f.heartbeats.per_second, "/s"),
        Row("heartbeat, p50", lambda f: f.heartbeats.percentile_ms(50), "ms"),
    ]


def quorum_rows() -> list[Row[QuorumFigures]]:
    return [
        Row("leader killed, until the next one writes", lambda f: median_ms(f.killed_s), "ms"),
        Row("the slowest of these", lambda f: max(f.killed_s) * 1000, "ms"),
        Row("leader stopped, until the next one writes", lambda f: median_ms(f.stopped_s), "ms"),
        Row("the slowest of these", lambda f: max(f.stopped_s) * 1000, "ms"),
        Row("create a topic, 1 in flight, p50", lambda f: f.one_in_flight.percentile_ms(50), "ms", 1 / 6),
        Row("create a topic, 1 in flight, p99", lambda f: f.one_in_flight.percentile_ms(99), "ms"),
    ]


def table(rows: Sequence[Row[F]], ours: F, java: F) -> str:
    lines = [f"{'':42}{'ours':>12}{JAVA_NAME:>14}  {'':14}{'ours/Java':>10}  {'goal':>7}"]
    for row in rows:
        of_ours, of_java = row.value(ours), row.value(java)
        goal = "" if row.goal is None else f"≤ {row.goal:.3f}"
        lines.append(
            f"{row.title:42}{_figure(of_ours):>12}{_figure(of_java):>14}  {row.unit:14}"
            f"{of_ours / of_java:>10.3f}  {goal:>7}"
        )
    return "\n".join(lines)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"
