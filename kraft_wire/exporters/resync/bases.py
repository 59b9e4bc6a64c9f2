"""Keep the state that the sink of an exporter has, as a snapshot of its own, while the log that leads on from
there may be deleted. It is made in a process of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import trio

from kraft_wire.log.snapshot import SnapshotId
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.snapshots.snapshot_store import SnapshotReader, SnapshotStore
from kraft_wire.storage.snapshots.snapshotter_command import end_of_this_process, snapshotter_command

BASES: Final = "exporters"
"""A folder in that of the log, with a folder for each exporter. Java's controllers ignore it."""
NO_EPOCH: Final = 0
"""No snapshot of the log has this epoch, but that of format."""
BELOW_EXPORTERS: Final = 5
"""The niceness of the process, added to that of the exporters."""


class BaseNotKept(Exception):
    """The state could not be kept. The text says why."""


class Base:
    """The kept state of one exporter. ``folder`` is that of the log. All methods may block but ``keep``."""

    def __init__(self, folder: Path, exporter: str) -> None:
        self._log_folder = folder
        self._folder = folder / BASES / exporter

    def offset(self) -> int | None:
        """Return the offset below which the state is kept; None if none is. Raises OSError."""
        if not self._folder.is_dir():
            return None
        with closing(SnapshotStore(self._folder, Disk())) as store:
            return None if store.latest is None else store.latest.end_offset

    @contextmanager
    def opened(self) -> Iterator[SnapshotReader]:
        """Give a reader of the kept state. Raises OSError, also FileNotFoundError if there is none."""
        with closing(SnapshotStore(self._folder, Disk())) as store:
            if store.latest is None:
                raise FileNotFoundError(self._folder)
            reader = store.open_reader(store.latest)
        with closing(reader):
            yield reader

    async def keep(self, offset: int | None) -> None:
        """Make it the state below an offset, at which a batch ends; None for no state. Raises BaseNotKept,
        OSError."""
        if offset == await trio.to_thread.run_sync(self.offset):
            return
        await trio.to_thread.run_sync(self._forget)
        if offset is not None:
            self._folder.mkdir(parents=True)
            await self._make(SnapshotId(offset, NO_EPOCH))

    def _forget(self) -> None:
        if self._folder.is_dir():
            shutil.rmtree(self._folder)

    async def _make(self, snapshot_id: SnapshotId) -> None:
        command = snapshotter_command(self._log_folder, snapshot_id, BELOW_EXPORTERS, self._folder)
        with end_of_this_process() as stdin:
            made = await trio.run_process(
                command, capture_stdout=True, capture_stderr=True, check=False, stdin=stdin
            )
        if made.returncode != 0:
            lines = made.stderr.decode(errors="replace").strip().splitlines() or ["no word"]
            raise BaseNotKept(lines[-1])


def forget_bases(folder: Path) -> None:
    """Delete the kept states of all exporters. ``folder`` is that of the log. Raises OSError.

    They are those of one run: another controller may have told the sinks more since.
    """
    if (folder / BASES).is_dir():
        shutil.rmtree(folder / BASES)
