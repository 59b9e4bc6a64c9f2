"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

import msgspec


class Machine(msgspec.Struct, frozen=True):
    """The machine and the interpreter."""

    cpu: str
    cores: int
    load: float
    """Processes that wanted to run in the minute before: what else the machine did."""
    python: str
    msgspec: str


def this_machine() -> Machine:
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return Machine(
        cpu=model[1] if model else platform.machine(),
        cores=os.cpu_count() or 1,
        load=os.getloadavg()[0],
        python=f"{platform.python_implementation()} {platform.python_version()}",
        msgspec=version("msgspec"),
    )
