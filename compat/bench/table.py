"""The side-by-side table."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from compat.bench.measure import JAVA_NAME, Figures, Sizes


class Row(msgspec.Struct, frozen=True):
    """One figure of both; ``goal`` is the ratio ours/Java to reach, as far as one is set."""

    title: str
    value: Callable[[Figures], float]
    unit: str
    goal: float | None = None


def rows(sizes: Sizes) -> list[Row]:
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


def table(ours: Figures, java: Figures, sizes: Sizes) -> str:
    lines = [f"{'':40}{'ours':>12}{JAVA_NAME:>14}  {'':14}{'ours/Java':>10}  {'goal':>7}"]
    for row in rows(sizes):
        of_ours, of_java = row.value(ours), row.value(java)
        goal = "" if row.goal is None else f"≤ {row.goal:.3f}"
        lines.append(
            f"{row.title:40}{_figure(of_ours):>12}{_figure(of_java):>14}  {row.unit:14}"
            f"{of_ours / of_java:>10.3f}  {goal:>7}"
        )
    return "\n".join(lines)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"
