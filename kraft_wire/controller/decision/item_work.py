"""Decide about the items of one request, such as partitions or topics, some in each step.

Only for requests whose items succeed or fail by themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.records import MAX_RECORDS_PER_BATCH, VersionedRecord
from kraft_wire.controller.decision.work import Piece, WorkKey, WorkKind
from kraft_wire.controller.quotas.mutations import MutationQuota
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.message import Message

Item = TypeVar("Item")
ItemResult = TypeVar("ItemResult")

ITEMS_PER_PIECE: Final = 1_000
"""The items of one step. They take up to 20 ms, also to write and apply their records."""
CHARS_PER_PIECE: Final = 300_000
"""The characters of configuration values in one step: those that are given, and those that they change."""


class ItemWork(ABC, Generic[Item]):
    """The work of one request whose records may be in any number of batches."""

    def __init__(self, key: WorkKey, items: Sequence[Item]) -> None:
        self.key = key
        self._items = items
        self._decided = 0

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Decide about the next items."""
        end, weight = self._decided, 0
        while end < len(self._items) and weight < ITEMS_PER_PIECE:
            weight += self.weight_of(self._items[end])
            end += 1
        records = self.decide_items(state, self._items[self._decided : end])
        self._decided = end
        if end < len(self._items):
            return Piece(records, is_last=False)
        return Piece(records, is_last=True, response=self.response())

    def weight_of(self, item: Item) -> int:
        """Return how many usual items take as long as this one."""
        return 1

    @abstractmethod
    def decide_items(self, state: ControllerState, items: Sequence[Item]) -> list[VersionedRecord]:
        """Return the records for some of the items, and note their results. Raises ApiError if the whole
        request fails."""

    @abstractmethod
    def response(self) -> Message:
        """Return the response, when all items are decided."""


def pieces_of(
    items: Iterable[Item],
    most_items: int,
    weight_of: Callable[[Item], int] = lambda item: 0,
    most_weight: int = 0,
) -> list[list[Item]]:
    """Return the items in pieces. Each has up to ``most_items`` and up to ``most_weight``, or one item."""
    pieces: list[list[Item]] = []
    weight = 0
    for item in items:
        more = weight_of(item)
        if not pieces or len(pieces[-1]) == most_items or weight + more > most_weight:
            pieces.append([])
            weight = 0
        pieces[-1].append(item)
        weight += more
    return pieces


class LimitedWork(Generic[Item, ItemResult]):
    """The work of one request that is refused if its records are too many, or too large.

    Kafka writes the records of such a request in one batch. So does this if there is one piece. Several have
    a batch each, so a trial comes first: all items are decided, and nothing is written. Only if others change
    the state so much that the records become too many after the trial, a request is refused of which some is
    written.

    ``decide_items`` returns the results and the records of some items, ``respond`` the response with all
    results. What they spend of a ``quota`` counts once: not in a trial after which it is done.
    """

    def __init__(
        self,
        kind: WorkKind,
        pieces: Sequence[Sequence[Item]],
        decide_items: Callable[
            [ControllerState, Sequence[Item]], tuple[list[ItemResult], Sequence[VersionedRecord]]
        ],
        respond: Callable[[list[ItemResult]], Message],
        *,
        validate_only: bool = False,
        quota: MutationQuota | None = None,
    ) -> None:
        self.key = WorkKey(kind)
        self._pieces = pieces
        self._decide_items = decide_items
        self._respond = respond
        self._validate_only = validate_only
        self._quota = quota
        self._is_trial = True
        self._decided = 0
        self._records = 0
        self._results: list[ItemResult] = []

    def begin(self, state: ControllerState, context: Context) -> Result:
        """Return the whole decision if there is one piece; otherwise the first, and what is left."""
        if len(self._pieces) > 1:
            return Result.of_work(self, state, context)
        results, records = self._decide_items(state, self._pieces[0] if self._pieces else ())
        return Result(self._respond(results), records, validate_only=self._validate_only)

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Decide about the next items. Raises ApiError(POLICY_VIOLATION) for too many records."""
        if self._decided == 0:
            self._records, self._results = 0, []
        if self._quota is not None:
            self._quota.go_on(context.monotonic_ms, counts=self._validate_only or not self._is_trial)
        results, records = self._decide_items(state, self._pieces[self._decided])
        self._results += results
        self._records += len(records)
        if self._records > MAX_RECORDS_PER_BATCH:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                f"the request needs more than {MAX_RECORDS_PER_BATCH} metadata records: split the request",
            )
        self._decided += 1
        ends = self._decided == len(self._pieces)
        is_trial, is_last = self._is_trial, ends and (self._validate_only or not self._is_trial)
        if ends:
            self._is_trial, self._decided = False, 0
        response = self._respond(self._results) if is_last else None
        return Piece(records, is_last, response=response, atomic=True, is_trial=is_trial)
