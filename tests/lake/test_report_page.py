"""The report's page is well-formed and harmless for any names in the data, and says what it leaves out."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kraft_wire.cli import main
from kraft_wire.lake.report.figures import CHURN, TABLES, Figures, figures_of
from kraft_wire.lake.report.lifelines import POINTS, inactive_ms, life_lines, worst_brokers
from kraft_wire.lake.report.page import MOST_SUMMARIES, page
from kraft_wire.lake.report.plots import column_plot
from kraft_wire.lake.report.scales import Span
from kraft_wire.lake.report.section import MOST_BROKERS
from kraft_wire.lake.report.tables import LakeTables, NoTables
from tests.lake.report_samples import failover, hour, leader, reader, session, shortage

DAY_S = 24 * 3600
HOSTILE = '<script>alert("x")</script><img src=x onerror=y>&amp;\u202e\x00'


class Seen(HTMLParser):
    """Collect the tags and texts of a page; reject a page whose tags don't match."""

    VOID = frozenset({"meta"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(f"{text} " for text in self.texts).split())


def figures(cluster: str = "one", topic: str = "orders", topics: int = 1, minutes: int = 10) -> Figures:
    names = [topic, *(f"topic-{number}" for number in range(topics - 1))]
    return figures_of(
        cluster,
        reader(
            [session(1, "active", 0, 3600), session(1, "fenced", 3600, None)],
            [failover(1, 1, 0, 3000, None), failover(2, 2, 3001, DAY_S, 1250)],
            [leader(name, 1, 3600) for name in names],
            [shortage(name, 3600, 3600 + 60 * minutes) for name in names],
            [hour(0, 7200, elections=3), hour(1, 7300)],
        ),
    )


def test_the_page_says_what_is_so() -> None:
    seen = Seen(page([figures("one")]))
    assert seen.tags.count("svg") >= 5
    for part in (
        "Clusters: 1, brokers: 1, under-replicated partition-minutes: 10, failovers of controllers: 1.",
        "Cluster one",
        "broker 1 2 23 h",
        "1 in total, median 1.2 s, longest 1.2 s",
        "orders 1",
        "orders 10",
        "2026-11-01 01:00:00 7,300",
    ):
        assert part in seen.text, part
    for title, unit in (
        ("Brokers' lifelines", "states over time, UTC"),
        ("Leadership changes", "partitions that got another leader, every 10 min, UTC"),
        ("Under-replicated minutes", "partition-minutes with too few replicas in sync"),
        ("Failover times of controllers", "seconds without a leader"),
        ("Churn", "records written, every 1 h, UTC"),
    ):
        assert f"{title} {unit}" in seen.text


def test_hostile_names_are_text() -> None:
    text = page([figures(HOSTILE, topic=HOSTILE)])
    text.encode()
    seen = Seen(text)
    assert not {"script", "img"} & set(seen.tags)
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert "\u202e" not in text and "\x00" not in text
    assert '<script>alert("x")</script><img src=x onerror=y>&amp;' in seen.text


def test_the_page_fetches_nothing_and_runs_nothing() -> None:
    text = page([figures()])
    seen = Seen(text)
    assert not {"script", "link", "iframe", "object", "img", "a", "foreignobject"} & set(seen.tags)
    assert not {"src", "href", "style", "xlink:href"} & {name for name, _ in seen.attributes}
    assert not re.search(r"url\(|@import|https?:|//", text)
    assert "default-src 'none'" in text


def test_a_page_of_nothing() -> None:
    assert "Clusters: 0, brokers: 0" in Seen(page([])).text
    assert "Cluster empty" in Seen(page([figures_of("empty", reader())])).text


def test_what_is_left_out_is_counted() -> None:
    seen = Seen(
        page([figures(f"cluster-{n}", topics=n + 1, minutes=n) for n in range(1, 31)], most_clusters=4)
    )
    assert "26 of 30 clusters have no plots; all are in the summary." in seen.text
    assert [text for text in seen.texts if text == "Cluster "] == ["Cluster "] * 4
    assert seen.texts.index("cluster-30") < seen.texts.index("cluster-29") < seen.texts.index("cluster-1")
    assert "21 of 31 topics left out, with 21 changes in total." in seen.text
    assert "21 of 31 topics left out, with 630 partition-minutes in total." in seen.text


def test_a_table_of_too_many_clusters_ends_and_says_so() -> None:
    seen = Seen(page((figures_of(f"cluster-{n}", reader()) for n in range(MOST_SUMMARIES + 2)), 1))
    assert "2 of 1,002 clusters left out of the table." in seen.text
    assert "1,001 of 1,002 clusters have no plots; all are in the summary." in seen.text


def test_of_too_many_brokers_the_worst_are_shown() -> None:
    sessions = [
        piece
        for broker in range(MOST_BROKERS + 15)
        for piece in (session(broker, "active", 0, 600), session(broker, "fenced", 600, 700 + broker))
    ]
    seen = Seen(page([figures_of("one", reader(sessions))]))
    assert "15 of 75 brokers left out, which were inactive for less time." in seen.text
    assert f"broker {MOST_BROKERS + 14}" in seen.texts and "broker 15" in seen.texts
    assert "broker 14" not in seen.texts


def test_a_session_that_ends_before_it_began_makes_up_for_no_other() -> None:
    rows = [session(1, "fenced", 0, 600), session(1, "fenced", 1800, 1200), session(1, "active", 1800, None)]
    found = figures_of("one", reader(rows, [failover(1, 1, 0, 3600, None)]))
    assert inactive_ms(found.sessions, found.span) == {1: 600_000}
    (lane,) = life_lines(found.sessions, found.span, [1])
    assert min(piece.span.length_ms for piece in lane.pieces) >= 0


def test_a_broker_that_comes_and_goes_takes_no_more_than_the_plot_has_points() -> None:
    rows = [session(1, "active" if n % 2 else "fenced", n, n + 1) for n in range(20_000)]
    found = figures_of(
        "one", reader([*rows, session(1, "active", 20_000, 40_000)], [failover(1, 1, 0, 40_000, None)])
    )
    (lane,) = life_lines(found.sessions, found.span, worst_brokers(found.sessions, found.span, 5))
    assert len(lane.pieces) <= 2 * POINTS
    assert {piece.kind for piece in lane.pieces} == {"active", "fenced"}
    assert lane.pieces[-1].kind == "active"
    assert [piece.span.start_ms for piece in lane.pieces] == sorted(
        piece.span.start_ms for piece in lane.pieces
    )
    covered = sum(piece.span.length_ms for piece in lane.pieces)
    assert covered == found.span.length_ms


def test_an_unknown_state_is_drawn_as_bad() -> None:
    rows = [session(1, "on_fire", 0, 60), session(1, "active", 60, None)]
    found = figures_of("one", reader(rows, [failover(1, 1, 0, 100, None)]))
    (lane,) = life_lines(found.sessions, found.span, [1])
    assert [(piece.kind, "on_fire" in piece.title) for piece in lane.pieces] == [
        ("fenced", True),
        ("active", False),
    ]


def test_a_plot_without_values_has_its_axes() -> None:
    assert [child.tag for child in column_plot([], Span(0, 1), "records")].count("line") > 1


# --- the command


def write_lake(lake: Path) -> None:
    made = {
        "broker_sessions": [session(1, "active", 0, None)],
        "failovers": [failover(1, 1, 0, DAY_S, None)],
        "leadership": [leader("orders", 2, 60)],
        "under_replicated": [shortage("orders", 60, 120)],
        "churn": [hour(0, 7200)],
    }
    names = dict(zip(made, ("sessions", "failovers", "leadership", "under_replicated", "churn"), strict=True))
    for table in TABLES:
        batches = reader(**{names[table.name]: made[table.name]})(table)
        for cluster in ("one", "two"):
            folder = lake / table.name / f"cluster={cluster}"
            folder.mkdir(parents=True)
            pq.write_table(pa.Table.from_batches(list(batches)), folder / "0.parquet")


def report(lake: Path, out: Path, *options: str) -> int:
    return main(["pipeline", "report", "--target", str(lake), "--out", str(out), *options])


def test_the_command_reports_all_clusters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lake(tmp_path / "lake")
    out = tmp_path / "report.html"
    assert report(tmp_path / "lake", out) == 0
    assert capsys.readouterr().out == f"{out}: 2 of 2 clusters, {out.stat().st_size:,} bytes\n"
    seen = Seen(out.read_text("utf-8"))
    assert "Clusters: 2, brokers: 2, under-replicated partition-minutes: 2" in seen.text


def test_the_command_reports_chosen_clusters(tmp_path: Path) -> None:
    write_lake(tmp_path)
    assert report(tmp_path, tmp_path / "report.html", "--cluster", "two") == 0
    text = Seen((tmp_path / "report.html").read_text("utf-8")).text
    assert "Cluster two" in text and "Cluster one" not in text


def test_files_that_a_running_pipeline_replaces_are_looked_for_again(tmp_path: Path) -> None:
    write_lake(tmp_path)
    lake = LakeTables(str(tmp_path))
    before = lake.figures("one")
    for file in list(tmp_path.rglob("0.parquet")):
        file.rename(file.with_name("1.parquet"))
    assert lake.figures("one").sessions == before.sessions
    for table in TABLES:
        shutil.rmtree(tmp_path / table.name)
    with pytest.raises(NoTables, match="none of the tables"):
        lake.figures("one")


def test_what_the_command_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.html"
    assert report(tmp_path, out) == 1
    assert f"{tmp_path} has none of the tables broker_sessions, failovers," in capsys.readouterr().err
    write_lake(tmp_path)
    assert report(tmp_path, out, "--cluster", "three") == 1
    assert "has no cluster three; it has one, two" in capsys.readouterr().err
    for churn in (tmp_path / CHURN.name).rglob("*.parquet"):
        pq.write_table(pq.read_table(churn, partitioning=None).drop_columns("records"), churn)
    assert report(tmp_path, out) == 1
    assert f"{tmp_path}/churn has no records: `pipeline run` didn't write it" in capsys.readouterr().err
    assert not out.exists()


def test_a_healthy_cluster_was_under_replicated_for_zero_minutes() -> None:
    seen = Seen(page([figures(minutes=0)]))
    assert "under-replicated partition-minutes: 0, failovers" in seen.text
    assert not re.search(r"(?<![0-9])-0\b", seen.text)
