"""Measure the processor time of this process and its descendants: Spark's JVM and its Python workers."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Final

_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")


class Stopwatch:
    """A stopwatch for wall time and processor time that starts when it is created."""

    def __init__(self) -> None:
        self._wall_s = time.perf_counter()
        self._processor_s = _processor_s()

    def wall_s(self) -> float:
        return time.perf_counter() - self._wall_s

    def processor_s(self) -> float:
        return _processor_s() - self._processor_s


def _processor_s() -> float:
    ticks: dict[int, int] = {}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        pid = int(stat.parent.name)
        children[int(fields[1])].append(pid)
        ticks[pid] = sum(map(int, fields[11:15]))
    found, total = [os.getpid()], 0
    while found:
        pid = found.pop()
        total += ticks[pid]
        found += children[pid]
    return total / _TICKS_A_SECOND
