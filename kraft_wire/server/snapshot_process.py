"""Write snapshots in a child process, so that the event loop doesn't wait for millions of records.

The child (``kraft_wire.storage.snapshots.snapshotter``) reads the newest snapshot and the committed log,
neither of which changes below the new snapshot's end, and writes the new snapshot into the same folder.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import msgspec
import trio

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.raft.events import SnapshotWritten
from kraft_wire.storage.snapshots.snapshotter_command import end_of_this_process, snapshotter_command

BELOW_THE_CONTROLLER: Final = 10
"""The niceness of the child, unless the snapshot is urgent: the controllers on this machine come first."""


class SnapshotProcessFailed(Exception):
    """The child could not write the snapshot. The text contains the child's error message."""


class SnapshotProcess:
    """A writer of snapshots of one log folder, one at a time."""

    def __init__(self, log_dir: Path) -> None:
        self._log_dir = log_dir

    async def make(self, snapshot_id: SnapshotId, *, is_urgent: bool) -> SnapshotWritten:
        """Write the snapshot. It is on stable storage when this returns. Raises SnapshotProcessFailed."""
        niceness = 0 if is_urgent else BELOW_THE_CONTROLLER
        command = snapshotter_command(self._log_dir, snapshot_id, niceness)
        try:
            with end_of_this_process() as stdin:
                result = await trio.run_process(
                    command, capture_stdout=True, capture_stderr=True, check=False, stdin=stdin
                )
        except OSError as error:
            raise SnapshotProcessFailed(f"{sys.executable} can't be started: {error}") from error
        if result.returncode:
            words = result.stderr.decode(errors="replace").strip()
            raise SnapshotProcessFailed(words or f"its process ended with status {result.returncode}")
        return msgspec.json.decode(result.stdout, type=SnapshotWritten)
