"""Loads, while nobody is waiting, what would otherwise be loaded when the first request needs it."""

from __future__ import annotations

import importlib

import trio

from kraft_wire.controller.apis import APIS, AnsweredBy

AFTER_SECONDS = 0.25
"""Long enough for whoever waited for the controller to be answered first."""


async def warm_up(activated: trio.Event) -> None:
    """Wait until the controller is active; then load numpy and the handlers, in a thread."""
    await activated.wait()
    await trio.sleep(AFTER_SECONDS)
    await trio.to_thread.run_sync(_load)


def _load() -> None:
    importlib.import_module("kraft_wire.metadata.partition_batches")  # with it numpy
    for api in APIS.values():
        if api.answered_by is AnsweredBy.HANDLER:
            api.handler()
