"""Spark finds the data source by its name and reads metadata logs with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kraft_wire.spark.sessions import WORKER_ENVIRONMENT
from kraft_wire.tabular.arrow_types import RECORDS_SCHEMA
from kraft_wire.tabular.table_names import table_names
from tests.support.metadata_logs import LogWriter
from tests.support.spark_readers import batch

JAVA_LOG = Path(__file__).parents[3] / "tests/log/data/java-4.4.0"


def test_spark_reads_what_is_on_disk(spark: SparkSession) -> None:
    read = spark.read.format("kraft").load(str(JAVA_LOG)).toArrow()
    assert read.num_rows > 100
    assert read.cast(RECORDS_SCHEMA).to_pylist() == batch(JAVA_LOG)


def test_workers_keep_the_memory_that_pages_take(spark: SparkSession) -> None:
    def environment(_: int) -> dict[str, str]:
        import os

        return dict(os.environ)

    (found,) = spark.sparkContext.parallelize([0], 1).map(environment).collect()
    assert found.items() >= WORKER_ENVIRONMENT.items()


def test_every_table_can_be_read(spark: SparkSession) -> None:
    counts = {
        table: spark.read.format("kraft").option("table", table).load(str(JAVA_LOG)).count()
        for table in table_names()
    }
    records = spark.read.format("kraft").load(str(JAVA_LOG))
    control = records.where("type in ('LeaderChangeMessage', 'KRaftVersionRecord', 'VotersRecord')").count()
    assert control
    assert counts.pop("records") == sum(counts.values()) + control


def test_chosen_columns_are_the_tables(spark: SparkSession) -> None:
    read = (
        spark.read.format("kraft").option("table", "feature_level").option("columns", "name, feature_level")
    )
    assert ("metadata.version", 33) in [tuple(row) for row in read.load(str(JAVA_LOG)).collect()]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"table": "partitons"}, "there is no 'partitons'; there are records, corrupt, abort_transaction"),
        ({"columns": "offset,ofset"}, "records has no ofset; it has cluster, offset"),
    ],
)
def test_a_wrong_option_is_an_error_that_names_the_right_ones(
    spark: SparkSession, options: dict[str, str], what: str
) -> None:
    with pytest.raises(PySparkException, match=what):
        spark.read.format("kraft").options(**options).load(str(JAVA_LOG)).count()


def test_several_folders_are_read_at_once(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "node")
    log.append(20)
    log.close()
    read = spark.read.format("kraft").load([str(JAVA_LOG), str(log.partition)])
    counts = {row["cluster"]: row["count"] for row in read.groupBy("cluster").count().collect()}
    assert counts == {batch(JAVA_LOG)[0]["cluster"]: len(batch(JAVA_LOG)), "one": 21}


def test_filters_are_pushed_to_the_source_where_it_takes_them(spark: SparkSession) -> None:
    read = spark.read.format("kraft").option("pushFilters", "true").load(str(JAVA_LOG))
    wanted = "offset > 20 and offset <= 100 and type in ('TopicRecord', 'LeaderChangeMessage')"
    query = read.where(wanted).where("json like '%e%'")
    found = query.toArrow().to_pylist()
    everything = spark.read.format("kraft").load(str(JAVA_LOG))
    assert found == everything.where(wanted).where("json like '%e%'").toArrow().to_pylist()
    assert found
    plan = query._jdf.queryExecution().executedPlan().toString()
    left = [line for line in plan.splitlines() if "Filter (" in line or "Filter Contains" in line]
    assert len(left) == 1, plan
    assert "offset" not in left[0], plan


def test_a_stream_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "node")
    log.append(20)
    log.snapshot()
    log.roll()
    log.trim(21)
    log.append()
    found, triggers = _stream(spark, tmp_path, log.partition, maxOffsetsPerTrigger="2")
    assert found == _sorted(batch(log.partition))
    assert triggers == [23 + 2, 1], "the snapshot comes with the first"
    log.lead(2)
    log.append(7)
    found, triggers = _stream(spark, tmp_path, log.partition, maxOffsetsPerTrigger="3")
    assert triggers == [3, 3, 2]
    assert found == _sorted(batch(log.partition))
    found, triggers = _stream(spark, tmp_path, log.partition)
    assert (len(found), triggers) == (34, [])
    log.cut(21)
    with pytest.raises(PySparkException, match=r"cluster one: .*offset 32 of epoch 2: the log was truncated"):
        _stream(spark, tmp_path, log.partition)
    log.close()


def _stream(
    spark: SparkSession, folder: Path, source: Path, **options: str
) -> tuple[list[dict[str, object]], list[int]]:
    """Return all rows that the query has ever written, and the row counts of this run's triggers."""
    read = spark.readStream.format("kraft").options(startingOffsets="earliest", **options).load(str(source))
    query = (
        read.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "table"))
    )
    try:
        query.awaitTermination()
        triggers = [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]
    finally:
        query.stop()
    found = spark.read.schema(read.schema).parquet(str(folder / "table"))
    return _sorted(found.toArrow().cast(RECORDS_SCHEMA).to_pylist()), triggers


def _sorted(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(
        rows, key=lambda row: (str(row["cluster"]), not row["in_snapshot"], row["offset"], str(row))
    )


def test_a_folder_without_logs_is_an_error_that_names_it(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match=f"no __cluster_metadata-0 in or below {tmp_path}"):
        spark.read.format("kraft").load(str(tmp_path)).count()
