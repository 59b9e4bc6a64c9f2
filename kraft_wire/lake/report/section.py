"""Build the report's section on one cluster: five plots, each with its most important numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import nlargest
from statistics import median
from typing import Final
from xml.etree.ElementTree import Element

from kraft_wire.lake.report.elements import Child, element
from kraft_wire.lake.report.figures import COUNTS, Bins, Failover, Figures, Hour
from kraft_wire.lake.report.lifelines import KINDS, inactive_ms, life_lines, worst_brokers
from kraft_wire.lake.report.parts import MOST_ROWS, columns, figure, head, left_out, name, table, topics
from kraft_wire.lake.report.plots import lanes
from kraft_wire.lake.report.scales import (
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    duration_text,
    number_text,
    time_text,
)

MOST_BROKERS: Final = 60


def section(figures: Figures) -> Element:
    """Return the section on one cluster."""
    span = figures.span
    covers = (
        f"From {time_text(span.start_ms)} to {time_text(span.end_ms)} UTC, {duration_text(span.length_ms)}."
    )
    return element(
        "section",
        element("h2", "Cluster ", name(figures.cluster)),
        element("p", covers, class_="note"),
        _brokers(figures),
        _leadership(figures),
        _shortages(figures),
        _failovers(figures),
        _churn(figures),
    )


def _brokers(figures: Figures) -> Element:
    brokers = worst_brokers(figures.sessions, figures.span, MOST_BROKERS)
    inactive = inactive_ms(figures.sessions, figures.span)
    legend = [
        piece
        for state, kind in KINDS.items()
        for piece in (element("span", class_=f"swatch {kind}"), state.replace("_", " "))
    ]
    changes = Counter(session.broker_id for session in figures.sessions)
    rows = [
        (f"broker {broker}", number_text(changes[broker]), duration_text(inactive[broker]))
        for broker in nlargest(MOST_ROWS, brokers, key=lambda broker: inactive[broker])
        if inactive[broker]
    ]
    heads = (head("longest inactive"), head("sessions"), head("registered and not active"))
    return figure(
        "Brokers' lifelines",
        "states over time, UTC; without a line the broker wasn't registered",
        element("div", *legend, class_="note"),
        lanes(life_lines(figures.sessions, figures.span, brokers), figures.span),
        left_out(len(brokers), len(inactive), "brokers left out, which were inactive for less time"),
        table(heads, rows),
    )


def _leadership(figures: Figures) -> Element:
    elections = figures.elections
    return figure(
        "Leadership changes",
        f"partitions that got another leader, every {duration_text(elections.bins.step_ms)}, UTC; "
        f"{number_text(elections.total)} in total, {number_text(elections.unclean)} unclean",
        columns(elections.bins, figures.span, "changes"),
        *topics(elections.by_topic, "changes", number_text),
    )


def _shortages(figures: Figures) -> Element:
    shortages = figures.shortages
    return figure(
        "Under-replicated minutes",
        "partition-minutes with too few replicas in sync, "
        f"every {duration_text(shortages.bins.step_ms)}, UTC; "
        f"{number_text(shortages.partition_minutes)} in total, in {number_text(shortages.intervals)} "
        f"intervals; {number_text(shortages.offline)} intervals began without a leader",
        columns(shortages.bins, figures.span, "minutes", MINUTE_MS),
        *topics(shortages.ms_by_topic, "partition-minutes", lambda ms: number_text(ms / MINUTE_MS)),
    )


def _failovers(figures: Figures) -> Element:
    waits_ms = figures.waits_ms
    worst = Bins(figures.span)
    worst.raise_to(
        [each.start_ms for each in figures.failovers], [each.leaderless_ms or 0 for each in figures.failovers]
    )
    facts = f"{number_text(len(waits_ms))} in total"
    if waits_ms:
        facts += f", median {duration_text(median(waits_ms))}, longest {duration_text(max(waits_ms))}"
    rows = [_failover_row(one) for one in nlargest(MOST_ROWS, figures.failovers, key=_waited) if _waited(one)]
    heads = (head("longest"), head("at", "UTC"), head("epoch"), head("leader before"), head("leader after"))
    return figure(
        "Failover times of controllers",
        f"seconds without a leader, the longest in every {duration_text(worst.step_ms)}, UTC, from the last "
        f"record of an epoch to the first of the next, which may be longer than it really was; {facts}",
        columns(worst, figures.span, "s", SECOND_MS),
        table(heads, rows),
        left_out(len(rows), len(waits_ms), "failovers, the shortest ones, left out of the table"),
    )


def _waited(failover: Failover) -> int:
    return failover.leaderless_ms or 0


def _failover_row(failover: Failover) -> Sequence[Child]:
    before, after = (
        "unknown" if leader is None else str(leader)
        for leader in (failover.previous_leader_id, failover.leader_id)
    )
    waited = duration_text(_waited(failover))
    return waited, time_text(failover.start_ms), number_text(failover.epoch), before, after


def _churn(figures: Figures) -> Element:
    bins = Bins(figures.span, HOUR_MS)
    bins.count([hour.start_ms for hour in figures.hours], [hour.records for hour in figures.hours])
    busiest = nlargest(MOST_ROWS, figures.hours, key=lambda hour: hour.records)
    heads = (
        head("busiest hours", "UTC"),
        head("records"),
        *(head(name.replace("_", " ")) for name in COUNTS),
    )
    return figure(
        "Churn",
        f"records written, every {duration_text(bins.step_ms)}, UTC; {number_text(figures.records)} in total",
        columns(bins, figures.span, "records"),
        table(heads, [_hour_row(hour) for hour in busiest]),
        left_out(len(busiest), len(figures.hours), "hours left out of the table, with fewer records"),
    )


def _hour_row(hour: Hour) -> Sequence[Child]:
    return time_text(hour.start_ms), number_text(hour.records), *map(number_text, hour.counts)
