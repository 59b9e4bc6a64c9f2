"""Make the command that starts ``snapshotter``, the process that writes a snapshot, without its imports."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kraft_wire.log.snapshot import SnapshotId


def snapshotter_command(
    folder: Path, snapshot_id: SnapshotId, niceness: int, target: Path | None = None
) -> list[str]:
    """Return the command that writes a snapshot of a log folder, into the folder itself or another one."""
    return [
        sys.executable,
        "-m",
        "kraft_wire.storage.snapshots.snapshotter",
        os.fspath(folder),
        str(snapshot_id.end_offset),
        str(snapshot_id.epoch),
        str(niceness),
        *([] if target is None else [os.fspath(target)]),
    ]


@contextmanager
def end_of_this_process() -> Iterator[int]:
    """Yield a pipe that closes when this process ends for any reason. The child then stops too: it must not
    write into a folder that another controller may own by then."""
    readable, writable = os.pipe()
    try:
        yield readable
    finally:
        os.close(readable)
        os.close(writable)
