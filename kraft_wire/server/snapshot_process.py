"""Snapshots, made by a process of their own: the event loop must not wait for millions of records.

The child (``kraft_wire.storage.snapshotter``) reads the newest snapshot and the committed log, both of
which only grow, and writes the new snapshot beside them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import trio

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.raft.events import SnapshotWritten


class SnapshotProcessFailed(Exception):
    """The child could not make the snapshot; its own words are in the text."""


class SnapshotProcess:
    """Makes snapshots of one log folder, one at a time."""

    def __init__(self, log_dir: Path) -> None:
        self._log_dir = log_dir

    async def make(self, snapshot_id: SnapshotId) -> SnapshotWritten:
        """Write the snapshot; when this returns it is on stable storage. Raises SnapshotProcessFailed."""
        command = [
            sys.executable,
            "-m",
            "kraft_wire.storage.snapshotter",
            os.fspath(self._log_dir),
            str(snapshot_id.end_offset),
            str(snapshot_id.epoch),
        ]
        try:
            with _end_of_this_process() as stdin:
                result = await trio.run_process(
                    command, capture_stdout=True, capture_stderr=True, check=False, stdin=stdin
                )
        except OSError as error:
            raise SnapshotProcessFailed(f"{sys.executable} can't be started: {error}") from error
        if result.returncode:
            words = result.stderr.decode(errors="replace").strip()
            raise SnapshotProcessFailed(words or f"its process ended with status {result.returncode}")
        return msgspec.json.decode(result.stdout, type=SnapshotWritten)


@contextmanager
def _end_of_this_process() -> Iterator[int]:
    """A pipe that ends when this process does, however it does: the child must not go on alone in a folder
    that the next controller owns."""
    readable, writable = os.pipe()
    try:
        yield readable
    finally:
        os.close(readable)
        os.close(writable)
