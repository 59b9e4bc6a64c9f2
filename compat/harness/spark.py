"""Spark sessions for tests: small, and quick to start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from compat.harness.class_archives import SPARK, using_archive
from kraft_wire.spark.session import session

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
"""Where there are few, compiling a plan takes ten times as long as running it as it is."""


def quick_session(settings: Mapping[str, str] = QUICK) -> SparkSession:
    """On one core."""
    return session("local[1]", settings)
