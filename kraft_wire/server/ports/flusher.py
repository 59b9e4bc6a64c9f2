"""Flush the log in a thread, one flush at a time."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue

import trio


class Flusher:
    """A thread that flushes when it is told to.

    Every write waits for a flush. One thread that stays is told sooner than a task that borrows a thread for
    each flush, and it tells the event loop sooner.
    """

    def __init__(self, flush: Callable[[], int], flushed: Callable[[int, int], None]) -> None:
        """``flush`` runs in the thread and returns the offset after what it flushed. Then the event loop
        calls ``flushed(end_offset, generation)``."""
        self.is_busy = False
        self._flush = flush
        self._flushed = flushed
        self._orders: SimpleQueue[int | Exception | None] = SimpleQueue()

    def start(self, generation: int) -> None:
        """Start a flush. None may be in flight. ``generation`` is passed on to ``flushed``."""
        assert not self.is_busy
        self.is_busy = True
        self._orders.put(generation)

    async def run(self) -> None:
        """Run the thread until cancelled. Raises what ``flush`` or ``flushed`` raises."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._end_when_cancelled)
            await trio.to_thread.run_sync(self._work, trio.lowlevel.current_trio_token())

    async def _end_when_cancelled(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self._orders.put(None)

    def _work(self, event_loop: trio.lowlevel.TrioToken) -> None:
        while (order := self._orders.get()) is not None:
            if isinstance(order, Exception):
                raise order
            event_loop.run_sync_soon(self._done, self._flush(), order)

    def _done(self, end_offset: int, generation: int) -> None:
        self.is_busy = False
        try:
            self._flushed(end_offset, generation)
        except Exception as error:  # noqa: BLE001 - ``run`` raises it
            self._orders.put(error)  # an error of a callback would end trio without closing anything
