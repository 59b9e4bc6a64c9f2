"""Carry the requests of brokers and administrators to controllers, over links that have the same faults as
those between controllers. A request without a response times out."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.sim.machines.controller_node import ControllerNode
from kraft_wire.sim.network.connections import LATEST_DUPLICATE_US, Faults
from kraft_wire.sim.network.links import Links
from kraft_wire.sim.scheduler import MS, Scheduler

TIMEOUT_US = 3_000 * MS

Take = Callable[[Message | None], None]
"""Takes the response, or None if there is none."""


class Asked(msgspec.Struct):
    """A request in flight."""

    client_id: int
    request: Message
    version: int


class Clients:
    """The clients of all controllers. ``check`` is called with every response when it leaves its node."""

    def __init__(
        self,
        scheduler: Scheduler,
        links: Links,
        nodes: Mapping[int, ControllerNode],
        check: Callable[[int, Message, Message], None],
        chance: random.Random,
        faults: Faults,
    ) -> None:
        self._scheduler = scheduler
        self._links = links
        self._nodes = nodes
        self._check = check
        self.faults = faults
        self._on_the_wire = faults.on_the_wire
        self._random = chance.random
        self._asked: dict[int, Asked] = {}
        self._waiting: dict[int, Take] = {}
        self._last = 0
        for node in nodes.values():
            node.on_answer = partial(self._answer, node.id)

    def ask(self, client_id: int, node_id: int, request: Message, version: int, take: Take) -> None:
        """Send a request to a node. ``take`` gets the response, or None after ``TIMEOUT_US``."""
        self._last += 1
        number = self._last
        self._asked[number] = Asked(client_id, request, version)
        self._waiting[number] = take
        self._links.carry((client_id, node_id), 0, self._reach, number, node_id)
        self._scheduler.after(TIMEOUT_US, self._return, number, None)
        if self.faults.duplicate and self._random() < self.faults.duplicate:
            self._last += 1
            self._asked[self._last] = Asked(client_id, request, version)
            later_us = self._scheduler.now_us + int(self._random() * LATEST_DUPLICATE_US)
            self._links.carry((client_id, node_id), later_us, self._reach, self._last, node_id)

    def read(self, client_id: int, node_id: int, take: Callable[[int], None]) -> None:
        """Ask a node for its high watermark, as a Fetch would report it."""
        self._links.carry((client_id, node_id), 0, self._read_at, client_id, node_id, take)

    def _read_at(self, client_id: int, node_id: int, take: Callable[[int], None]) -> None:
        node = self._nodes[node_id]
        if node.is_up:
            node.when_free(self._tell_high_watermark, client_id, node_id, take)

    def _tell_high_watermark(self, client_id: int, node_id: int, take: Callable[[int], None]) -> None:
        self._links.carry((node_id, client_id), 0, take, self._nodes[node_id].high_watermark)

    def _reach(self, number: int, node_id: int) -> None:
        node = self._nodes[node_id]
        asked = self._asked[number]
        request = asked.request
        if self._on_the_wire:
            request = type(request).decode(request.encode(asked.version), asked.version)
        if not node.ask((number,), request, asked.version) and node.is_powered:
            self._links.carry((node_id, asked.client_id), 0, self._return, number, None)

    def _answer(self, node_id: int, token: tuple[int], response: Message) -> None:
        (number,) = token
        asked = self._asked.pop(number)
        self._check(node_id, asked.request, response)
        if self._on_the_wire:
            response = type(response).decode(response.encode(asked.version), asked.version)
        self._links.carry((node_id, asked.client_id), 0, self._return, number, response)

    def _return(self, number: int, response: Message | None) -> None:
        take = self._waiting.pop(number, None)
        if take is not None:
            take(response)


def error_of(response: Message) -> int:
    """Return the error of a whole response, or else the first error of its parts that isn't NONE."""
    top: int | None = getattr(response, "error_code", None)
    if top:
        return top
    parts: Any = ()
    for name in ("topics", "responses", "results", "replica_election_results"):
        parts = getattr(response, name, parts)
    return next((part.error_code for part in parts if getattr(part, "error_code", 0)), int(ErrorCode.NONE))
