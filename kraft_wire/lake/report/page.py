"""Build the report's page: a summary of all clusters, and a section for each of the worst."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

from kraft_wire.lake.report.elements import Child, document, element
from kraft_wire.lake.report.figures import Figures
from kraft_wire.lake.report.parts import head, left_out, name, table
from kraft_wire.lake.report.scales import Span, duration_text, number_text, time_text
from kraft_wire.lake.report.section import section
from kraft_wire.lake.report.style import STYLE

MOST_CLUSTERS: Final = 20
MOST_SUMMARIES: Final = 1000
_TITLE: Final = "Kafka clusters, from their metadata logs"


class Summary(NamedTuple):
    """A row about a cluster. The worst cluster sorts first."""

    minus_partition_minutes: float
    minus_leaderless_ms: int
    cluster: str
    span: Span
    brokers: int
    fencings: int
    elections: int
    unclean: int
    failovers: int
    longest_wait_ms: int
    records: int

    @classmethod
    def of(cls, figures: Figures) -> Summary:
        return cls(
            -figures.shortages.partition_minutes,
            -sum(figures.waits_ms),
            figures.cluster,
            figures.span,
            figures.brokers,
            figures.fencings,
            figures.elections.total,
            figures.elections.unclean,
            len(figures.waits_ms),
            max(figures.waits_ms, default=0),
            figures.records,
        )


def page(clusters: Iterable[Figures], most_clusters: int = MOST_CLUSTERS) -> str:
    """Return the whole report. It says how much it leaves out."""
    summaries: list[Summary] = []
    shown: list[Figures] = []
    for figures in clusters:
        summaries.append(Summary.of(figures))
        shown = nsmallest(most_clusters, [*shown, figures], key=Summary.of)
    sections = [section(figures) for figures in shown]
    unshown = left_out(len(shown), len(summaries), "clusters have no plots; all are in the summary")
    return document(_TITLE, STYLE, element("h1", _TITLE), *_summary(sorted(summaries)), unshown, *sections)


# --- the summary


def _summary(summaries: Sequence[Summary]) -> list[Element | None]:
    totals = {
        "Clusters": len(summaries),
        "brokers": sum(each.brokers for each in summaries),
        "under-replicated partition-minutes": -sum(each.minus_partition_minutes for each in summaries),
        "failovers of controllers": sum(each.failovers for each in summaries),
    }
    summary = ", ".join(f"{what}: {number_text(total)}" for what, total in totals.items())
    heads = (
        head("cluster"),
        head("from", "UTC"),
        head("to", "UTC"),
        head("brokers", "ever seen"),
        head("fencings"),
        head("leader changes", "of partitions"),
        head("unclean"),
        head("under-replicated", "partition-minutes"),
        head("failovers", "of controllers"),
        head("longest failover"),
        head("records"),
    )
    rows = [_summary_row(summary) for summary in summaries[:MOST_SUMMARIES]]
    return [
        element("p", f"{summary}. Clusters with the longest trouble come first."),
        table(heads, rows),
        left_out(len(rows), len(summaries), "clusters left out of the table"),
    ]


def _summary_row(summary: Summary) -> Sequence[Child]:
    return (
        name(summary.cluster),
        time_text(summary.span.start_ms),
        time_text(summary.span.end_ms),
        number_text(summary.brokers),
        number_text(summary.fencings),
        number_text(summary.elections),
        number_text(summary.unclean),
        number_text(-summary.minus_partition_minutes),
        number_text(summary.failovers),
        duration_text(summary.longest_wait_ms),
        number_text(summary.records),
    )
