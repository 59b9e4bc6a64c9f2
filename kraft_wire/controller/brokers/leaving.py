"""Let a broker leave its ISRs, in as many steps as that takes, and then decide what had to wait for it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from kraft_wire.controller.decision.context import Context, ControllerState
from kraft_wire.controller.decision.records import joined
from kraft_wire.controller.decision.work import Piece, WorkKey, WorkKind
from kraft_wire.protocol.uuid import Uuid

if TYPE_CHECKING:
    from kraft_wire.controller.partitions.departure import Departure

Close = Callable[[ControllerState, Context, int], Piece]
"""The last decision, which begins with so many records of partitions: what to write after them."""


class BrokerLeaving:
    """The work of taking a broker out of the ISRs. ``close`` decides what comes after the last partition.

    With ``directories``, only the ISRs of its replicas in these log directories. If it ``forgets``, it leaves
    the ELRs as well.
    """

    def __init__(
        self,
        kind: WorkKind,
        broker_id: int,
        close: Close,
        *,
        directories: Collection[Uuid] | None = None,
        forgets: bool = False,
    ) -> None:
        self.key = WorkKey(kind, broker_id)
        self._close = close
        self._directories = directories
        self._forgets = forgets
        self._departure: Departure | None = None

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Decide on the next partitions; with the last ones, on the broker itself. Raises what ``close``
        raises."""
        if not len(state.metadata.partitions):
            return self._close(state, context, 0)
        if self._departure is None:
            self._departure = self._begin()
        changed = self._departure.next_slice(state)
        if not changed.is_complete:
            return Piece(changed.records, is_last=False)
        last = self._close(state, context, len(changed.records))
        return Piece(joined(changed.records, last.records), True, last.session_changes, last.response)

    def _begin(self) -> Departure:
        from kraft_wire.controller.partitions.departure import Departure  # needs numpy

        return Departure(self.key.broker_id, directories=self._directories, forgets=self._forgets)
