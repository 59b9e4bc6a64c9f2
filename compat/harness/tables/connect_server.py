"""Run a Spark cluster behind a Spark Connect server."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

from compat.harness.processes import ManagedProcess

_STARTED: Final = r"Spark Connect server started at: (127\.0\.0\.1:\d+)"


@contextmanager
def connect_server(folder: Path, settings: Mapping[str, str], unshared: Path, python: Path) -> Iterator[str]:
    """Start a server and yield its URL. Its tasks run in processes of their own, in another folder, and their
    Python is ``python``.

    The server doesn't see the files in ``unshared``: another file system is mounted there for it. Needs root.
    """
    home = Path(pyspark.__file__).parent
    configured = {
        **settings,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.log.level": "INFO",
    }
    command = [
        *("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(unshared)),
        str(home / "bin" / "spark-submit"),
        *("--master", "local-cluster[1,1,1024]"),
        *(word for name, value in configured.items() for word in ("--conf", f"{name}={value}")),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        "spark-internal",
    ]
    environment = {"SPARK_HOME": str(home), "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
    workers = {"SPARK_WORKER_DIR": str(folder / "work"), "PATH": os.environ["PATH"]}
    server = ManagedProcess("connect-server", command, folder / "server.log", {**environment, **workers})
    try:
        yield f"sc://{server.wait_for_log(_STARTED)[1]}"
    finally:
        server.kill_with_children()
