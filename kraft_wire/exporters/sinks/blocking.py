"""Run a sink whose code blocks: each call in a thread."""

from __future__ import annotations

from abc import ABC, abstractmethod

import trio

from kraft_wire.exporters.records import ExportBatch


class BlockingSink(ABC):
    """A ``Sink`` made of methods that block. A call that is cancelled is abandoned, and may still go on."""

    async def open(self) -> None:
        await trio.to_thread.run_sync(self._open, abandon_on_cancel=True)

    async def export(self, batch: ExportBatch) -> None:
        await trio.to_thread.run_sync(self._export, batch, abandon_on_cancel=True)

    async def close(self) -> None:
        await trio.to_thread.run_sync(self._close, abandon_on_cancel=True)

    @abstractmethod
    def _open(self) -> None: ...

    @abstractmethod
    def _export(self, batch: ExportBatch) -> None: ...

    @abstractmethod
    def _close(self) -> None: ...
