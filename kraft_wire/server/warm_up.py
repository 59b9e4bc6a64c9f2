"""Get ready for the first requests: import in the background the modules that they will need.

A follower does it, too: it may be the next active controller, and then a failover must not wait for imports.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pkgutil import walk_packages
from typing import Final

import trio

from kraft_wire import controller, metadata

AFTER_SECONDS: Final = 0.25
"""The delay after which requests that waited for the controller have been answered."""
SWITCH_SECONDS: Final = 0.0005
"""While modules are imported, the event loop gets the interpreter after this time instead of 5 ms."""


async def warm_up(settled: trio.Event) -> None:
    """Wait until the controller is active or follows one, then import numpy and the handlers in a thread.

    Python's full garbage collections leave out from then on what exists, which is mostly modules: with it,
    each would keep everybody waiting for 30 ms. What isn't part of a cycle is freed nevertheless.
    """
    await settled.wait()
    await trio.sleep(AFTER_SECONDS)
    with _frequent_switches():
        await trio.to_thread.run_sync(_import_handlers)
    gc.freeze()


@contextmanager
def _frequent_switches() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def _import_handlers() -> None:
    """Import all that decides or replays, numpy among it."""
    for package in (controller, metadata):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
