"""Describe the machine and the interpreter of a benchmark."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from time import process_time
from timeit import Timer

import msgspec


class Machine(msgspec.Struct, frozen=True):
    """The machine and the interpreter."""

    cpu: str
    cores: int
    load: float
    """The load average of the minute before, which shows what else the machine did."""
    copy_64_kib_ns: int
    """The time for copying 64 KiB into a new object, a lower bound for encoding the blob to bytes."""
    python: str
    msgspec: str


def this_machine() -> Machine:
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return Machine(
        cpu=model[1] if model else platform.machine(),
        cores=os.cpu_count() or 1,
        load=os.getloadavg()[0],
        copy_64_kib_ns=_copy_64_kib_ns(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        msgspec=version("msgspec"),
    )


def _copy_64_kib_ns() -> int:
    timer = Timer(
        "join((b'', blob))", timer=process_time, globals={"join": b"".join, "blob": bytes(64 * 1024)}
    )
    return round(min(timer.repeat(repeat=50, number=1000)) * 1e6)
