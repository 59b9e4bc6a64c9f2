"""Start a Spark session that finds the data source ``kraft``."""

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
"""Settings that a running Spark doesn't accept."""

_LOCAL_SETTINGS: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""On one machine, a stream's checkpoint is on the local disk. Spark's default starts a process or two (chmod,
readlink) for each file of a checkpoint there, which takes 80 ms for each trigger. On a local disk a rename is
atomic either way; on HDFS it isn't."""

WORKER_ENVIRONMENT: Final = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(128 * 2**20),
}
"""Decoding allocates and frees some megabytes for each page of a log. By default glibc returns them to the
system each time, which costs a tenth of the time."""


def session(
    master: str = "local[*]", settings: Mapping[str, str] | None = None, *, remote: str | None = None
) -> SparkSession:
    """Return a session whose workers run this Python. By default Spark runs ``python3`` from the PATH, which
    may not have kraft-wire.

    With ``remote``, such as sc://host:15002, the session is one of a Spark Connect server, whose Python must
    have kraft-wire[spark]; ``master`` is ignored then.
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
