"""Import modules in the background that the first requests will need."""

from __future__ import annotations

import importlib

import trio

from kraft_wire.controller.decision.api_table import ApiTable

AFTER_SECONDS = 0.25
"""The delay after which requests that waited for the controller have been answered."""


async def warm_up(activated: trio.Event, apis: ApiTable) -> None:
    """Wait until the controller is active, then import numpy and the handlers in a thread."""
    await activated.wait()
    await trio.sleep(AFTER_SECONDS)
    await trio.to_thread.run_sync(_import_handlers, apis)


def _import_handlers(apis: ApiTable) -> None:
    importlib.import_module("kraft_wire.metadata.partitions.replay_batches")  # imports numpy
    for api in apis:
        if api.load_handler is not None:
            api.load_handler()
