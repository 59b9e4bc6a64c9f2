"""Register the data source ``kraft``: Spark imports every top-level module named pyspark_* to find
sources."""

from kraft_wire.spark.source import KraftDataSource as DefaultSource

__all__ = ["DefaultSource"]
