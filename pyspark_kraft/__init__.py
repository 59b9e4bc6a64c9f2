"""Where Spark looks for the data source ``kraft``: it imports every top-level module named pyspark_*."""

from kraft_wire.spark.source import KraftDataSource as DefaultSource

__all__ = ["DefaultSource"]
