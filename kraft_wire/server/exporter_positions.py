"""Keep the positions of exporters in ``exporters.json``, beside ``quorum-state``."""

from __future__ import annotations

import threading
from collections.abc import Collection
from pathlib import Path
from typing import Final

import trio

from kraft_wire.exporters.positions import (
    POSITIONS_FILE,
    Kept,
    Positions,
    Resets,
    parse_positions,
    positions_text,
)
from kraft_wire.exporters.resync.bases import forget_bases
from kraft_wire.log.errors import MalformedFile
from kraft_wire.server.reports.exporters import ExporterReports
from kraft_wire.storage.disk import Disk
from kraft_wire.storage.errors import DiskFailed

WRITE_INTERVAL_S: Final = 1.0
"""Positions are written so often; after a crash records of this time are exported once more."""
CORRUPT_SUFFIX: Final = ".corrupt"


class ExporterPositions:
    """The positions of these exporters and their last resets, in memory and on disk. The disk is only
    touched in threads.

    ``known`` and ``resets`` always are the same dictionaries: the node answers followers from them.
    """

    def __init__(
        self, folder: Path, cluster: str, exporters: Collection[str], reports: ExporterReports
    ) -> None:
        self.known: Positions = {}
        self.resets: Resets = {}
        self._path = folder / POSITIONS_FILE
        self._cluster = cluster
        self._exporters = exporters
        self._reports = reports
        self._written = Kept()
        self._changed = trio.Event()
        self._one_writer = threading.Lock()

    async def load(self) -> None:
        """Read the file, and delete the states that were kept for exporters. Positions of exporters that are
        no longer configured are left out. A damaged file is set aside."""
        try:
            await trio.to_thread.run_sync(forget_bases, self._path.parent)
        except OSError as error:
            self._reports.bases_left(str(error))
        try:
            self._written = await trio.to_thread.run_sync(self._read, abandon_on_cancel=True)
        except (OSError, DiskFailed, MalformedFile) as error:
            self._reports.positions_lost(self._path, str(error))
            self._written = Kept()
        found = self._written.of(self._exporters)
        self.known.clear()
        self.known.update(found.positions)
        self.resets.clear()
        self.resets.update(found.resets)
        if found != self._written:
            self._changed.set()

    def note(self, exporter: str, position: int) -> None:
        """Take note of a position; it is written soon. Those of other exporters don't count."""
        if exporter in self._exporters and self.known.get(exporter) != position:
            self.known[exporter] = position
            self._changed.set()

    def begin_again(self, exporter: str, reset: str) -> bool:
        """Forget the position of an exporter because of a reset, unless that was done before. Returns whether
        it was forgotten now."""
        if exporter not in self._exporters or self.resets.get(exporter, "") == reset:
            return False
        self.known.pop(exporter, None)
        self.resets[exporter] = reset
        self._changed.set()
        return True

    async def keep(self) -> None:
        """Write the positions when they change, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            await self.write()
            await trio.sleep(WRITE_INTERVAL_S)

    async def write(self) -> None:
        """Write the positions if they aren't written yet. What fails is reported, and tried again with the
        next change."""
        kept = Kept(dict(self.known), dict(self.resets))
        if kept == self._written:
            return
        try:
            await trio.to_thread.run_sync(self._replace, kept, abandon_on_cancel=True)
        except DiskFailed as error:
            self._reports.positions_not_kept(str(error))
        else:
            self._written = kept

    def _read(self) -> Kept:
        try:
            text = self._path.read_text("utf-8", errors="replace")
        except FileNotFoundError:
            return Kept()
        try:
            return parse_positions(text, self._cluster)
        except MalformedFile:
            Disk().rename(self._path, self._path.with_name(POSITIONS_FILE + CORRUPT_SUFFIX))
            raise

    def _replace(self, kept: Kept) -> None:
        # A disk of its own: whether positions can be written doesn't matter to the log.
        with self._one_writer:
            Disk().replace(self._path, positions_text(self._cluster, kept).encode())
