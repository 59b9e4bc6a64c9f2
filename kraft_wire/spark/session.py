"""A Spark session that finds the data source."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SQL_SETTINGS: Final = {
    "spark.sql.python.unix.domain.socket.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}

_START_SETTINGS: Final = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""What a Spark that runs already can't be told."""

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


def session(
    master: str = "local[*]", settings: Mapping[str, str] | None = None, *, remote: str | None = None
) -> SparkSession:
    """A session whose workers run this very Python: otherwise they'd take ``python3`` from the PATH, which
    may know nothing of us.

    With ``remote``, such as sc://host:15002, it is a Spark Connect server's, whose Python has to have
    kraft-wire[spark]; ``master`` is the server's own then.
    """
    from pyspark.sql import SparkSession

    if remote is not None:
        return _configured(SparkSession.builder.remote(remote), {**_SQL_SETTINGS, **(settings or {})})
    for key, value in {"PYSPARK_PYTHON": sys.executable, **WORKER_ENVIRONMENT}.items():
        os.environ.setdefault(key, value)  # local workers inherit it
    elsewhere = {f"spark.executorEnv.{key}": value for key, value in WORKER_ENVIRONMENT.items()}
    local = _LOCAL_SETTINGS if master.startswith("local") else {}
    builder = SparkSession.builder.master(master).appName("kraft-wire")
    return _configured(
        builder, {**_SQL_SETTINGS, **_START_SETTINGS, **local, **elsewhere, **(settings or {})}
    )


def _configured(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
