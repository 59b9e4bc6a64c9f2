"""Spark reads metadata logs through the data source, which it finds by its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark_readers import batch

from kraft_wire.spark.options import table_names
from kraft_wire.spark.record_tables import RECORDS
from kraft_wire.spark.session import session

JAVA_LOG = Path(__file__).parents[2] / "tests/log/data/java-4.4.0"
QUICK = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    started = session("local[1]", QUICK)
    yield started
    started.stop()


def test_spark_reads_what_is_on_disk(spark: SparkSession) -> None:
    read = spark.read.format("kraft").load(str(JAVA_LOG)).toArrow()
    assert read.num_rows > 100
    assert read.cast(RECORDS).to_pylist() == batch(JAVA_LOG)


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


def test_a_folder_without_logs_is_an_error_that_names_it(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match=f"no __cluster_metadata-0 in or below {tmp_path}"):
        spark.read.format("kraft").load(str(tmp_path)).count()
