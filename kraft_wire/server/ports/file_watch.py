"""Look regularly whether the node's files are still there, also while nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

WATCH_INTERVAL_S: Final = 0.5


async def watch_files(check: Callable[[], None]) -> None:
    """Call ``check`` regularly in a thread, until cancelled. Raises what it raises.

    A disk that hangs holds up neither the event loop nor the end of the process.
    """
    while True:
        await trio.sleep(WATCH_INTERVAL_S)
        await trio.to_thread.run_sync(check, abandon_on_cancel=True)
