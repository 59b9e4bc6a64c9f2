"""The Spark that is measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from kraft_wire.spark.session import session


@contextmanager
def quiet_session(cores: int) -> Iterator[SparkSession]:
    """It says what is wrong, and nothing else."""
    spark = session(f"local[{cores}]", {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"})
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()
