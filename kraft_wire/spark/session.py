"""A Spark session that finds the data source."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS: Final = {
    "spark.sql.python.unix.domain.socket.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}

_LOCAL_SETTINGS: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""On a laptop a stream's checkpoint is on the local disk, where Spark's usual choice starts a process or two
(chmod, readlink) for each file that it writes: 80 ms a trigger. Renaming is there as atomic either way; on
HDFS it is not."""

WORKER_ENVIRONMENT: Final = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(128 * 2**20),
}
"""Decoding takes and frees some megabytes for each page of a log. By default glibc gives them back to the
system and asks for new ones, which costs a tenth of the time."""


def session(master: str = "local[*]", settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session whose workers run this very Python: otherwise they'd take ``python3`` from the PATH, which
    may know nothing of us."""
    for key, value in {"PYSPARK_PYTHON": sys.executable, **WORKER_ENVIRONMENT}.items():
        os.environ.setdefault(key, value)  # local workers inherit it
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("kraft-wire")
    elsewhere = {f"spark.executorEnv.{key}": value for key, value in WORKER_ENVIRONMENT.items()}
    local = _LOCAL_SETTINGS if master.startswith("local") else {}
    for key, value in {**_SETTINGS, **local, **elsewhere, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
