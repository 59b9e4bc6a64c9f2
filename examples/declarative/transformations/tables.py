"""Define every table of kraft-wire, for the logs below ``spark.kraft.path``."""

from pyspark.sql import SparkSession

from kraft_wire.spark.declarative import define

define({"path": SparkSession.active().conf.get("spark.kraft.path")})
