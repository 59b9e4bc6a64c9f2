"""Measure kafka-dump-log, Kafka's own reader of metadata logs; its output is discarded."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Final

from compat.harness.kafka.jars import TOOLS_VERSION, find_jars, java
from compat.harness.paths import TOOL_LOGGING
from compat.harness.processes import ProcessFailed, die_with_parent

_DUMP_LOG: Final = "org.apache.kafka.tools.DumpLogSegments"


def measure_dump_log(segment: Path) -> float:
    """Return the seconds, including the JVM's start. Raises ProcessFailed."""
    began = time.perf_counter()
    done = subprocess.run(
        [
            java(),
            "-Xmx1g",
            f"-Dlog4j2.configurationFile={TOOL_LOGGING}",
            "-cp",
            find_jars(TOOLS_VERSION).class_path,
            _DUMP_LOG,
            "--cluster-metadata-decoder",
            "--skip-record-metadata",
            "--files",
            str(segment),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=die_with_parent,
        check=False,
    )
    took_s = time.perf_counter() - began
    if done.returncode:
        raise ProcessFailed(
            f"{_DUMP_LOG}: exit code {done.returncode}\n{done.stderr.decode(errors='replace')}"
        )
    return took_s
