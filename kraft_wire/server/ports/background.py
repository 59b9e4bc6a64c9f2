"""Run slow work beside the event loop; its results come back as events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from kraft_wire.controller.node.node import NodeEvent

Feed = Callable[[NodeEvent], None]
"""Gives an event to the node. Within a step the event waits until the step is over."""


class Background:
    """Tasks that live as long as the owner runs."""

    def __init__(self) -> None:
        self._nursery: trio.Nursery | None = None

    def open(self, nursery: trio.Nursery) -> None:
        """Start tasks in this nursery from now on."""
        self._nursery = nursery

    def start(self, function: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Start a task. Raises RuntimeError before ``open``."""
        if self._nursery is None:
            raise RuntimeError("the node acts before its owner runs")
        self._nursery.start_soon(function, *arguments)
