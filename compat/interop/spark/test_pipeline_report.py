"""The numbers of the report are those of the derived tables that the pipeline wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from compat.harness.kafka.nodes import run_command
from compat.harness.tables.random_history import History
from compat.harness.tables.spark_session import FEW_ROWS
from kraft_wire.lake.protocol import Lake
from kraft_wire.lake.report.figures import BINS, Figures
from kraft_wire.lake.report.tables import LakeTables
from kraft_wire.spark.pipeline.batch import apply_batch
from kraft_wire.tabular.arrow_types import RECORDS_SCHEMA

SPARK_SETTINGS = FEW_ROWS
HISTORIES = [History("one", 1, 300), History("gap", 11, 260, gap=(120, 170))]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake after two batches of the pipeline."""
    folder = tmp_path_factory.mktemp("lake")
    for batch in range(2):
        rows = [row for history in HISTORIES for row in _half(history.rows, batch)]
        with Lake(folder) as lake:
            apply_batch(lake, spark.createDataFrame(pa.Table.from_pylist(rows, RECORDS_SCHEMA)), batch)
    return folder


def _half(rows: list[dict[str, Any]], which: int) -> list[dict[str, Any]]:
    middle = len(rows) // 3
    assert not rows[middle]["in_snapshot"], "snapshots come whole"
    return rows[middle:] if which else rows[:middle]


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.cluster)
def test_the_reports_numbers_are_the_tables(spark: SparkSession, lake: Path, history: History) -> None:
    figures = LakeTables(str(lake)).figures(history.cluster)

    def table(name: str) -> DataFrame:
        return spark.read.parquet(str(lake / name)).filter(F.col("cluster") == history.cluster)

    assert figures.brokers == table("broker_sessions").select("broker_id").distinct().count() > 1
    assert figures.waits_ms == [
        row.leaderless_ms
        for row in table("failovers").filter("leaderless_ms is not null").orderBy("epoch").collect()
    ]
    changes = table("leadership").filter("leader_epoch > 0 and known_start")
    assert figures.elections.total == changes.count() > 0
    assert figures.elections.bins.values.sum() == figures.elections.total
    assert figures.elections.unclean == changes.filter("unclean").count()
    assert figures.records == table("churn").agg(F.sum("records")).first()[0]  # type: ignore[index]
    assert figures.fencings == table("churn").agg(F.sum("fencings")).first()[0]  # type: ignore[index]
    _check_shortages(figures, table("under_replicated"))


def _check_shortages(figures: Figures, intervals: DataFrame) -> None:
    end_ms = F.coalesce(F.unix_millis("end_timestamp"), F.lit(figures.span.end_ms))
    lengths = intervals.select("topic", (end_ms - F.unix_millis("start_timestamp")).alias("ms"))
    expected = {row.topic: row.ms for row in lengths.groupBy("topic").agg(F.sum("ms").alias("ms")).collect()}
    assert figures.shortages.ms_by_topic == expected
    assert sum(expected.values()) > 0
    assert figures.shortages.bins.values.sum() == pytest.approx(sum(expected.values()))
    assert len(figures.shortages.bins.values) <= BINS
    assert figures.shortages.offline == intervals.filter("leader = -1").count()


def test_the_command_makes_a_page_of_them(lake: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = run_command("pipeline", "report", "--target", lake, "--out", out)
    assert done.returncode == 0, done.stderr
    text = out.read_text("utf-8")
    assert all(f"<bdi>{history.cluster}</bdi>" in text for history in HISTORIES)
