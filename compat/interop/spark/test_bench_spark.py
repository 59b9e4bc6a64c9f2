"""The benchmark of metadata tables measures the right things."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from compat.benches.spark.appenders import WRITABLE_LOGS
from compat.benches.spark.decoding import measure_decoding
from compat.benches.spark.dump_log import measure_dump_log
from compat.benches.spark.history import HISTORIES, Histories
from compat.benches.spark.latency import AT_ONCE
from compat.benches.spark.through_spark import CHOSEN, ThroughSpark
from compat.harness.tables.generated_logs import KINDS, write_cluster_history, write_log


@pytest.mark.parametrize("kind", KINDS)
def test_every_record_of_a_log_is_decoded(tmp_path: Path, kind: str) -> None:
    segment = write_log(tmp_path, kind, 4_000)
    speed = measure_decoding(segment, 1)
    assert (speed.records, speed.size_bytes) == (4_000, segment.stat().st_size)
    assert speed.peak_rss_bytes > 10 * 2**20


def test_spark_and_kafkas_own_reader_take_the_log(spark: SparkSession, tmp_path: Path) -> None:
    segment = write_log(tmp_path, "mix", 2_000)
    through_spark = ThroughSpark(spark, 1)
    assert through_spark.measure(segment, "mix") > 0
    assert through_spark.measure(segment, "mix", CHOSEN["mix"]) > 0
    assert through_spark.measure_ready_rows(segment, "mix") > 0
    assert measure_dump_log(segment) > 0


@pytest.mark.parametrize("name", WRITABLE_LOGS)
def test_every_record_that_is_appended_comes_out_of_a_stream(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    with WRITABLE_LOGS[name](tmp_path) as log:
        found = ThroughSpark(spark, 1).latency(log, seconds=1.0, warm_up_s=0.2)
    assert found.records == 10 * AT_ONCE
    assert 0 < found.p50_ms <= found.p99_ms
    assert {"addBatch", "latestOffset"} <= found.trigger_ms.keys()


def test_the_log_and_parquet_give_the_same_histories(spark: SparkSession, tmp_path: Path) -> None:
    segment = write_cluster_history(tmp_path / "log", 3_000)
    histories = Histories(spark, segment.parent, tmp_path / "lake")
    for history in HISTORIES.values():
        assert history(histories.lake).count() == history(histories.source).count() > 500
