"""Decide about the items of one request, such as partitions, some in each step.

Only for requests whose items succeed or fail by themselves, and whose records need not be in one batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, Generic, TypeVar

from kraft_wire.controller.decision.context import Context, ControllerState
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.work import Piece, WorkKey
from kraft_wire.protocol.message import Message

Item = TypeVar("Item")

ITEMS_A_PIECE: Final = 1_000
"""The items of one step. They take up to 20 ms, also to write and apply their records."""


class ItemWork(ABC, Generic[Item]):
    """The work of one request."""

    def __init__(self, key: WorkKey, items: Sequence[Item]) -> None:
        self.key = key
        self._items = items
        self._decided = 0

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Decide about the next items."""
        end = self._decided + ITEMS_A_PIECE
        records = self.decide_items(state, self._items[self._decided : end])
        self._decided = end
        if end < len(self._items):
            return Piece(records, is_last=False)
        return Piece(records, is_last=True, response=self.response())

    @abstractmethod
    def decide_items(self, state: ControllerState, items: Sequence[Item]) -> list[VersionedRecord]:
        """Return the records for some of the items, and note their results. Raises ApiError if the whole
        request fails."""

    @abstractmethod
    def response(self) -> Message:
        """Return the response, when all items are decided."""
