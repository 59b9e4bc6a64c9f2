"""Create the Spark sessions that are measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from kraft_wire.spark import session


@contextmanager
def quiet_session(cores: int) -> Iterator[SparkSession]:
    """Start a session that logs only errors."""
    spark = session(f"local[{cores}]", {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"})
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()
