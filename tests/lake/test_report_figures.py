"""The report's numbers, from made-up derived tables."""

from __future__ import annotations

from kraft_wire.lake.report.figures import Session, figures_of
from kraft_wire.lake.report.scales import DAY_MS, Span
from tests.lake.report_samples import at, failover, hour, leader, reader, session, shortage

DAY_S = 24 * 3600


def ms(seconds: float) -> int:
    return round(at(seconds).timestamp() * 1000)


def test_the_span_is_from_the_first_time_to_the_last_record() -> None:
    figures = figures_of("one", reader([session(1, "active", 50, None)], [failover(1, 1, 40, DAY_S, None)]))
    assert figures.span == Span(ms(40), ms(DAY_S))


def test_an_hour_that_began_before_its_first_record_does_not_begin_the_span() -> None:
    epochs = [failover(1, 1, 3640, 3700, None)]
    assert figures_of("one", reader(failovers=epochs, churn=[hour(1, 5)])).span == Span(ms(3640), ms(3700))
    hours = [hour(0, 5), hour(1, 5)]
    assert figures_of("one", reader(failovers=epochs, churn=hours)).span == Span(ms(0), ms(3700))
    assert figures_of("one", reader(churn=hours)).span == Span(ms(0), ms(3600))


def test_a_cluster_of_which_nothing_is_known() -> None:
    figures = figures_of("one", reader())
    assert (figures.brokers, figures.fencings, figures.records, figures.waits_ms) == (0, 0, 0, [])
    assert figures.elections.total == 0 and figures.shortages.partition_minutes == 0


def test_leader_changes_are_counted_but_not_first_leaders() -> None:
    rows = [
        leader("new", 0, 10),
        leader("old", 7, 10, known=False),
        *[leader("a", epoch, 3600 * epoch) for epoch in range(1, 200)],
        leader("b", 3, 20, unclean=True),
    ]
    figures = figures_of("one", reader(failovers=[failover(1, 1, 0, 30 * DAY_S, None)], leadership=rows))
    assert figures.elections.by_topic == {"a": 199, "b": 1}
    assert (figures.elections.total, figures.elections.unclean) == (200, 1)
    bins = figures.elections.bins
    assert bins.values.sum() == 200
    per_step = bins.step_ms // (3600 * 1000)
    assert set(bins.values[1 : 199 // per_step]) == {per_step}


def test_minutes_without_enough_replicas() -> None:
    rows = [
        shortage("a", 0, 600),
        shortage("a", 300, 900, leader=-1),
        shortage("b", DAY_S - 60, None),
    ]
    figures = figures_of("one", reader(failovers=[failover(1, 1, 0, DAY_S, None)], under_replicated=rows))
    shortages = figures.shortages
    assert shortages.ms_by_topic == {"a": 1_200_000, "b": 60_000}
    assert shortages.partition_minutes == 21
    assert (shortages.intervals, shortages.offline) == (3, 1)
    assert shortages.bins.step_ms == 600_000
    assert shortages.bins.values[:3].tolist() == [900_000, 300_000, 0]
    assert shortages.bins.values.sum() == 1_260_000


def test_a_shortage_that_ends_before_it_began_takes_nothing_away() -> None:
    """The next leader's clock may be slow."""
    rows = [shortage("a", 60, 30), shortage("a", 120, 180)]
    figures = figures_of("one", reader(failovers=[failover(1, 1, 0, DAY_S, None)], under_replicated=rows))
    assert figures.shortages.partition_minutes == 1


def test_failovers_and_sessions() -> None:
    sessions = [session(2, "active", 0, 60), session(2, "fenced", 60, None), session(1, "active", 5, None)]
    failovers = [
        failover(3, None, 200, 300, 4000),
        failover(1, 1, 0, 100, None),
        failover(2, 2, 110, 190, 250),
    ]
    figures = figures_of("one", reader(sessions, failovers))
    assert figures.brokers == 2
    assert [each.epoch for each in figures.failovers] == [1, 2, 3]
    assert figures.waits_ms == [250, 4000]
    assert Session(2, "fenced", ms(60), None) in figures.sessions


def test_hours_add_up() -> None:
    hours = [hour(2, 50, fencings=2), hour(0, 7000, fencings=1, elections=9)]
    figures = figures_of("one", reader(churn=hours))
    assert (figures.records, figures.fencings) == (7050, 3)
    assert [each.start_ms for each in figures.hours] == [ms(0), ms(7200)]
    assert figures.span.length_ms < DAY_MS
