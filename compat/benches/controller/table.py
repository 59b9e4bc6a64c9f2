"""Print the figures of both controllers side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Generic, TypeVar

import msgspec

from compat.benches.controller.damage import PLACES, DamageFigures
from compat.benches.controller.large_quorum import LargeFigures, client_ms, role_ms
from compat.benches.controller.measure import JAVA_NAME, Figures, Sizes
from compat.benches.controller.quorum import Failovers, QuorumFigures, median_ms, slowest_ms
from compat.benches.controller.reconfigured import ReconfiguredFigures

F = TypeVar("F")


class Row(msgspec.Struct, Generic[F], frozen=True):
    """One figure of both controllers. Ours should stay below ``goal`` as the ratio ours/Java, or below
    ``limit``."""

    title: str
    value: Callable[[F], float]
    unit: str
    goal: float | None = None
    limit: float | None = None


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
        Row("leader killed, until the next write", lambda f: median_ms(f.killed.took_s), "ms"),
        Row("  slowest", lambda f: slowest_ms(f.killed.took_s), "ms"),
        Row("leader stopped, until the next write", lambda f: median_ms(f.stopped.took_s), "ms"),
        Row("  slowest", lambda f: slowest_ms(f.stopped.took_s), "ms"),
        Row("create a topic, 1 in flight, p50", lambda f: f.one_in_flight.percentile_ms(50), "ms", 1 / 6),
        Row("create a topic, 1 in flight, p99", lambda f: f.one_in_flight.percentile_ms(99), "ms"),
    ]


def reconfigured_rows() -> list[Row[ReconfiguredFigures]]:
    rows: list[Row[ReconfiguredFigures]] = []
    for name, get in (
        ("three voters", lambda f: f.three),
        ("five voters", lambda f: f.five),
        ("during a change", lambda f: f.during_change),
    ):
        for number, end in enumerate(("killed", "stopped")):
            rows.append(_failover_row(f"{name}, leader {end}", get, number, median_ms))
            rows.append(_failover_row("  slowest", get, number, slowest_ms))
    return rows


def _failover_row(
    title: str,
    get: Callable[[ReconfiguredFigures], tuple[Failovers, Failovers]],
    number: int,
    sum_up: Callable[[list[float]], float],
) -> Row[ReconfiguredFigures]:
    return Row(title, lambda figures: sum_up(get(figures)[number].took_s), "ms")


def large_rows() -> list[Row[LargeFigures]]:
    wrote, limit = "LEADER role → first write answered", 100
    return [
        Row("all three started, until the first write", lambda f: f.started.client_s, "s"),
        Row(f"  {wrote}", lambda f: f.started.role_s * 1000, "ms", limit=limit),
        Row("leader killed, until the next write", lambda f: median(client_ms(f.killed)), "ms"),
        Row(f"  {wrote}", lambda f: median(role_ms(f.killed)), "ms", limit=limit),
        Row("  slowest", lambda f: max(role_ms(f.killed)), "ms", limit=limit),
        Row("leader stopped, until the next write", lambda f: median(client_ms(f.stopped)), "ms"),
        Row(f"  {wrote}", lambda f: median(role_ms(f.stopped)), "ms", limit=limit),
        Row("  slowest", lambda f: max(role_ms(f.stopped)), "ms", limit=limit),
        Row("resident memory, idle, largest of three", lambda f: f.resident_bytes / 2**20, "MiB"),
    ]


def damage_rows() -> list[Row[DamageFigures]]:
    return [_damage_row(place) for place in PLACES]


def _damage_row(place: float) -> Row[DamageFigures]:
    return Row(f"topics left, a bit flipped at {place:.0%} of B's log", lambda f: f.topics_left[place], "")


def table(rows: Sequence[Row[F]], ours: Mapping[str, F], java: F) -> str:
    """Return a table with a column for each of ours and one for Java, and the ratios of ours to Java."""
    lines = [_line("", [*ours, JAVA_NAME], "", [f"{name}/Java" for name in ours], "goal")]
    for row in rows:
        of_ours, of_java = [row.value(figures) for figures in ours.values()], row.value(java)
        ratios = [f"{value / of_java:.3f}" if of_java else "–" for value in of_ours]
        lines.append(_line(row.title, map(_figure, [*of_ours, of_java]), row.unit, ratios, _goal(row)))
    return "\n".join(lines)


def _line(title: str, figures: Iterable[str], unit: str, ratios: Iterable[str], goal: str) -> str:
    columns = "".join(f"{figure:>14}" for figure in figures)
    compared = "".join(f"{ratio:>15}" for ratio in ratios)
    return f"{title:46}{columns}  {unit:14}{compared}  {goal:>9}"


def _goal(row: Row[F]) -> str:
    if row.limit is not None:
        return f"≤ {row.limit:g} {row.unit}"
    return "" if row.goal is None else f"≤ {row.goal:.3f}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or isinstance(value, int) else f"{value:,.2f}"
