"""What the sinks of files have in common."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Final

from kraft_wire.exporters.sinks import SinkFailed

FILE_MODE: Final = 0o640
"""Records may hold secrets, such as the keys of SCRAM users."""


def lock(fd: int, path: Path, written: str) -> None:
    """Make sure that no other process writes, such as the exporter of a controller that led before. Raises
    SinkFailed, which says what the other one writes."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SinkFailed(
            f"{path}: another process writes {written}; give each exporter a folder or a name"
        ) from None
