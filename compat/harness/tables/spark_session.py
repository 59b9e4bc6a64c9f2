"""Create small Spark sessions that start quickly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from compat.harness.kafka.class_archives import SPARK, using_archive
from kraft_wire.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUICK: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {using_archive(SPARK)}",
}
FEW_ROWS: Final = {
    **QUICK,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
}
"""Settings for few rows: compiling a plan would take ten times as long as interpreting it."""


def quick_session(settings: Mapping[str, str] = QUICK) -> SparkSession:
    """Start a session on one core."""
    return session("local[1]", settings)
